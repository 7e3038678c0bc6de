// Package predicate answers: what does this statement say?
//
// It reads the predicates of in-toto statements into types that a policy or a
// report can ask: SLSA provenance v0.2 and v1, SLSA verification summaries v1,
// SPDX 2.x, CycloneDX 1.x, cosign's vulnerability scans v1 and generic predicates
// v1, and OpenVEX 0.2. Whether a statement is true is package verify's question,
// and none of it is checked here but its shape.
package predicate
