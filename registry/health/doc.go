// Package health answers: does this registry answer at the moment?
//
// It is a circuit breaker for each registry's host. One question that nobody
// answered opens it: the registry rests, and whoever would have asked goes on to
// the next one at once. After the rest the registry is probed in the background,
// beside requests: none waits for a probe, and none is used as one. An answer
// closes the breaker, silence lengthens the rest.
//
// Only silence counts (image.Unavailable, time that ran out). A registry that
// does not have an image, refuses a credential or contradicts itself is there.
// It follows no specification; the pattern is M. Nygard's, Release It!, 2007.
package health
