// Package limits bounds the computation that untrusted evidence can cause.
//
// Keys, log entries and timestamps accompany a signature, and libraries compute with them before
// any of it is verified. No deadline stops them. Verification with an RSA key of 80 KiB takes
// half a minute (RFC 8017 has no bound on the modulus). A log entry with the content of a
// proposal has each of its signatures verified with each of its keys (Rekor v1, types 0.0.1 and
// 0.0.2). A chain search goes back and forth between certificates that have issued one another
// (CVE-2026-32280). So all of them are measured first. Input that cannot be parsed passes,
// because the next parser reports the error.
package limits
