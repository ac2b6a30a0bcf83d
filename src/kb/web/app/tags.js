// Tags as people type them: separated by commas.

export const parseTags = (typed) => [...new Set(typed.split(",").map((tag) => tag.trim()).filter(Boolean))];
