// A page of the original as a picture, with the cited passage boxed.

import { get, picture } from "../api.js";
import { html, useEffect, useRef } from "../html.js";
import { useLoad } from "../load.js";
import { text } from "../strings.js";
import { Loaded } from "./states.js";

export const hasPages = (type) => type === "pdf" || type === "image";

/**
 * Page `page` of document `id`; `at` = {start, end} is boxed if it stands on this page, anew for each `revision`.
 * `reveal` scrolls to the box; `whenInexact` is shown where only the page is known.
 */
export function PagePicture({ id, page, at, width = 1400, revision, reveal = false, whenInexact }) {
  const image = useLoad(
    async (signal) => ({ page, url: await picture(`/documents/${id}/pages/${page}/image`, { width }, { signal }) }),
    [id, page, width],
  );
  const asked = at?.start !== undefined;
  const boxes = useLoad(
    async (signal) => (asked ? get(`/documents/${id}/pages/${page}/boxes`, { start: at.start, end: at.end }, { signal }) : null),
    [id, page, at?.start, at?.end, revision],
  );
  const sheet = useRef();
  const view = boxes.data?.page === image.data?.page ? boxes.data : null;
  const scroll = () => {
    const box = reveal && sheet.current?.querySelector(".box");
    if (box && box.getBoundingClientRect().bottom > innerHeight) box.scrollIntoView({ block: "center" });
  };
  useEffect(() => () => image.data && URL.revokeObjectURL(image.data.url), [image.data]);
  useEffect(scroll, [view]);
  return html`<${Loaded} load=${image}>
    ${(drawn) => html`<figure class="page">
      <div class="sheet" ref=${sheet}>
        <img src=${drawn.url} alt=${text.pageAlt(drawn.page)} onLoad=${scroll} />
        ${view && html`<${Boxes} view=${view} />`}
      </div>
      ${view && !view.exact && html`<figcaption class="muted">${text.pageOnly} ${whenInexact}</figcaption>`}
    </figure>`}
  <//>`;
}

const percent = (part, whole) => `${(100 * part) / whole}%`;

function Boxes({ view }) {
  return view.boxes.map(
    ([x0, y0, x1, y1]) => html`<span
      class="box"
      style=${{
        left: percent(x0, view.width),
        top: percent(y0, view.height),
        width: percent(x1 - x0, view.width),
        height: percent(y1 - y0, view.height),
      }}
    ></span>`,
  );
}
