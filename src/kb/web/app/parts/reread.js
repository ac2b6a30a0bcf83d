// A button that has a page of the original read again.

import { post } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { text } from "../strings.js";
import { complain, say } from "./toast.js";

/** `ocr` reads it as a picture even where it has a text. */
export function Reread({ document, page, label, ocr = false }) {
  const [asked, setAsked] = useState(false);
  useEffect(() => setAsked(false), [document]);
  const ask = async () => {
    setAsked(true);
    try {
      await post(`/documents/${document.id}/reread`, { pages: [page], force_ocr: ocr });
      say(text.doc.reading);
    } catch (error) {
      setAsked(false);
      complain(error);
    }
  };
  return html`<button disabled=${asked} onClick=${ask}>${label}</button>`;
}
