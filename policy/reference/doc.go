// Package reference answers: which image references does a pattern speak of?
//
// Patterns are those of Kyverno's imageReferences (1.19): `*` and `?`, compared
// with the whole reference. A reference has several spellings (by tag, by digest,
// Docker Hub's official images with and without library/); whoever writes one
// must not choose by its spelling whether it is looked at, nor whether it is
// left alone. So a pattern that concerns an image may fit any spelling, and one
// that exempts an image must fit the one that decides.
package reference
