// `/trash`: what was deleted and can be brought back.

import { get, remove } from "../api.js";
import { useCalmReload } from "../events.js";
import { plural } from "../format.js";
import { html, useState } from "../html.js";
import { useLoad } from "../load.js";
import { route, useTitle } from "../router.js";
import { text } from "../strings.js";
import { confirm } from "../parts/dialog.js";
import { Time, TypeBadge } from "../parts/labels.js";
import { Pager } from "../parts/pager.js";
import { restore } from "../parts/restore.js";
import { Empty, Loaded } from "../parts/states.js";
import { complain, say } from "../parts/toast.js";

const ROWS = 100;

export function TrashView() {
  const offset = Number(route.value.query.get("from") ?? 0) || 0;
  const load = useLoad((signal) => get("/trash", { limit: ROWS, offset }, { signal }), [offset]);
  const [busy, setBusy] = useState(false);
  useTitle(text.trash.name);
  useCalmReload(load.reload);
  const act = async (change) => {
    setBusy(true);
    await change();
    setBusy(false);
    load.reload();
  };
  return html`<h1>${text.trash.name}</h1>
    <${Loaded} load=${load}>
      ${({ documents, total }) =>
        total === 0
          ? html`<${Empty} title=${text.trash.empty}><p>${text.trash.emptyHint}</p><//>`
          : html`
              <p class="row"><span class="muted grow">${text.trash.hint}</span>
                <button class="danger" disabled=${busy} onClick=${() => act(() => emptyTrash(total))}>${text.trash.emptyNow}</button></p>
              <ul class="list trash">
                ${documents.map((one) => html`<${Row} key=${one.id} document=${one} busy=${busy} act=${act} />`)}
              </ul>
              <${Pager} total=${total} offset=${offset} limit=${ROWS} to=${(from) => (from ? `/trash?from=${from}` : "/trash")} />
            `}
    <//>`;
}

function Row({ document, busy, act }) {
  const { title } = document;
  return html`<li>
    <strong dir="auto">${title}</strong>
    <span class="facts">
      <${TypeBadge} type=${document.doc_type} />
      <span>${plural(document.chunk_count, text.passage)}</span>
      <span>${text.trash.deleted} <${Time} at=${document.deleted_at} /></span>
      <span>${text.trash.until} <${Time} at=${document.expires_at} /></span>
      <button disabled=${busy} aria-label=${text.ofItem(text.trash.restore, title)} onClick=${() => act(() => restore(document))}>${text.trash.restore}</button>
      <button class="danger" disabled=${busy} aria-label=${text.ofItem(text.trash.purge, title)} onClick=${() => act(() => purge(document))}>${text.trash.purge}</button>
    </span>
  </li>`;
}

const purge = ({ id, title }) =>
  forGood(text.trash.purgeTitle(title), text.trash.purge, () => remove(`/documents/${id}`, { purge: true }), text.trash.purged(title));

const emptyTrash = (total) =>
  forGood(text.trash.emptyTitle(total), text.trash.emptyNow, () => remove("/trash", { expected_count: total }), text.trash.emptied(total));

async function forGood(title, action, change, told) {
  if (!(await confirm({ title, message: text.trash.forGood, action }))) return;
  try {
    await change();
    say(told);
  } catch (error) {
    complain(error);
  }
}
