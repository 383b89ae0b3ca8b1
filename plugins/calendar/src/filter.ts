// Decides from the text of an event that it is outside of a span, without parsing it. What is not seen at once is inside.

/** Properties that begin with R and say nothing of the time. */
const HARMLESS = /^(?:EQUEST-STATUS|ELATED-TO|ESOURCES)[;:]/;

/** The value of a short duration, of at most six weeks, after the name. */
const SHORT = /^[^:\n]*:\+?P(?:T\d{1,3}[HMS]|[0-9]D|[1-6]W)\r?\n/;

/**
 * True if the text of an event shows that it is outside of a span of days. Days have the form `20261120`. The span must have
 * some days more on each side: the text has local times, and their zones are not known here.
 */
export function surelyOutside(text: string, first: string, last: string): boolean {
  let start = "";
  let end = "";
  for (const piece of text.split("\nDT")) {
    if (piece.startsWith("START")) start ||= dayIn(piece);
    else if (piece.startsWith("END")) end ||= dayIn(piece);
  }
  // Without a start, or with one in another form, the parser must look.
  if (start === "" || start === "?" || end === "?" || (end !== "" && end < start)) return false;
  if (start <= last && (end || start) >= first) return false;
  const isOver = start < first;
  if (isOver && end === "") {
    const duration = text.split("\nDURATION", 2)[1];
    if (duration !== undefined && (!SHORT.test(duration) || months(start, first) < 3)) return false;
  }
  const others = text.split("\nR");
  for (let at = 1; at < others.length; at += 1) {
    const piece = others[at] ?? "";
    if (piece.startsWith("RULE")) {
      const until = isOver ? /^RULE[^\r\n]*[:;]UNTIL=(\d{8})/.exec(piece)?.[1] : undefined;
      // Nothing begins before the start. A long event may still last after the last time that it begins.
      if (isOver && (until === undefined || months(until, first) < 3 || months(start, end || start) > 1)) return false;
    } else if (piece.startsWith("ECURRENCE-ID")) {
      const replaced = dayIn(piece);
      if (replaced === "?" || (replaced >= first && replaced <= last) || piece.startsWith("ECURRENCE-ID;RANGE")) return false;
    } else if (!HARMLESS.test(piece)) return false;
  }
  return true;
}

/** The date in the value of a property's text, or `?`. */
function dayIn(piece: string): string {
  const at = piece.indexOf(":") + 1;
  const day = piece.slice(at, at + 8);
  const number = Number(day);
  const [month, inMonth] = [Math.floor(number / 100) % 100, number % 100];
  // Another text is no number, or has no month.
  return day.length === 8 && number > 10_000 && month > 0 && month < 13 && inMonth > 0 && inMonth < 32 && number % 1 === 0 ? day : "?";
}

/** The months from one day to another. */
function months(from: string, to: string): number {
  return (Number(to.slice(0, 4)) - Number(from.slice(0, 4))) * 12 + Number(to.slice(4, 6)) - Number(from.slice(4, 6));
}
