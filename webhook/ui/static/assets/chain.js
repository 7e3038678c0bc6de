// The chain of evidence of one image, as a diagram and as text.
//
// On the left is the trunk: the reference, the mirror where one matches it, and the
// digest. From the digest one row leads to the right for each proof, or for each policy
// that found none: evidence, certificate or key, identity, log entry, policy. Where
// there is little room, the steps are below each other.

import { h, put, s } from "./dom.js";
import { bare, known, middle, short, when } from "./format.js";
import { copyable } from "./parts.js";

const ROWS = 12;
const FONT = { plain: 7.4, mono: 7.4 };

// model reads the record: the trunk, and rows of steps with the policies that they lead to.
export function model(record, it) {
  const trunk = [{ kind: "Reference", text: record.reference || record.written, mono: true, note: record.written !== record.reference ? "written " + record.written : "" }];
  if (record.mirror) {
    trunk.push({
      kind: "Mirror", text: record.mirror.target || "not redirected", shown: (record.mirror.target || "not redirected").split("@")[0], mono: Boolean(record.mirror.target), state: record.mirror.target ? "" : "none",
      note: record.mirror.name + (record.mirror.target ? "" : record.mirror.why ? ": " + record.mirror.why : (record.mirror.attempts || []).map((a) => ": " + a.target + " " + a.state).join("")),
    });
  }
  trunk.push(it.digest ? { kind: "Digest", text: it.digest, shown: short(it.digest, 20), mono: true } : { kind: "Digest", text: "not resolved", state: "none" });
  const rows = [], seen = new Map();
  for (const decision of record.decisions) {
    const policy = policyStep(decision);
    const proofs = decision.proofs || [];
    if (proofs.length === 0) {
      rows.push({ steps: [lacking(decision)], policies: [policy] });
      continue;
    }
    for (const proof of proofs) {
      const key = JSON.stringify([proof.role, proof.format, proof.predicateType, proof.signer, proof.found]);
      const row = seen.get(key);
      if (row) row.policies.push(policy);
      else { const made = { steps: proofSteps(proof), policies: [policy] }; seen.set(key, made); rows.push(made); }
    }
  }
  if (record.decisions.length === 0) rows.push({ steps: [{ kind: "Evidence", text: "nothing was asked for", state: "none", span: 4 }], policies: [{ kind: "Policy", text: "none speaks of it", state: "none" }] });
  return { trunk, rows: rows.slice(0, ROWS), leftOut: Math.max(0, rows.length - ROWS) };
}

function policyStep(d) {
  const state = d.effect === "warn" ? "warned" : { pass: "allowed", fail: "denied", indeterminate: "error", skipped: "none" }[d.result] || "";
  return { kind: "Policy", text: d.policy.name, note: [d.rule, { pass: "pass", fail: "fail", indeterminate: "indeterminate", skipped: "skipped" }[d.result] + (d.effect === "warn" && d.result !== "pass" ? ", admitted" : "")].filter(Boolean).join(" · "), state, policy: d.policy };
}

function lacking(d) {
  const reason = (d.reasons || [])[0];
  if (d.result === "pass" || d.result === "skipped") return { kind: "Evidence", text: d.result === "skipped" ? "not asked for" : "none needed", state: "none", span: 4 };
  return {
    kind: d.result === "indeterminate" ? "Could not be verified" : "Not verified", text: reason ? reason.message : "nothing was verified", state: d.result === "indeterminate" ? "error" : "denied", span: 4,
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
    steps.push({ kind: "Certificate", text: signer.issuer ? "issued for " + bare(signer.issuer) : "of a certificate authority", full: signer.issuer || "", note: known(proof.signedAt) ? when(proof.signedAt) : "" },
      { kind: "Identity", text: bare(signer.subject), full: signer.subject });
  } else {
    steps.push({ kind: "Key", text: signer.keyFingerprint ? short(signer.keyFingerprint, 24) : "a key", full: signer.keyFingerprint || "", mono: true, span: 2 });
  }
  const entry = (proof.logEntries || [])[0];
  steps.push(entry ? { kind: "Log entry", text: "#" + entry.index, mono: true, note: known(entry.time) ? when(entry.time) : "", full: entry.logID ? "log " + entry.logID : "" }
    : { kind: "Log entry", text: "not required", state: "none" });
  return steps;
}

// wrap breaks a text into lines, at places where names have joints.
function wrap(text, width, lines) {
  const out = [];
  let rest = text;
  while (rest && out.length < lines) {
    if (rest.length <= width) { out.push(rest); rest = ""; break; }
    if (out.length === lines - 1) { out.push(middle(rest, width)); rest = ""; break; }
    let cut = width;
    for (let n = width; n > width * 0.5; n--) if (/[\s/@:\-.,·]/.test(rest[n - 1])) { cut = n; break; }
    out.push(rest.slice(0, cut).trimEnd());
    rest = rest.slice(cut).trimStart();
  }
  return out;
}

