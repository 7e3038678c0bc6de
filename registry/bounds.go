package registry

import "time"

// Bounds of this package, with their reasons (package guard counts redirects, package login
// bounds tokens, package content bounds what is read). Content above a bound is an image.Bound
// error, never a shorter answer.
const (
	// maxErrorBody is enough for a registry's error codes (some 200 bytes).
	maxErrorBody = 8 << 10
	// maxHeader is twice the size of a header with a token of 16 KiB.
	maxHeader = 64 << 10
	// maxReferrersList is the size of all pages of one list of referrers, in
	// bytes. Entries hold the annotations of their manifests, so that a few
	// manifests fill megabytes; one entry is held at a time.
	maxReferrersList = 32 << 20
	// maxReferrersOfType is the same where one type was asked for, since the list of all
	// did not end: each of content.MaxListedReferrers may have 4 kB.
	maxReferrersOfType = 4 << 20
	// maxReferrerPages ends a listing that does not end. At the page size of
	// large registries (100) it reaches far beyond content.MaxListedReferrers.
	maxReferrerPages = 50
	// maxAttempts counts the first try.
	maxAttempts = 3
	// maxRetryWait is the longest pause between tries. If a registry asks for a longer one,
	// the request fails, even without a deadline.
	maxRetryWait = 30 * time.Second
	// firstBackoff doubles with each try and is jittered.
	firstBackoff = 200 * time.Millisecond
	// tryTimeout ends one try, with its challenge, token and body.
	tryTimeout = 20 * time.Second
	// hostConcurrency is a number of requests that registries accept from one client.
	hostConcurrency = 16
	// totalConcurrency bounds sockets and memory: 64 bodies in flight.
	totalConcurrency = 64
	// maxMissing and missingAge bound the cache of repositories and hosts with and
	// without the referrers API, and of loopback hosts that use TLS. A registry
	// changes either by an upgrade.
	maxMissing = 4096
	missingAge = 10 * time.Minute
	// tagGrace is how long the answer of the API waits for that of the referrers tag,
	// once a host: several round trips, and no time that a user would notice.
	tagGrace = 500 * time.Millisecond
	// maxPushed is the size of a document that is stored, in bytes: a summary has some
	// kilobytes.
	maxPushed = 4 << 20
	// maxEnlistings bounds the writes of a referrers tag until the added entry persists.
	maxEnlistings = 3
)
