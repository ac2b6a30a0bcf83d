// Files from a drop, a picker or the clipboard, as {file, path}; folders are walked through.

export const MOST_FILES = 20000;
const DEEPEST = 50; // folders
const BATCH = 200;

const hidden = (path) => path.split("/").some((part) => part.startsWith("."));

/**
 * Hand what was dropped to `take([{file, path}])`, in batches. Resolves to {files, hidden, unread, full}: how many were taken,
 * begin with a dot, could not be read; and whether there were too many.
 */
export async function gather(transfer, take) {
  // The list is gone after the event: every entry is asked for at once.
  const entries = [...transfer.items]
    .filter((item) => item.kind === "file")
    .map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile())
    .filter(Boolean);
  const walk = new Walk(take);
  for (const entry of entries) await walk.visit(entry, 0);
  return walk.end();
}

/** The same for files that a picker gave. */
export async function gatherPicked(files, take) {
  const walk = new Walk(take);
  for (const file of files) {
    const path = file.webkitRelativePath;
    if (path && hidden(path)) walk.found.hidden++;
    else walk.add(file, path || file.name);
  }
  return walk.end();
}

class Walk {
  constructor(take) {
    this.take = take;
    this.batch = [];
    this.found = { files: 0, hidden: 0, unread: 0, full: false };
  }

  async visit(entry, depth) {
    if (entry instanceof File) return this.add(entry, entry.name);
    if (depth && hidden(entry.name)) return void this.found.hidden++;
    if (this.found.full) return;
    try {
      if (entry.isFile) return this.add(await fileOf(entry), entry.fullPath.replace(/^\//, ""));
      if (depth >= DEEPEST) return void this.found.unread++;
      for (const child of await children(entry)) await this.visit(child, depth + 1);
    } catch {
      this.found.unread++;
    }
  }

  add(file, path) {
    if (this.found.files >= MOST_FILES) return void (this.found.full = true);
    this.found.files++;
    this.batch.push({ file, path });
    if (this.batch.length >= BATCH) this.flush();
  }

  flush() {
    if (this.batch.length) this.take(this.batch);
    this.batch = [];
  }

  end() {
    this.flush();
    return this.found;
  }
}

const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));

/** Everything in a folder. The browser gives it in portions, the last one empty. */
async function children(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const portion = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!portion.length) return found;
    found.push(...portion);
    if (found.length > MOST_FILES) return found;
  }
}
