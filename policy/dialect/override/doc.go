// Package override compiles ImageOverrides, which allow or deny images for a limited time.
//
// It reads documents of quaymaster.dev/v1alpha1, kind ImageOverride, strictly: a field
// that is unknown or without effect is an error with its path. An override is written in a
// hurry, so ambiguous content is refused with a suggestion for its correction. The
// readable part of a broken Deny is still enforced (see Broken). docs/overrides.md
// describes the document.
package override
