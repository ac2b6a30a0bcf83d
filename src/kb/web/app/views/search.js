// `/`: search as you type. The address holds the question and the filters; results stand beside a preview.

import { post } from "../api.js";
import { useChosen } from "../chosen.js";
import { html } from "../html.js";
import { useKeys } from "../keys.js";
import { useLoad } from "../load.js";
import { documentUrl, navigate, route, useTitle } from "../router.js";
import { text } from "../strings.js";
import { Filters, activeFilters, withValue, without } from "../parts/filters.js";
import { Home } from "../parts/home.js";
import { typedFilters } from "../parts/path_and_dates.js";
import { Preview } from "../parts/preview.js";
import { Result } from "../parts/result.js";
import { Loaded } from "../parts/states.js";

const TOP = 20;
const MOST = 100; // that the engine gives

export function SearchView() {
  const { query } = route.value;
  const question = (query.get("q") ?? "").trim();
  useTitle(question);
  return question ? html`<${Results} query=${query} question=${question} />` : html`<${Home} />`;
}

function Results({ query, question }) {
  const load = useLoad((signal) => post("/search", body(query, question), { signal }), [query.toString()]);
  const results = load.data?.results ?? [];
  const { chosen, choose, step } = useChosen("result", results.length, query.toString());
  const hit = results[chosen];
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Enter: () => hit && navigate(documentUrl(hit.document_id, hit.anchor, question)),
  }, [chosen, load.data]);
  return html`<div class="search">
    <h1 class="unseen">${text.resultsFor(question)}</h1>
    <${Filters} query=${query} facets=${load.data?.facets} />
    <${Loaded} load=${load}>
      ${(answer) => html`
        <p class="muted summary" role="status">${text.results(answer.total, answer.took_ms)}</p>
        <${Notice} answer=${answer} query=${query} />
        <div class="beside">
          <ol class="results">
            ${answer.results.map(
              (one, at) => html`<${Result}
                key=${one.chunk_id}
                id="result-${at}"
                hit=${one}
                question=${question}
                chosen=${at === chosen}
                choose=${() => choose(at)}
              />`,
            )}
            ${answer.results.length === topOf(query) && topOf(query) < MOST && html`<li><a class="button" href=${withValue(query, "top", MOST)}>${text.moreResults(MOST)}</a></li>`}
          </ol>
          ${hit && html`<${Preview} key=${hit.chunk_id} hit=${hit} question=${question} />`}
        </div>
      `}
    <//>
  </div>`;
}

const topOf = (query) => (query.get("top") ? MOST : TOP);

/** What the address asks for, as the body of POST /search. */
function body(query, question) {
  const month = query.get("month");
  return {
    query: question,
    top: topOf(query),
    explain: true,
    facets: true,
    mode: query.get("mode") ?? "hybrid",
    tags: query.getAll("tag"),
    ...(query.get("type") && { doc_type: query.get("type") }),
    ...(month && { created_after: `${month}-01`, created_before: nextMonth(month) }),
    ...typedFilters(query),
  };
}

function nextMonth(month) {
  const [year, number] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 10);
}

/** Why there is nothing, or less than expected; each filter can be taken away with one click. */
function Notice({ answer, query }) {
  const message = answer.notice ?? (answer.results.length ? null : text.nothing);
  if (!message) return null;
  const filters = answer.results.length ? [] : activeFilters(query);
  return html`<div class="notice" role="status">
    <p dir="auto">${message}</p>
    ${filters.map((filter) => html`<a class="button" href=${without(query, [filter])}>${text.without(filter.label)}</a>`)}
    ${filters.length > 1 && html`<a class="button" href=${without(query, filters)}>${text.clearFilters}</a>`}
  </div>`;
}
