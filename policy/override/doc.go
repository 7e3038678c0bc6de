// Package override answers: what does an ImageOverride allow or deny, to whom, and
// until when?
//
// It reads documents of quaymaster.dev/v1alpha1, kind ImageOverride, strictly: a
// field that is unknown or means nothing is an error with its path. An override is
// written in a hurry, so whatever could be read in two ways is refused, with what to
// write instead. What a broken Deny says readably holds all the same (see Broken).
// docs/overrides.md describes the document.
package override
