// Package cache provides a bounded cache and shared calls.
//
// A Cache is bounded by cost and has a lifetime for each value. A Flight lets any number of
// concurrent callers share one call, which continues when a caller leaves. The package does not
// depend on the domain, and implements no specification. Eviction is W-TinyLFU, by
// github.com/maypok86/otter/v2.
package cache
