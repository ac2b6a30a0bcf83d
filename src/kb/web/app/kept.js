// What waits to be sent, kept in the browser: it outlives a reload, a closed tab and a crash of the browser.

const NAME = "kb-adding";
const ITEMS = "items"; // a small record of each
const FILES = "files"; // the content, until the engine has it

let opened;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const asked = indexedDB.open(NAME, 1);
    asked.onupgradeneeded = () => {
      asked.result.createObjectStore(ITEMS, { keyPath: "key" });
      asked.result.createObjectStore(FILES);
    };
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
  return opened;
}

/** Run `work(items, files)` in one transaction; resolves to what the request that it returns has found. */
async function within(mode, work) {
  const transaction = (await open()).transaction([ITEMS, FILES], mode);
  return new Promise((resolve, reject) => {
    transaction.onabort = () => reject(transaction.error ?? new Error("aborted"));
    const asked = work(transaction.objectStore(ITEMS), transaction.objectStore(FILES));
    transaction.oncomplete = () => resolve(asked?.result);
  });
}

/** Keep these records and their files: all of them, or none and an error. */
export const keep = (entries) =>
  within("readwrite", (items, files) => {
    for (const { record, file } of entries) {
      items.put(record);
      if (file) files.put(file, record.key);
    }
  });

/** Change records, and let go of the files of those that the engine has. */
export const update = (records, sent) =>
  within("readwrite", (items, files) => {
    for (const record of records) items.put(record);
    for (const key of sent) files.delete(key);
  });

export const remove = (keys) =>
  within("readwrite", (items, files) => {
    for (const key of keys) {
      items.delete(key);
      files.delete(key);
    }
  });

/** Every record, the oldest first. */
export const all = () => within("readonly", (items) => items.getAll());

export const fileOf = (key) => within("readonly", (_, files) => files.get(key));
