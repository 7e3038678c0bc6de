// The chain of evidence of one image, as a diagram and as text.
//
// The diagram runs in one direction: from the name in the manifest to the policies, from left to
// right, and in a narrow window from top to bottom. After the digest there is one row for each
// proof, or for each policy that found none: evidence, signer, log entry, policy. The width of a
// line is the number of policies that rely on it.

import { h, put, s } from "./dom.js";
import { bare, known, middle, short, when } from "./format.js";
import { breakable, copyable, prose } from "./parts.js";

const ROWS = 12;
const FONT = 7.4; // the mean width of a character
const PROOF = 3; // the columns of a proof: evidence, signer, log entry

// model reads the record: the trunk, and rows of steps with the policies that they lead to.
export function model(record, it) {
  const trunk = [{ kind: "Name", text: record.reference || record.written, mono: true, note: record.written !== record.reference ? "written " + record.written : "" }];
  if (record.mirror) {
    trunk.push({
      kind: "Mirror", text: record.mirror.target || "not redirected", shown: (record.mirror.target || "not redirected").split("@")[0], mono: Boolean(record.mirror.target), state: record.mirror.target ? "" : "none",
      note: record.mirror.name + (record.mirror.target ? "" : record.mirror.why ? ": " + record.mirror.why : (record.mirror.attempts || []).map((a) => ": " + a.target + " " + a.state).join("")),
    });
  }
  trunk.push(it.digest ? { kind: "Digest", text: it.digest, shown: short(it.digest), mono: true } : { kind: "Digest", text: "not resolved", state: "none" });
  const rows = [], seen = new Map();
  const decisions = record.decisions || [];
  for (const decision of decisions) {
    const policy = policyStep(decision);
    const proofs = decision.proofs || [];
    if (decision.result !== "pass" || proofs.length === 0) rows.push({ steps: [lacking(decision)], policies: [policy] });
    for (const proof of proofs) {
      if (decision.result !== "pass") policy.partly = true;
      const key = JSON.stringify([decision.result !== "pass", proof.role, proof.format, proof.predicateType, proof.signer, proof.found]);
      const row = seen.get(key);
      if (row) row.policies.push(policy);
      else { const made = { steps: proofSteps(proof), policies: [policy] }; seen.set(key, made); rows.push(made); }
    }
  }
  if (decisions.length === 0) rows.push({ steps: [{ kind: "Evidence", text: "not required", state: "none", span: PROOF }], policies: [{ kind: "Policy", text: "no policy matches it", state: "none" }] });
  return { trunk, rows: rows.slice(0, ROWS), leftOut: Math.max(0, rows.length - ROWS), all: decisions.length };
}

function policyStep(d) {
  const state = d.effect === "warn" ? "warned" : { pass: "allowed", fail: "denied", indeterminate: "error", skipped: "none" }[d.result] || "";
  const result = { pass: "pass", fail: "fail", indeterminate: "indeterminate", skipped: "skipped" }[d.result] || d.result;
  return { kind: "Policy", text: d.policy.name, note: d.rule || "", outcome: result + (d.effect === "warn" && d.result !== "pass" ? ", admitted" : ""), state, policy: d.policy };
}

// lacking is in place of the steps that are missing.
function lacking(d) {
  const reason = (d.reasons || [])[0];
  if (d.result === "pass" || d.result === "skipped") return { kind: "Evidence", text: d.result === "skipped" ? "not required: the policy exempts the image" : "not required", state: "none", span: PROOF };
  return {
    kind: d.result === "indeterminate" ? "Could not be verified" : "Not verified", text: reason ? reason.message : "nothing was verified",
    state: d.effect === "warn" ? "warned" : d.result === "indeterminate" ? "error" : "denied", span: PROOF, failed: true,
    note: reason ? [reason.code, reason.expected && "expected " + reason.expected, reason.found && "found " + reason.found].filter(Boolean).join(" · ") : "",
  };
}

