// Text that is not saved yet, kept in this browser: a reload, a closed tab or a dead engine loses none of it.

const PREFIX = "kb-draft:";

/** A key for the draft of note `id`, or "new": each time that a note is edited has its own. */
export const newKey = (id) => `${PREFIX}${id}:${Math.random().toString(36).slice(2)}`;

/** Keep {text, title, tags, version}. Returns whether the browser had room for it. */
export function keepDraft(key, draft) {
  try {
    localStorage.setItem(key, JSON.stringify({ ...draft, at: new Date().toISOString() }));
    return true;
  } catch {
    return false;
  }
}

export const dropDraft = (key) => localStorage.removeItem(key);

/** The drafts of a note, of this tab and of others, newest first: [{key, text, title, tags, version, at}]. */
export function draftsOf(id) {
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(`${PREFIX}${id}:`));
  return keys.flatMap(parsed).sort((one, other) => other.at.localeCompare(one.at));
}

function parsed(key) {
  try {
    const draft = JSON.parse(localStorage.getItem(key));
    return typeof draft.text === "string" && typeof draft.at === "string" ? [{ ...draft, key }] : [];
  } catch {
    return [];
  }
}
