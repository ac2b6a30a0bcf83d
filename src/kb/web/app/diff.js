// Differences of two texts, by lines, and by words within a changed line. Bounded: what differs too much is one block.

const MOST_EDITS = 1500;
const MOST_WORD_EDITS = 200;
const LONGEST_LINE = 4000; // characters that are still compared word by word
const WORDS = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;

export const SAME = "same";
export const REMOVED = "removed";
export const ADDED = "added";

/** The shortest way from one list to the other: [[kind, item]]; after too many edits, all of one, then all of the other. */
export function edits(before, after, most = MOST_EDITS) {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail++;
  const same = (items) => items.map((item) => [SAME, item]);
  const middle = path(before.slice(head, before.length - tail), after.slice(head, after.length - tail), most);
  return [...same(before.slice(0, head)), ...middle, ...same(before.slice(before.length - tail))];
}

/** Myers' greedy algorithm: `furthest` holds, for each diagonal, how far the path has come in `before`. */
function path(before, after, most) {
  const limit = Math.min(most, before.length + after.length);
  const middle = limit + 1;
  const furthest = new Int32Array(2 * limit + 3);
  const steps = [];
  for (let done = 0; done <= limit; done++) {
    steps.push(furthest.slice(middle - done - 1, middle + done + 2));
    for (let diagonal = -done; diagonal <= done; diagonal += 2) {
      const at = middle + diagonal;
      const down = diagonal === -done || (diagonal !== done && furthest[at - 1] < furthest[at + 1]);
      let x = down ? furthest[at + 1] : furthest[at - 1] + 1;
      while (x < before.length && x - diagonal < after.length && before[x] === after[x - diagonal]) x++;
      furthest[at] = x;
      if (x >= before.length && x - diagonal >= after.length) return backwards(before, after, steps);
    }
  }
  return [...before.map((item) => [REMOVED, item]), ...after.map((item) => [ADDED, item])];
}

function backwards(before, after, steps) {
  const found = [];
  let x = before.length;
  let y = after.length;
  for (let done = steps.length - 1; done >= 0; done--) {
    const furthest = (diagonal) => steps[done][diagonal + done + 1];
    const diagonal = x - y;
    const down = diagonal === -done || (diagonal !== done && furthest(diagonal - 1) < furthest(diagonal + 1));
    const fromX = done ? furthest(down ? diagonal + 1 : diagonal - 1) : 0;
    const fromY = done ? fromX - (down ? diagonal + 1 : diagonal - 1) : 0;
    while (x > fromX && y > fromY) {
      found.push([SAME, before[--x]]);
      y--;
    }
    if (done) found.push(down ? [ADDED, after[--y]] : [REMOVED, before[--x]]);
  }
  return found.reverse();
}

const lines = (text) => text.split(/\r\n|\n|\r/);

/** Both texts side by side: [{kind, left, right}] by lines; a line that stands on one side only has no other one. */
export function rows(before, after) {
  const found = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) {
      const kind = at >= added.length ? REMOVED : at >= removed.length ? ADDED : "changed";
      found.push({ kind, left: removed[at], right: added[at] });
    }
    removed = [];
    added = [];
  };
  for (const [kind, line] of edits(lines(before), lines(after))) {
    if (kind === REMOVED) removed.push(line);
    else if (kind === ADDED) added.push(line);
    else {
      flush();
      found.push({ kind, left: line, right: line });
    }
  }
  flush();
  return found;
}

/** What changed within a line, word by word: [[kind, words]]. */
export function words(left, right) {
  if (left.length + right.length > LONGEST_LINE) return [[REMOVED, left], [ADDED, right]];
  return edits(left.match(WORDS) ?? [], right.match(WORDS) ?? [], MOST_WORD_EDITS);
}

/** One text that holds all of both: where they differ, the lines of `mine` come before those of `theirs`. */
export const united = (mine, theirs) => edits(lines(mine), lines(theirs)).map(([, line]) => line).join("\n");
