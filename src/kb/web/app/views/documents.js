// `/documents`: every document in a table that can be sorted, narrowed, and changed many rows at once.

import { get } from "../api.js";
import { useChosen } from "../chosen.js";
import { useCalmReload } from "../events.js";
import { plural, size } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { useKeys } from "../keys.js";
import { useLoad } from "../load.js";
import { documentUrl, navigate, route, useTitle } from "../router.js";
import { text } from "../strings.js";
import { Bulk } from "../parts/bulk.js";
import { Prose, TagLinks, Time, TypeBadge } from "../parts/labels.js";
import { Pager } from "../parts/pager.js";
import { PathAndDates, typedFilters } from "../parts/path_and_dates.js";
import { Empty, Loaded } from "../parts/states.js";

const ROWS = 100;
const COLUMNS = [
  ["filename", text.title],
  ["size", text.size],
  ["created", text.created],
  ["recent", text.changed],
];

export function DocumentsView() {
  const { query } = route.value;
  const narrowed = {
    q: query.get("q") ?? undefined,
    tag: query.getAll("tag"),
    doc_type: query.get("type") ?? undefined,
    state: query.get("state") ?? undefined,
    ...typedFilters(query),
  };
  const order = { sort: query.get("sort") ?? "recent", order: query.get("order") ?? undefined };
  const offset = Number(query.get("from") ?? 0) || 0;
  const load = useLoad(
    (signal) => get("/documents", { view: "summary", ...narrowed, ...order, limit: ROWS, offset }, { signal }),
    [query.toString()],
  );
  const [selected, setSelected] = useState(new Map()); // id → document
  const rows = load.data?.documents ?? [];
  useTitle(text.documents);
  useEffect(() => setSelected(new Map()), [query.toString()]);
  useCalmReload(load.reload);
  const toggle = (row) => {
    const next = new Map(selected);
    if (!next.delete(row.id)) next.set(row.id, row);
    setSelected(next);
  };
  const { chosen, step } = useChosen("row", rows.length, query.toString());
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    x: () => rows[chosen] && toggle(rows[chosen]),
    Enter: () => rows[chosen] && navigate(rowUrl(rows[chosen])),
  }, [chosen, rows, selected]);
  return html`<h1>${text.documents}</h1>
    <${Narrow} query=${query} />
    <${Loaded} load=${load}>
      ${({ documents, total }) =>
        total === 0
          ? html`<${Empty} title=${query.size ? text.noneMatch : text.emptyTitle}><p>${query.size ? null : html`<${Prose} text=${text.emptyHint} />`}</p><//>`
          : html`
              <${Bulk}
                selected=${selected}
                total=${total}
                narrowed=${narrowed}
                clear=${() => setSelected(new Map())}
                done=${() => (setSelected(new Map()), load.reload())}
              />
              <table class="documents">
                <thead>
                  <tr>
                    <th class="select">
                      <input
                        type="checkbox"
                        aria-label=${text.selectPage}
                        checked=${documents.length > 0 && documents.every((row) => selected.has(row.id))}
                        onChange=${(change) => setSelected(new Map(change.target.checked ? documents.map((row) => [row.id, row]) : []))}
                      />
                    </th>
                    ${COLUMNS.map(([sort, name]) => html`<${Heading} key=${sort} sort=${sort} name=${name} query=${query} order=${order} />`)}
                  </tr>
                </thead>
                <tbody>
                  ${documents.map(
                    (row, at) => html`<${Row} key=${row.id} id="row-${at}" row=${row} chosen=${at === chosen} selected=${selected.has(row.id)} toggle=${() => toggle(row)} />`,
                  )}
                </tbody>
              </table>
              <${Pager} total=${total} offset=${offset} limit=${ROWS} to=${(from) => changed(query, { from: from || undefined })} />
            `}
    <//>`;
}

/** The address with these parameters; undefined removes one. */
function changed(query, parameters) {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  return next.size ? `/documents?${next}` : "/documents";
}

function Narrow({ query }) {
  const go = (parameters) => navigate(changed(query, { ...parameters, from: undefined }), { replace: true });
  const type = query.get("type") ?? "";
  const status = useLoad((signal) => get("/status", {}, { signal }), []);
  const types = new Set([...Object.keys(status.data?.documents.by_type ?? {}), ...(type ? [type] : [])]);
  return html`<div class="row narrow" role="group" aria-label=${text.filters}>
    <input type="search" aria-label=${text.byTitle} placeholder=${text.byTitle} value=${query.get("q") ?? ""} onInput=${(input) => go({ q: input.target.value })} />
    <select aria-label=${text.type} value=${type} onChange=${(change) => go({ type: change.target.value })}>
      <option value="">${text.anyType}</option>
      ${[...types].sort().map((one) => html`<option value=${one}>${one}</option>`)}
    </select>
    <label class="check">
      <input type="checkbox" checked=${query.get("state") === "failed"} onChange=${(change) => go({ state: change.target.checked ? "failed" : "" })} />
      ${text.onlyFailed}
    </label>
    <${PathAndDates} query=${query} set=${(name, value) => go({ [name]: value })} />
    ${query.getAll("tag").map(
      (tag) => html`<a class="chip on" href=${withoutTag(query, tag)} aria-label="${text.remove} ${tag}"><span dir="auto">${tag}</span> <span aria-hidden="true">×</span></a>`,
    )}
  </div>`;
}

function withoutTag(query, tag) {
  const next = new URLSearchParams(query);
  next.delete("tag", tag);
  next.delete("from");
  return next.size ? `/documents?${next}` : "/documents";
}

/** A column's heading; a click sorts by it, a second one turns the order round. */
function Heading({ sort, name, query, order }) {
  const active = order.sort === sort;
  const now = order.order ?? (order.sort === "filename" ? "asc" : "desc");
  const next = active ? (now === "asc" ? "desc" : "asc") : undefined;
  return html`<th class=${sort} aria-sort=${active ? (now === "asc" ? "ascending" : "descending") : undefined}>
    <a href=${changed(query, { sort, order: next, from: undefined })}>${name}${active && html` <span aria-hidden="true">${now === "asc" ? "↑" : "↓"}</span>`}</a>
  </th>`;
}

const rowUrl = ({ doc_type, id }) => (doc_type === "note" ? `/n/${id}` : documentUrl(id));

function Row({ row, id, chosen, selected, toggle }) {
  const failed = row.ledger_counts.failed;
  return html`<tr id=${id} class=${chosen ? "chosen" : ""}>
    <td class="select"><input type="checkbox" aria-label=${text.select(row.title)} checked=${selected} onChange=${toggle} /></td>
    <td class="filename">
      <a href=${rowUrl(row)} dir="auto">${row.title}</a>
      <p class="facts">
        <${TypeBadge} type=${row.doc_type} />
        <span>${plural(row.chunk_count, text.passage)}</span>
        ${failed > 0 && html`<a class="badge failed" href="/d/${row.id}?show=ledger&state=failed">${text.partsFailed(failed)}</a>`}
        <${TagLinks} tags=${row.tags} />
      </p>
    </td>
    <td class="size">${size(row.size_bytes)}</td>
    <td class="created"><${Time} at=${row.created_at} /></td>
    <td class="recent"><${Time} at=${row.updated_at ?? row.created_at} /></td>
  </tr>`;
}
