// The state of the page as the fragment of its address: a version, and the documents in JSON, compressed
// (deflate, RFC 1951) and as base64url (RFC 4648). What a link has is foreign: it is bounded and checked.

export const NAMES = ["policies", "objects", "parameters", "exceptions"];

const VERSION = "v1.";
const MAX_FRAGMENT = 200000; // characters: browsers and chats cut longer addresses
const MAX_TEXT = 512 * 1024; // bytes: the server takes no more

// LinkError says why a state has no link, or a link no state.
export class LinkError extends Error {}

// pass sends bytes through a stream, up to a number of bytes.
async function pass(bytes, stream, most) {
  const writer = stream.writable.getWriter();
  const written = writer.write(bytes).then(() => writer.close()).catch(() => { /* the reader has the error */ });
  const reader = stream.readable.getReader();
  const parts = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most) throw new LinkError("it has more than " + most.toLocaleString("en") + " bytes");
      parts.push(value);
    }
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error instanceof LinkError ? error : new LinkError("it is damaged");
  }
  await written;
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) { all.set(part, at); at += part.length; }
  return all;
}

// encode returns the fragment of documents, without #.
export async function encode(documents) {
  const text = JSON.stringify(Object.fromEntries(NAMES.map((name) => [name, documents[name] || ""])));
  const bytes = new TextEncoder().encode(text);
  if (bytes.length > MAX_TEXT) throw new LinkError("the documents are too long for a link");
  const packed = await pass(bytes, new CompressionStream("deflate-raw"), MAX_FRAGMENT);
  let binary = "";
  for (let at = 0; at < packed.length; at += 4096) binary += String.fromCharCode(...packed.subarray(at, at + 4096));
  const fragment = VERSION + btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (fragment.length > MAX_FRAGMENT) throw new LinkError("the documents are too long for a link");
  return fragment;
}

// decode returns the documents of a fragment; null for an empty one.
export async function decode(fragment) {
  if (fragment === "") return null;
  if (fragment.length > MAX_FRAGMENT) throw new LinkError("it is too long");
  if (!fragment.startsWith(VERSION)) throw new LinkError("it is of another version of the playground");
  let binary;
  try {
    binary = atob(fragment.slice(VERSION.length).replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    throw new LinkError("it is damaged");
  }
  const bytes = await pass(Uint8Array.from(binary, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"), MAX_TEXT);
  let documents;
  try {
    documents = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new LinkError("it is damaged");
  }
  const good = documents && typeof documents === "object" && !Array.isArray(documents) &&
    Object.entries(documents).every(([name, value]) => NAMES.includes(name) && typeof value === "string");
  if (!good) throw new LinkError("it has something else than documents");
  return documents;
}