// measured returns its lines in a width, and the height of the step.
function measured(step, width) {
  const room = width - 26;
  const lines = wrap(step.shown || step.text, Math.floor(room / (step.mono ? FONT.mono : FONT.plain)), 3);
  const notes = step.note ? wrap(step.note, Math.floor(room / 6.8), step.span > 2 ? 2 : 1) : [];
  return { ...step, lines, notes, width, height: 32 + lines.length * 17 + (notes.length ? 3 + notes.length * 15 : 0) };
}

const MARKS = { allowed: "M5 8.300l2.200 2.200L11.500 6", denied: "M5.500 5.500l5 5M10.500 5.500l-5 5", warned: "M8 4.500v4M8 11.200v.01", error: "M6 6.200a2 2 0 1 1 2.600 1.900c-.4.2-.6.500-.6 1M8 11.300v.01" };

function box(step, x, y) {
  const g = s("g", { class: "step" + (step.state ? " s-" + step.state : ""), transform: `translate(${x} ${y})` },
    s("title", {}, [step.kind, step.text, step.full, step.note].filter(Boolean).join("\n")),
    s("rect", { width: step.width, height: step.height, rx: 9 }),
    s("text", { class: "kind", x: 13, y: 20 }, step.kind),
    step.lines.map((line, n) => s("text", { class: step.mono ? "mono" : "words", x: 13, y: 39 + n * 17 }, line)),
    step.notes.map((line, n) => s("text", { class: "note", x: 13, y: 41 + step.lines.length * 17 + n * 15 }, line)));
  if (MARKS[step.state]) {
    g.append(s("g", { class: "stamp", transform: `translate(${step.width - 26} 8)` }, s("circle", { cx: 8, cy: 8, r: 8 }), s("path", { d: MARKS[step.state] })));
  }
  return g;
}

const across = (x1, y1, x2, y2, state) => {
  const middle = Math.max(12, (x2 - x1) / 2);
  return s("path", { class: "edge" + (state ? " s-" + state : ""), d: `M${x1} ${y1}C${x1 + middle} ${y1} ${x2 - middle} ${y2} ${x2 - 5} ${y2}`, "marker-end": "url(#tip)" });
};
const down = (x, y1, y2, state) => s("path", { class: "edge" + (state ? " s-" + state : ""), d: `M${x} ${y1}V${y2 - 5}`, "marker-end": "url(#tip)" });

