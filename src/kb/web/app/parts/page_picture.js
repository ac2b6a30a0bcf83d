// A page of the original as a picture, with the cited passage boxed.

import { get, picture } from "../api.js";
import { html, useEffect } from "../html.js";
import { useLoad } from "../load.js";
import { text } from "../strings.js";
import { Loaded } from "./states.js";

export const hasPages = (type) => type === "pdf" || type === "image";

/** Page `page` of document `id`; `at` = {start, end} is boxed if it stands on this page. */
export function PagePicture({ id, page, at, width = 1400 }) {
  const image = useLoad((signal) => picture(`/documents/${id}/pages/${page}/image`, { width }, { signal }), [id, page, width]);
  const asked = at?.start !== undefined;
  const boxes = useLoad(
    async (signal) => (asked ? get(`/documents/${id}/pages/${page}/boxes`, { start: at.start, end: at.end }, { signal }) : null),
    [id, page, at?.start, at?.end],
  );
  useEffect(() => () => image.data && URL.revokeObjectURL(image.data), [image.data]);
  return html`<${Loaded} load=${image}>
    ${(url) => html`<figure class="page">
      <div class="sheet">
        <img src=${url} alt=${text.pageAlt(page)} />
        ${boxes.data && html`<${Boxes} view=${boxes.data} />`}
      </div>
      ${boxes.data && !boxes.data.exact && html`<figcaption class="muted">${text.pageOnly}</figcaption>`}
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
