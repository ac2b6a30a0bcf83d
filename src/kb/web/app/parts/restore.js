// Bringing a document back from the trash.

import { post } from "../api.js";
import { text } from "../strings.js";
import { confirm } from "./dialog.js";
import { complain, say } from "./toast.js";

/** Resolves to whether it is back. Where another document has its path by now, the person decides. */
export async function restore({ id, title }) {
  const send = (query) => post(`/trash/${id}/restore`, undefined, { query });
  try {
    await send().catch(async (error) => {
      const asked = { title: text.trash.taken, message: error.message, action: text.trash.withoutPath, danger: false };
      if (error.code !== "conflict" || !error.details.document_id) throw error;
      if (!(await confirm(asked))) throw new DOMException("", "AbortError");
      await send({ without_path: true });
    });
    say(text.trash.restored(title));
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}