function frame(width, height, label) {
  return s("svg", { class: "chain", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    s("defs", {}, s("marker", { id: "tip", viewBox: "0 0 8 8", refX: 4, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, s("path", { class: "tip-head", d: "M1 1l5 3-5 3" }))));
}

// wide draws from left to right.
function wide(m, width, label) {
  const gap = 24, cols = 6;
  const w = Math.min(232, (width - 2 - gap * (cols - 1)) / cols);
  const x = (col) => 1 + col * (w + gap);
  const spanned = (n) => w * n + gap * (n - 1);
  const trunk = m.trunk.map((step) => measured(step, w));
  const trunkHeight = trunk.reduce((all, t) => all + t.height, 0) + gap * (trunk.length - 1);
  const rows = m.rows.map((row) => ({
    steps: row.steps.map((step) => measured(step, spanned(step.span || 1))), policies: row.policies.map((p) => measured(p, w)),
  }));
  for (const row of rows) {
    row.beside = row.policies.reduce((all, p) => all + p.height, 0) + 10 * (row.policies.length - 1);
    row.height = Math.max(row.beside, ...row.steps.map((step) => step.height));
  }
  const rowsHeight = rows.reduce((all, r) => all + r.height, 0) + 18 * (rows.length - 1);
  const height = Math.max(trunkHeight, rowsHeight) + 4;
  const svg = frame(width, height, label);
  let y = 2 + (rowsHeight < trunkHeight ? 0 : Math.min(40, (rowsHeight - trunkHeight) / 2)), digest = null;
  trunk.forEach((t, n) => {
    svg.append(box(t, x(0), y));
    if (n < trunk.length - 1) svg.append(down(x(0) + w / 2, y + t.height, y + t.height + gap));
    else digest = y + t.height / 2;
    y += t.height + gap;
  });
  // One row alone is beside the digest; more of them begin at the top.
  let top = 2 + Math.max(0, Math.min(height - 4 - rowsHeight, digest - rowsHeight / 2));
  const ends = [], named = (row) => JSON.stringify(row.policies);
  for (const row of rows) {
    const centre = top + row.height / 2;
    let col = 1, fromX = x(0) + w, fromY = digest;
    for (const step of row.steps) {
      svg.append(across(fromX, fromY, x(col), centre, step.state), box(step, x(col), centre - step.height / 2));
      fromX = x(col) + step.width;
      fromY = centre;
      col += step.span || 1;
    }
    ends.push({ row, x: fromX, centre });
    top += row.height + 18;
  }
  // Rows that lead to the same policies share their boxes.
  for (let n = 0; n < ends.length;) {
    let last = n;
    while (last + 1 < ends.length && named(ends[last + 1].row) === named(ends[n].row)) last++;
    let p = (ends[n].centre + ends[last].centre) / 2 - ends[n].row.beside / 2;
    for (const policy of ends[n].row.policies) {
      for (const end of ends.slice(n, last + 1)) svg.append(across(end.x, end.centre, x(5), p + policy.height / 2, policy.state));
      svg.append(box(policy, x(5), p));
      p += policy.height + 10;
    }
    n = last + 1;
  }
  return svg;
}

// tall draws from top to bottom; what belongs to one row is indented.
function tall(m, width, label) {
  const gap = 20, indent = 26;
  const parts = [];
  let y = 2;
  m.trunk.forEach((step, n) => {
    const t = measured(step, width - 2);
    parts.push(box(t, 1, y));
    y += t.height;
    if (n < m.trunk.length - 1) parts.push(down(24, y, y + gap));
    y += gap;
  });
  const spine = y - gap;
  let end = spine;
  for (const row of m.rows) {
    y += 6;
    [...row.steps, ...row.policies].forEach((step, n) => {
      const t = measured({ ...step, span: 3 }, width - 2 - indent);
      parts.push(box(t, indent + 1, y));
      if (n === 0) { end = y + t.height / 2; parts.push(across(10, end, indent + 1, end, step.state)); }
      else parts.push(down(indent + 24, y - gap, y, step.state));
      y += t.height + gap;
    });
  }
  const svg = frame(width, y - gap + 4, label);
  svg.append(s("path", { class: "edge", d: `M10 ${spine}V${end}` }), ...parts);
  return svg;
}

// chain is the diagram, drawn again when its size changes.
export function chain(record, it) {
  const m = model(record, it);
  const label = sentence(m);
  const figure = h("div", { class: "picture" });
  let width = 0;
  new ResizeObserver(() => {
    const room = Math.floor(figure.clientWidth);
    if (!room || room === width) return;
    width = room;
    put(figure, room >= 900 ? wide(m, room, label) : tall(m, room, label));
    if (m.leftOut) figure.append(h("p", { class: "muted" }, "And " + m.leftOut + " more, which the table below names."));
  }).observe(figure);
  return figure;
}

// sentence is the text of the diagram for screen readers.
function sentence(m) {
  const told = (step) => step.kind + ": " + step.text;
  return "Chain of evidence. " + m.trunk.map(told).join(", then ") + ". " +
    m.rows.map((row) => row.steps.filter((step) => step.state !== "none").map(told).concat(row.policies.map((p) => "policy " + p.text + (p.note ? ", " + p.note : ""))).join(", then ")).join(". ") + ".";
}

// words are the same as a list, with texts that are too long for the diagram.
export function words(record, it) {
  const m = model(record, it);
  const item = (step) => h("li", {}, h("span", { class: "muted" }, step.kind, " "),
    step.mono && step.state !== "none" ? copyable(step.full || step.text, middle(step.full || step.text, 90), step.kind.toLowerCase()) : h("span", {}, step.full && step.kind !== "Log entry" && step.kind !== "Signature" && step.kind !== "Attestation" ? step.full : step.text),
    step.note && h("span", { class: "muted" }, " (" + step.note + ")"));
  return h("details", { class: "in-words" }, h("summary", {}, "As text"),
    h("ol", {}, m.trunk.map(item)),
    m.rows.map((row, n) => [m.rows.length > 1 && h("h3", {}, "Path " + (n + 1)), h("ol", {}, row.steps.map(item), row.policies.map(item))]),
    extensions(record));
}

// extensions are the certificates' fields beside the identity.
function extensions(record) {
  const seen = new Map();
  for (const d of record.decisions) for (const p of d.proofs || []) for (const [name, value] of Object.entries((p.signer || {}).extensions || {})) seen.set(name + " " + value, [name, value]);
  if (seen.size === 0) return null;
  return [h("h3", {}, "Other fields of the certificate"), h("dl", { class: "pairs" }, [...seen.values()].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))];
}
