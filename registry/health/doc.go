// Package health is a circuit breaker for registries.
//
// Each registry host has a breaker. One unanswered request opens it: the registry rests,
// and callers go on to the next registry at once. After the rest the registry is probed in
// the background, in parallel with requests: none waits for a probe, and none is used as
// one. An answer closes the breaker, a failed probe lengthens the rest.
//
// Only a missing answer counts (image.Unavailable, timeouts). A registry that does not
// have an image, refuses a credential or contradicts itself is available. It follows no
// specification; the pattern is M. Nygard's, Release It!, 2007.
package health
