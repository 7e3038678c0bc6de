// Package ratelimit keeps the rate limits that registries impose on clients.
//
// A Limiter holds, for each account at each host, the last reported limit. After a 429 no
// request is sent for as long as the registry asks, and longer after each further 429;
// then one request is let through, and more with each answer. Background requests (a scan,
// a dry run) stop at the first 429, and when less than half of the limit is left, so that
// the other half is available to admission.
//
// Replicas and clusters behind one address share a limit without communication: each
// answer reports the remaining limit, and pauses are jittered so that they do not end
// together.
//
// It follows RFC 6585 (429), RFC 9110 (Retry-After), and for the remaining limit
// draft-ietf-httpapi-ratelimit-headers-02 as Docker Hub implements it
// ("ratelimit-remaining: 76;w=21600").
package ratelimit
