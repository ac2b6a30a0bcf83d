// A document's tags, each removable, and a field that adds one.

import { get, post } from "../api.js";
import { html, useId, useState } from "../html.js";
import { text } from "../strings.js";
import { TagLinks } from "./labels.js";
import { complain } from "./toast.js";

const MOST_OFFERED = 200;

/** `onChange` gets the document as it is after a change. */
export function TagEditor({ document, onChange }) {
  const [typed, setTyped] = useState("");
  const [known, setKnown] = useState();
  const options = useId();
  const edit = (change) => post(`/documents/${document.id}/tags`, change).then(onChange, complain);
  const add = (submit) => {
    submit.preventDefault();
    const tag = typed.trim();
    if (!tag) return;
    setTyped("");
    edit({ add: [tag] });
  };
  const offer = () => known ?? get("/tags").then(({ tags }) => setKnown(tags.slice(0, MOST_OFFERED)), () => {});
  return html`<div class="tags-edit">
    ${document.tags.map(
      (tag) => html`<span class="tag-chip" key=${tag}>
        <${TagLinks} tags=${[tag]} />
        <button class="quiet" aria-label=${text.doc.removeTag(tag)} onClick=${() => edit({ remove: [tag] })}>×</button>
      </span>`,
    )}
    <form class="row" onSubmit=${add}>
      <input
        aria-label=${text.doc.addTag}
        placeholder=${text.doc.addTag}
        list=${options}
        maxlength="200"
        dir="auto"
        autocomplete="off"
        value=${typed}
        onFocus=${offer}
        onInput=${(input) => setTyped(input.target.value)}
      />
      ${typed && html`<button>${text.doc.add}</button>`}
      <datalist id=${options}>${known?.map(({ tag }) => html`<option value=${tag}></option>`)}</datalist>
    </form>
  </div>`;
}
