// Figures and times as people read them.

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];
const STEPS = [
  ["year", 31536000],
  ["month", 2592000],
  ["week", 604800],
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export const count = (number) => number.toLocaleString("en");

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function size(bytes) {
  const step = bytes ? Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1) : 0;
  const value = bytes / 2 ** (10 * step);
  return `${value < 10 && step ? value.toFixed(1) : Math.round(value)} ${UNITS[step]}`;
}

/** "3 days ago"; "now" within a minute. */
export function ago(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, length] = STEPS.find(([, length]) => Math.abs(seconds) >= length) ?? [];
  return unit ? relative.format(Math.round(seconds / length), unit) : "now";
}

export const moment = (time) => exact.format(new Date(time));

export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export const WORKBOOKS = new Set(["xlsx", "ods", "xls", "xlsb"]); // they have sheets of cells
const PLACES = ["member", "message", "page", "slide", "sheet", "chapter", "cell", "rows", "symbol", "picture"]; // the outermost first

/** Where a passage stands, in words: page 3, sheet Costs, cell 7, the heading path below the title. */
export function place(anchor = {}, title = "") {
  const parts = PLACES.filter((part) => anchor[part]).map((part) => `${part} ${anchor[part]}`);
  let heading = anchor.symbol ? "" : (anchor.heading ?? ""); // a symbol names more than its heading
  if (heading === title) heading = "";
  if (heading.startsWith(`${title} > `)) heading = heading.slice(title.length + 3);
  if (heading) parts.push(heading.replaceAll(" > ", " › "));
  if (anchor.metadata) parts.push("metadata");
  return parts.join(" · ");
}