function proofSteps(proof) {
  const steps = [{
    kind: proof.role === "attestation" ? "Attestation" : "Signature",
    text: proof.predicateType && proof.role === "attestation" ? bare(proof.predicateType) : { cosign: "cosign", bundle: "Sigstore bundle", notation: "Notary Project" }[proof.format] || proof.format,
    note: proof.found ? (proof.found.manifest ? short(proof.found.manifest) : proof.found.via ? "at " + proof.found.via : "") : "",
    full: proof.found ? [proof.format, proof.found.repository, proof.found.via, proof.found.manifest].filter(Boolean).join(" ") : "",
  }];
  const signer = proof.signer || {};
  if (signer.subject) {
    steps.push({
      kind: "Certificate", text: bare(signer.subject), full: signer.subject + (signer.issuer ? ", issued by " + signer.issuer : ""),
      note: [signer.issuer && "by " + bare(signer.issuer), known(proof.signedAt) && when(proof.signedAt)].filter(Boolean).join(" · "),
    });
  } else {
    steps.push({ kind: "Key", text: signer.keyFingerprint || "a key", shown: signer.keyFingerprint ? short(signer.keyFingerprint) : "a key", full: signer.keyFingerprint || "", mono: true });
  }
  const entry = (proof.logEntries || [])[0];
  steps.push(entry ? { kind: "Log entry", text: "#" + entry.index, mono: true, note: known(entry.time) ? when(entry.time) : "", full: entry.logID ? "log " + entry.logID : "" }
    : { kind: "Log", text: "log: not required", state: "none" });
  return steps;
}

const JOINT = /[\s/@:\-.,_=·]/;
// digest reports whether a place is the joint of a digest, which stays whole.
const digest = (text, n) => /sha(256|512):$/.test(text.slice(0, n));
const bareEnds = (line) => line.replace(/^[\s·,]+|[\s·]+$/g, "");

// wrap breaks a text into lines between words, and at the joints of names. Only a word that is
// longer than a line is cut, and ends with an ellipsis.
export function wrap(text, width, lines) {
  const out = [];
  let rest = bareEnds(text);
  while (rest) {
    if (rest.length <= width) { out.push(rest); break; }
    let cut = 0;
    for (let n = width; n > 0 && !cut; n--) if (JOINT.test(rest[n - 1]) && !digest(rest, n) || /\s/.test(rest[n])) cut = n;
    if (out.length === lines - 1 || !cut) {
      let n = Math.min(cut || width, width - 1);
      while (n > 1 && cut && !JOINT.test(rest[n - 1])) n--;
      const kept = bareEnds(rest.slice(0, n > 1 ? n : width - 1)) + "…";
      out.push(kept);
      if (out.length >= lines) break;
      const next = rest.slice(width).search(JOINT); // the word is left out
      rest = next < 0 ? "" : bareEnds(rest.slice(width + next + 1));
      continue;
    }
    out.push(bareEnds(rest.slice(0, cut)));
    rest = bareEnds(rest.slice(cut));
  }
  return out;
}

// shorter has digests and fingerprints that fit in a line of so many characters.
const shorter = (text, room = 40) => text.replace(/((?:sha256|sha512):)?[0-9a-f]{12,}…?/g, (hex) => hex.length <= room ? hex : short(hex.replace("…", ""), Math.max(4, Math.min(12, room - 8))));

// measured returns its lines in a width, and the height of the step.
function measured(step, width) {
  const room = width - 26 - (MARKS[step.state] ? 8 : 0);
  const most = Math.floor(room / FONT), small = Math.floor(room / 6.6);
  const lines = wrap(shorter(step.shown || step.text, most), most, 6);
  const notes = step.note ? wrap(shorter(step.note, small), small, 3) : [];
  if (step.outcome) notes.push(step.outcome);
  return { ...step, lines, notes, width, height: 32 + lines.length * 17 + (notes.length ? 3 + notes.length * 15 : 0) };
}

const MARKS = { allowed: "M5 8.300l2.200 2.200L11.500 6", denied: "M5.500 5.500l5 5M10.500 5.500l-5 5", warned: "M8 4.500v4M8 11.200v.01", error: "M6 6.200a2 2 0 1 1 2.600 1.900c-.4.2-.6.500-.6 1M8 11.300v.01" };

const stamp = (state, x, y) => s("g", { class: "stamp", transform: `translate(${x} ${y})` }, s("circle", { cx: 8, cy: 8, r: 8 }), s("path", { d: MARKS[state] }));

