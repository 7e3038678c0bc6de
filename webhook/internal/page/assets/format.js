// Numbers, times and names for display.

const whole = new Intl.NumberFormat("en");
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short" });

export const count = (n) => whole.format(n || 0);
export const plural = (n, one, many) => count(n) + " " + (n === 1 ? one : many || one + "s");
const brief = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
export const when = (time) => brief.format(new Date(time));
export const at = (time) => moment.format(new Date(time));
export const clockOf = (time) => clock.format(new Date(time));
export const dayOf = (time) => day.format(new Date(time));

const known = (time) => Boolean(time) && !String(time).startsWith("0001-");
export { known };

// ago is how long since a time, roughly.
export function ago(time) {
  const seconds = Math.max(0, (Date.now() - new Date(time).getTime()) / 1000);
  if (seconds < 45) return "just now";
  for (const [name, size, below] of [["min", 60, 3600], ["h", 3600, 86400], ["d", 86400, Infinity]]) {
    if (seconds < below) return Math.max(1, Math.round(seconds / size)) + " " + name + " ago";
  }
  return "";
}

// short is the beginning of a digest or fingerprint.
export function short(digest, keep = 12) {
  const colon = digest.indexOf(":") + 1;
  const hex = digest.slice(colon);
  return hex.length > keep + 4 ? digest.slice(0, colon) + hex.slice(0, keep) + "…" : digest;
}

const JOINT = /[\s/@:]/;

// middle leaves the middle out of a long name, at its joints where it has any.
export function middle(text, most) {
  if (text.length <= most) return text;
  const tail = Math.ceil((most - 1) * 0.6);
  let head = most - 1 - tail, from = text.length - tail;
  while (head > 0 && !JOINT.test(text[head - 1])) head--;
  while (from < text.length && !JOINT.test(text[from - 1])) from++;
  if (from === text.length) from = text.length - tail;
  return text.slice(0, head) + "…" + text.slice(from);
}

// start is the beginning of a long sentence, in whole words.
export function start(text, most) {
  if (text.length <= most) return text;
  const space = text.lastIndexOf(" ", most - 1);
  return text.slice(0, space > most / 2 ? space : most - 1) + " …";
}

// named parts a reference into what comes before the last name, the name, and the tag.
export function named(reference) {
  const name = reference.split("@")[0];
  const slash = name.lastIndexOf("/") + 1;
  const colon = name.indexOf(":", slash);
  return {
    before: name.slice(0, slash),
    name: colon < 0 ? name.slice(slash) : name.slice(slash, colon),
    tag: colon < 0 ? "" : name.slice(colon),
  };
}

// bare is an identity without its scheme.
export const bare = (identity) => identity.replace(/^https:\/\//, "");
