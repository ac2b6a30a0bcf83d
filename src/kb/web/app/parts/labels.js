// Small labels that many views show: a document's type, its tags, a time.

import { ago, moment } from "../format.js";
import { html } from "../html.js";

export const TypeBadge = ({ type }) => html`<span class="badge type-${type}">${type}</span>`;

/** Tags as links to a search or list that is narrowed to them. */
export const TagLinks = ({ tags, to = (tag) => `/documents?tag=${encodeURIComponent(tag)}` }) =>
  tags.map((tag) => html`<a class="tag" href=${to(tag)} dir="auto">${tag}</a>`);

export const Time = ({ at }) => html`<time datetime=${at} title=${moment(at)}>${ago(at)}</time>`;

export const Bar = ({ share, kind = "" }) =>
  html`<span class="bar ${kind}"><span style=${{ width: `${Math.max(0, Math.min(share, 1)) * 100}%` }}></span></span>`;

/** A sentence in which `backticks` mark what is typed or shown in a terminal. */
export const Prose = ({ text }) => text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