function box(step, x, y) {
  const g = s("g", { class: "step" + (step.state ? " s-" + step.state : ""), transform: `translate(${x} ${y})` },
    s("title", {}, [step.kind, step.text, step.full, step.note, step.outcome].filter(Boolean).join("\n")),
    s("rect", { width: step.width, height: step.height, rx: 9 }),
    s("text", { class: "kind", x: 13, y: 20 }, step.kind),
    step.lines.map((line, n) => s("text", { class: step.mono ? "mono" : "words", x: 13, y: 39 + n * 17 }, line)),
    step.notes.map((line, n) => s("text", { class: "note", x: 13, y: 41 + step.lines.length * 17 + n * 15 }, line)));
  if (MARKS[step.state]) g.append(stamp(step.state, step.width - 26, 8));
  return g;
}

// thick is the width of a line that so many policies rely on.
const thick = (policies) => Math.min(7, 1.5 + 1.5 * (Math.max(1, policies) - 1));

// edge is a line to a step. The one to the first step that fails has a mark.
function edge(d, step, policies, mark) {
  const state = step.state ? " s-" + step.state : "";
  const line = s("path", { class: "edge" + state + (step.failed ? " failed" : ""), d, "stroke-width": thick(policies) });
  return step.failed ? [line, s("g", { class: "break" + state }, s("title", {}, "This link failed"), stamp(step.state, mark[0] - 8, mark[1] - 8))] : [line];
}

function across(x1, y1, x2, y2, step, policies) {
  const half = (x2 - x1) / 2;
  return edge(`M${x1} ${y1}C${x1 + half} ${y1} ${x2 - half} ${y2} ${x2} ${y2}`, step, policies, [x1 + half, (y1 + y2) / 2]);
}

const down = (x, y1, y2, step, policies) => edge(`M${x} ${y1}V${y2}`, step, policies, [x, (y1 + y2) / 2]);

