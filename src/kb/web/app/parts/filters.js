// The filters of a search: mode, type, tag and month with the number of documents that each would show, path and dates.

import { count } from "../format.js";
import { html } from "../html.js";
import { navigate } from "../router.js";
import { text } from "../strings.js";
import { PathAndDates, TYPED } from "./path_and_dates.js";

const NAMES = ["type", "tag", "month", ...TYPED];
const MOST_TAGS = 12;
const MOST_MONTHS = 6;

/** The filters that the address names: [{name, value, label}]. */
export const activeFilters = (query) =>
  NAMES.flatMap((name) => query.getAll(name).map((value) => ({ name, value, label: `${name} ${value}` })));

/** The address without these filters. */
export function without(query, filters) {
  const next = new URLSearchParams(query);
  for (const { name, value } of filters) next.delete(name, value); // without a value: whatever it is
  return `/?${next}`;
}

export function withValue(query, name, value) {
  const next = new URLSearchParams(query);
  if (name === "tag") next.append(name, value);
  else next.set(name, value);
  return `/?${next}`;
}

export function Filters({ query, facets }) {
  const active = activeFilters(query);
  const isActive = (name, value) => active.some((filter) => filter.name === name && filter.value === value);
  const offered = (name, most, order) =>
    Object.entries(facets?.[name] ?? {})
      .filter(([value]) => !isActive(name, value))
      .sort(order)
      .slice(0, most);
  const byCount = (one, other) => other[1] - one[1] || one[0].localeCompare(other[0]);
  const newest = (one, other) => other[0].localeCompare(one[0]);
  const chip = (name) => ([value, documents]) =>
    html`<a class="chip" href=${withValue(query, name, value)}><span dir="auto">${value}</span> <small>${count(documents)}</small></a>`;
  const group = (name, label, entries) =>
    entries.length > 0 && html`<div class="group"><span class="muted">${label}</span>${entries.map(chip(name))}</div>`;
  return html`<div class="filters" role="group" aria-label=${text.filters}>
    <label class="group">
      <span class="muted">${text.mode}</span>
      <select value=${query.get("mode") ?? "hybrid"} onChange=${(change) => navigate(withValue(query, "mode", change.target.value))}>
        ${Object.entries(text.modes).map(([mode, name]) => html`<option value=${mode}>${name}</option>`)}
      </select>
    </label>
    ${active.map(
      (filter) => html`<a class="chip on" href=${without(query, [filter])} aria-label="${text.remove} ${filter.label}">
        <span dir="auto">${filter.value}</span> <span aria-hidden="true">×</span>
      </a>`,
    )}
    ${group("type", text.type, offered("type", 8, byCount))}
    ${group("tag", text.tags, offered("tag", MOST_TAGS, byCount))}
    ${group("month", text.month, offered("month", MOST_MONTHS, newest))}
    <${PathAndDates} query=${query} set=${(name, value) => navigate(value ? withValue(query, name, value) : without(query, [{ name }]))} />
  </div>`;
}
