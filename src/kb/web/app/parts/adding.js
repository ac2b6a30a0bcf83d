// Ways to add something: drop it anywhere, choose it, paste it. What was chosen goes to the queue.

import { gather, gatherPicked, MOST_FILES } from "../gathering.js";
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { useKeys } from "../keys.js";
import { text } from "../strings.js";
import { parseTags } from "../tags.js";
import { addFiles, addText } from "../uploads.js";
import { Dialog } from "./dialog.js";
import { say } from "./toast.js";
import { UploadPanel } from "./upload_panel.js";

const FIELDS = "input, textarea, select, [contenteditable], dialog";
const MOST_NOTE = 2 ** 20; // bytes
const dialogShown = signal(false);
const pasted = signal(null);

/** Open the dialog that adds files. */
export const showAdding = () => (dialogShown.value = true);

/** Ask for files, or for a folder; the answer goes to the queue with these tags. */
export function choose(folder, tags = []) {
  const input = document.getElementById(folder ? "folder-picker" : "file-picker");
  input.tags = tags;
  input.click();
}

const report = (found) => {
  const message = text.gathered(found, MOST_FILES);
  if (message) say(message, found.full || found.unread ? "error" : "done");
};

async function picked(change) {
  const input = change.target;
  const { tags = [] } = input;
  report(await gatherPicked([...input.files], (found) => addFiles(found, tags)));
  input.value = "";
  input.tags = [];
  dialogShown.value = false;
}

/** Everything that adding needs on every view. */
export function Adding() {
  useKeys({ u: showAdding });
  return html`
    <input id="file-picker" type="file" multiple hidden aria-label=${text.chooseFiles} onChange=${picked} />
    <input id="folder-picker" type="file" multiple webkitdirectory hidden aria-label=${text.chooseFolder} onChange=${picked} />
    <${DropAnywhere} />
    <${PasteAnywhere} />
    <${UploadPanel} />
    ${dialogShown.value && html`<${AddDialog} />`} ${pasted.value !== null && html`<${NoteDialog} />`}
  `;
}

function AddDialog() {
  const tags = useRef();
  const ask = (folder) => choose(folder, parseTags(tags.current.value));
  return html`<${Dialog} title=${text.addTitle} onClose=${() => (dialogShown.value = false)}>
    <div class="row">
      <button class="primary" autofocus onClick=${() => ask(false)}>${text.chooseFiles}</button>
      <button onClick=${() => ask(true)}>${text.chooseFolder}</button>
    </div>
    <p class="field"><label for="add-tags">${text.addTags}</label><input id="add-tags" ref=${tags} dir="auto" autocomplete="off" /></p>
    <p class="muted">${text.addHint}</p>
  <//>`;
}

/** A pasted text becomes a note, once the person has seen it. */
function NoteDialog() {
  const [content, setContent] = useState(pasted.value);
  const tags = useRef();
  const close = () => (pasted.value = null);
  const add = (submit) => {
    submit.preventDefault();
    addText(content, parseTags(tags.current.value));
    close();
  };
  return html`<${Dialog} title=${text.noteTitle} onClose=${close}>
    <form onSubmit=${add}>
      <p class="field">
        <label for="note-text">${text.noteText}</label>
        <textarea id="note-text" rows="8" required dir="auto" value=${content} onInput=${(input) => setContent(input.target.value)} />
      </p>
      <p class="field"><label for="note-tags">${text.noteTags}</label><input id="note-tags" ref=${tags} dir="auto" autocomplete="off" /></p>
      <footer class="row">
        <button type="button" onClick=${close}>${text.cancel}</button>
        <button class="primary" disabled=${!content.trim()}>${text.noteAdd}</button>
      </footer>
    </form>
  <//>`;
}

function DropAnywhere() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const carries = (drag) => drag.dataTransfer?.types.includes("Files");
    const allow = (drag) => {
      if (!carries(drag)) return;
      drag.preventDefault(); // else the browser would open the file instead of this page
      drag.dataTransfer.dropEffect = "copy";
      setOver(true);
    };
    const leave = (drag) => drag.relatedTarget === null && setOver(false);
    const drop = async (drag) => {
      setOver(false);
      if (!carries(drag)) return;
      drag.preventDefault();
      report(await gather(drag.dataTransfer, addFiles));
    };
    const listeners = Object.entries({ dragenter: allow, dragover: allow, dragleave: leave, drop });
    for (const [name, listener] of listeners) document.addEventListener(name, listener);
    return () => listeners.forEach(([name, listener]) => document.removeEventListener(name, listener));
  }, []);
  return over && html`<div class="drop-here" role="status"><p>${text.dropNow}</p></div>`;
}

function PasteAnywhere() {
  useEffect(() => {
    const paste = async (event) => {
      if (event.target.closest?.(FIELDS) || document.querySelector("dialog[open]")) return;
      const files = [...event.clipboardData.files];
      const content = event.clipboardData.getData("text/plain");
      if (files.length) report(await gatherPicked(files.map(named), addFiles));
      else if (new Blob([content]).size > MOST_NOTE) addFiles([named(new File([content], "text.txt"))].map((file) => ({ file, path: file.name })));
      else if (content.trim()) pasted.value = content;
    };
    document.addEventListener("paste", paste);
    return () => document.removeEventListener("paste", paste);
  }, []);
  return null;
}

/** A picture from the clipboard is always called image.png: the time tells them apart. */
function named(file) {
  const generic = /^(image|text)\.(\w+)$/.exec(file.name);
  const time = new Date().toISOString().slice(0, 19).replace(/[T:]/g, "-");
  return generic ? new File([file], `pasted-${time}.${generic[2]}`, { type: file.type }) : file;
}
