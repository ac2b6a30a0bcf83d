// `/tags`: every tag with its documents; rename one, which merges it into another of that name.

import { get, post } from "../api.js";
import { plural } from "../format.js";
import { html, useState } from "../html.js";
import { useLoad } from "../load.js";
import { useTitle } from "../router.js";
import { text } from "../strings.js";
import { Dialog, confirm } from "../parts/dialog.js";
import { Empty, Loaded } from "../parts/states.js";
import { complain, say } from "../parts/toast.js";

export function TagsView() {
  const load = useLoad((signal) => get("/tags", {}, { signal }), []);
  const [words, setWords] = useState("");
  const [renaming, setRenaming] = useState(null);
  useTitle(text.tags);
  return html`<h1>${text.tags}</h1>
    <${Loaded} load=${load}>
      ${({ tags }) => {
        if (!tags.length) return html`<${Empty} title=${text.noTags}><p>${text.noTagsHint}</p><//>`;
        const shown = tags.filter(({ tag }) => tag.toLowerCase().includes(words.toLowerCase()));
        return html`
          <div class="row narrow"><input type="search" aria-label=${text.findTag} placeholder=${text.findTag} value=${words} onInput=${(input) => setWords(input.target.value)} /></div>
          <ul class="list tags">
            ${shown.map(
              ({ tag, documents }) => html`<li key=${tag}>
                <a href="/documents?tag=${encodeURIComponent(tag)}" dir="auto">${tag}</a>
                <span class="facts">
                  <span>${plural(documents, text.document)}</span>
                  <button class="quiet" aria-label=${text.renameTag(tag)} onClick=${() => setRenaming(tag)}>${text.rename}</button>
                </span>
              </li>`,
            )}
          </ul>
          ${renaming !== null && html`<${Rename} tag=${renaming} tags=${tags} close=${() => setRenaming(null)} done=${load.reload} />`}
        `;
      }}
    <//>`;
}

function Rename({ tag, tags, close, done }) {
  const rename = async (submit) => {
    submit.preventDefault();
    const to = new FormData(submit.target).get("to").trim();
    if (!to || to === tag) return close();
    const other = tags.find((one) => one.tag === to);
    const merge = { title: text.mergeTags, message: text.mergeTagsHint(tag, to, other?.documents ?? 0), action: text.mergeTags, danger: false };
    if (other && !(await confirm(merge))) return;
    try {
      const { documents } = await post(`/tags/${encodeURIComponent(tag)}/rename`, { to });
      say(text.renamed(to, documents));
      close();
      done();
    } catch (error) {
      complain(error);
    }
  };
  return html`<${Dialog} title=${text.renameTag(tag)} onClose=${close}>
    <form onSubmit=${rename}>
      <div class="field"><label for="to">${text.newName}</label><input id="to" name="to" required maxlength="200" value=${tag} dir="auto" autofocus /></div>
      <footer class="row"><button class="primary">${text.rename}</button></footer>
    </form>
  <//>`;
}
