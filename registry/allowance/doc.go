// Package allowance answers: may this registry be asked now, or has it said that it
// is asked too often?
//
// A Book knows, for each account at each host, what the registry said last. One that
// answers 429 is left alone for as long as it asks, and longer each time it says so
// again; then one question is let through, and with each that is answered more. What
// can wait (a scan, a trial run) asks by Background: it stops at the first 429, and
// when less than half of what the registry allows is left, so that the other half is
// there for admission.
//
// Replicas and clusters behind one address share an allowance without talking: what
// is left is in the registry's answers to each of them, and rests are jittered so
// that they do not come back together.
//
// It follows RFC 6585 (429), RFC 9110 (Retry-After), and for what is left
// draft-ietf-httpapi-ratelimit-headers-02 as Docker Hub writes it
// ("ratelimit-remaining: 76;w=21600").
package allowance
