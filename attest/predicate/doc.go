// Package predicate parses the predicates of in-toto statements into types for policies and
// reports.
//
// It supports SLSA provenance v0.2 and v1, SLSA verification summaries v1 and cosign's generic
// predicates v1; package attest/vulnerability has scans and VEX, and attest/sbom bills of materials.
// It checks only their form; package verify verifies statements.
package predicate
