// `/connect`: how each agent is connected, and whether it has called.

import { get } from "../api.js";
import { html, useEffect } from "../html.js";
import { useLoad } from "../load.js";
import { useTitle } from "../router.js";
import { text } from "../strings.js";
import { Prose, Time } from "../parts/labels.js";
import { Loaded } from "../parts/states.js";
import { copy } from "../parts/toast.js";

const AGAIN = 5000; // ms; calls of agents send no events

export function ConnectView() {
  const load = useLoad((signal) => get("/agents", {}, { signal }), []);
  useTitle(text.connect);
  useEffect(() => {
    const timer = setInterval(load.reload, AGAIN);
    return () => clearInterval(timer);
  }, []);
  return html`<h1>${text.connectTitle}</h1>
    <p class="muted"><${Prose} text=${text.connectHint} /></p>
    <${Loaded} load=${load}>
      ${({ mcp_url, agents, callers }) => html`
        <p>${text.mcpAt} <code>${mcp_url}</code></p>
        <div class="cards">${agents.map((agent) => html`<${Agent} key=${agent.name} agent=${agent} />`)}</div>
        <h2 class="apart">${text.callers}</h2>
        ${callers.length === 0 && html`<p class="muted">${text.noCallers}</p>`}
        <ul class="list">
          ${callers.map(
            (caller) => html`<li key=${caller.name}><span dir="auto">${caller.name}</span><span class="facts"><span>${text.called(caller.calls)}</span><${Time} at=${caller.last_call} /></span></li>`,
          )}
        </ul>
      `}
    <//>`;
}

function Agent({ agent }) {
  const command = `kb connect ${agent.name}`;
  return html`<section class="card agent">
    <h2><span class="light ${agent.last_call ? "on" : ""}" aria-hidden="true"></span> ${agent.label}</h2>
    <p class="muted" role="status">${agent.last_call ? html`${text.hasCalled} <${Time} at=${agent.last_call} />` : text.notCalled}</p>
    <p class="row"><code>${command}</code><button class="quiet" aria-label="${text.copy} ${command}" onClick=${() => copy(command)}>${text.copy}</button></p>
    <details>
      <summary>${text.byHand}</summary>
      <p class="muted"><code>${agent.file}</code></p>
      <pre tabindex="0" aria-label=${text.snippetFor(agent.label)}>${agent.snippet}</pre>
      <button aria-label="${text.copy} ${text.snippetFor(agent.label)}" onClick=${() => copy(agent.snippet)}>${text.copy}</button>
      <p class="muted">${agent.hint}</p>
    </details>
  </section>`;
}
