// Package predicate parses the predicates of in-toto statements into types for policies and
// reports.
//
// It supports SLSA provenance v0.2 and v1, SLSA verification summaries v1, SPDX 2.x, CycloneDX
// 1.x, cosign's vulnerability scans v1 and generic predicates v1, and OpenVEX 0.2. It checks only
// their form; package verify verifies statements.
package predicate
