// Start of the page: take the key, follow the address and the engine's events, show the view.

import { get } from "./api.js";
import { follow } from "./events.js";
import { html, render, useEffect } from "./html.js";
import { locked, takeFromAddress } from "./key.js";
import * as keys from "./keys.js";
import * as queue from "./queue.js";
import * as router from "./router.js";
import { text } from "./strings.js";
import * as uploads from "./uploads.js";
import { KeyGate } from "./parts/key_gate.js";
import { Shell } from "./parts/shell.js";
import { Empty } from "./parts/states.js";
import { ConnectView } from "./views/connect.js";
import { DocumentView } from "./views/document.js";
import { DocumentsView } from "./views/documents.js";
import { DuplicatesView } from "./views/duplicates.js";
import { FoldersView } from "./views/folders.js";
import { JobsView } from "./views/jobs.js";
import { NoteView } from "./views/note.js";
import { SearchView } from "./views/search.js";
import { SystemView } from "./views/system.js";
import { TagsView } from "./views/tags.js";
import { TrashView } from "./views/trash.js";

const VIEWS = [
  [/^\/$/, SearchView],
  [/^\/d\/([^/]+)$/, DocumentView],
  [/^\/n\/([^/]+)$/, NoteView],
  [/^\/documents$/, DocumentsView],
  [/^\/tags$/, TagsView],
  [/^\/duplicates$/, DuplicatesView],
  [/^\/folders$/, FoldersView],
  [/^\/trash$/, TrashView],
  [/^\/jobs$/, JobsView],
  [/^\/system$/, SystemView],
  [/^\/connect$/, ConnectView],
];

function Page() {
  const known = !locked.value;
  useEffect(() => {
    if (known) get("/status").catch(() => {}); // shows at once whether a key is needed, or the engine is away
  }, [known]);
  if (locked.value) return html`<${KeyGate} />`;
  const { path } = router.route.value;
  for (const [pattern, View] of VIEWS) {
    const found = pattern.exec(path);
    if (found) return html`<${Shell}><${View} key=${path} id=${found[1]} /><//>`;
  }
  return html`<${Shell}><${Empty} title=${text.noView} whole><p><a href="/">${text.search}</a></p><//><//>`;
}

takeFromAddress();
router.start();
keys.start();
uploads.start();
queue.start();
render(html`<${Page} />`, document.body);
follow();
