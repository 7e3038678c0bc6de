// Package reference matches image references with patterns.
//
// Patterns are those of Kyverno's imageReferences (1.19): `*` and `?`, compared with the
// whole reference. A reference has several spellings (by tag, by digest, Docker Hub's
// official images with and without library/). The author of a reference must not choose by
// its spelling whether it is verified or exempt. So a pattern that selects images may
// match any spelling, and one that exempts images must match the decisive one.
package reference