function frame(width, height, label) {
  return s("svg", { class: "chain", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
}

// wide draws from left to right.
function wide(m, width, label) {
  const gap = 34, cols = m.trunk.length + PROOF + 1;
  const w = Math.min(220, (width - 2 - gap * (cols - 1)) / cols);
  const x = (col) => 1 + col * (w + gap);
  const spanned = (n) => w * n + gap * (n - 1);
  const trunk = m.trunk.map((step) => measured(step, w));
  const rows = m.rows.map((row) => ({
    steps: row.steps.map((step) => measured(step, spanned(step.span || 1))), policies: row.policies.map((p) => measured(p, w)),
  }));
  for (const row of rows) {
    row.beside = row.policies.reduce((all, p) => all + p.height, 0) + 10 * (row.policies.length - 1);
    row.height = Math.max(row.beside, ...row.steps.map((step) => step.height));
  }
  const rowsHeight = rows.reduce((all, r) => all + r.height, 0) + 18 * (rows.length - 1);
  const height = Math.max(rowsHeight, ...trunk.map((t) => t.height)) + 4;
  const svg = frame(width, height, label), middleY = height / 2, boxes = [];
  trunk.forEach((t, n) => {
    if (n > 0) svg.append(...across(x(n - 1) + w, middleY, x(n), middleY, t, m.all));
    boxes.push(box(t, x(n), middleY - t.height / 2));
  });
  let top = 2 + (height - 4 - rowsHeight) / 2;
  const first = m.trunk.length;
  for (const row of rows) {
    const centre = top + row.height / 2;
    let col = first, fromX = x(first - 1) + w, fromY = middleY;
    for (const step of row.steps) {
      svg.append(...across(fromX, fromY, x(col), centre, step, row.policies.length));
      boxes.push(box(step, x(col), centre - step.height / 2));
      fromX = x(col) + step.width;
      fromY = centre;
      col += step.span || 1;
    }
    let p = centre - row.beside / 2;
    for (const policy of row.policies) {
      svg.append(...across(fromX, centre, x(first + PROOF), p + policy.height / 2, policy, 1));
      boxes.push(box(policy, x(first + PROOF), p));
      p += policy.height + 10;
    }
    top += row.height + 18;
  }
  svg.append(...boxes);
  return svg;
}

// tall draws from top to bottom; the steps of one row are indented.
function tall(m, width, label) {
  const gap = 26, indent = 26;
  const lines = [], boxes = [];
  let y = 2;
  m.trunk.forEach((step, n) => {
    const t = measured({ ...step, span: 2 }, width - 2);
    if (n > 0) lines.push(...down(24, y - gap, y, t, m.all));
    boxes.push(box(t, 1, y));
    y += t.height + gap;
  });
  const spine = y - gap;
  let end = spine;
  for (const row of m.rows) {
    [...row.steps, ...row.policies].forEach((step, n) => {
      const t = measured({ ...step, span: 2 }, width - 2 - indent);
      boxes.push(box(t, indent + 1, y));
      if (n === 0) { end = y + t.height / 2; lines.push(...across(10, end, indent + 1, end, t, row.policies.length)); }
      else lines.push(...down(indent + 24, y - gap, y, t, n < row.steps.length ? row.policies.length : row.policies.length - (n - row.steps.length)));
      y += t.height + gap;
    });
  }
  const svg = frame(width, y - gap + 4, label);
  svg.append(s("path", { class: "edge", d: `M10 ${spine}V${end}`, "stroke-width": thick(m.rows.length) }), ...lines, ...boxes);
  return svg;
}

// chain is the diagram with its caption, drawn again when its size changes.
export function chain(record, it) {
  const m = model(record, it);
  const label = sentence(m);
  const picture = h("div", { class: "picture" });
  let width = 0;
  new ResizeObserver(() => {
    const room = Math.floor(picture.clientWidth);
    if (!room || room === width) return;
    width = room;
    put(picture, room >= 900 ? wide(m, room, label) : tall(m, room, label));
  }).observe(picture);
  const failed = m.rows.some((row) => row.steps.some((step) => step.failed));
  return h("figure", { class: "chain-figure" }, picture,
    h("figcaption", { class: "muted" }, "Read it from the name to the policies. The width of a line is the number of policy results that rely on it, here up\u00a0to\u00a0", String(Math.max(1, m.all, ...m.rows.map((row) => row.policies.length))), ".",
      failed && " A mark on a dashed line is the link that failed; the wide step after it is in place of the steps that are missing.",
      m.leftOut > 0 && " And " + m.leftOut + " more, which the table below names."));
}

// sentence is the text of the diagram for screen readers.
function sentence(m) {
  const told = (step) => step.kind + ": " + step.text;
  return "Chain of evidence. " + m.trunk.map(told).join(", then ") + ". " +
    m.rows.map((row) => row.steps.map((step) => (step.failed ? "failed link, " : "") + told(step)).concat(row.policies.map((p) => "policy " + p.text + (p.outcome ? ", " + p.outcome : ""))).join(", then ")).join(". ") + ".";
}

// words are the same as a list, with texts that are too long for the diagram.
export function words(record, it) {
  const m = model(record, it);
  const item = (step) => h("li", {}, h("span", { class: "muted" }, step.kind, " "),
    step.mono && step.state !== "none" ? copyable(step.full || step.text, breakable(middle(shorter(step.full || step.text), 120)), step.kind.toLowerCase()) : h("span", {}, prose(step.kind === "Certificate" ? step.full : step.text)),
    (step.note || step.outcome) && h("span", { class: "muted" }, " (", prose([step.note, step.outcome].filter(Boolean).join(", ")), ")"));
  return h("details", { class: "in-words" }, h("summary", {}, "As text"),
    h("ol", {}, m.trunk.map(item)),
    m.rows.map((row, n) => [m.rows.length > 1 && h("h3", {}, "Path " + (n + 1)), h("ol", {}, row.steps.map(item), row.policies.map(item))]),
    extensions(record));
}

// extensions are the certificates' fields beside the identity.
function extensions(record) {
  const seen = new Map();
  for (const d of record.decisions || []) for (const p of d.proofs || []) for (const [name, value] of Object.entries((p.signer || {}).extensions || {})) seen.set(name + " " + value, [name, value]);
  if (seen.size === 0) return null;
  return [h("h3", {}, "Other fields of the certificate"), h("dl", { class: "pairs" }, [...seen.values()].map(([name, value]) => [h("dt", {}, name), h("dd", {}, prose(value))]))];
}
