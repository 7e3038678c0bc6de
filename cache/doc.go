// Package cache answers: what did we find out a moment ago, and who is finding
// it out just now?
//
// It is memory without a domain: a Cache is bounded by cost and keeps each
// value for a time of its own, and a Flight lets any number of callers wait for
// one piece of work that outlives each of them. Nothing in it knows what an
// image is, and it follows no specification. Eviction is W-TinyLFU, by
// github.com/maypok86/otter/v2.
package cache
