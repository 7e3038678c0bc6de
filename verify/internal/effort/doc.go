// Package effort answers: may a stranger have this much computed?
//
// Keys, log entries and timestamps travel with a signature, and libraries compute with
// them before anything of them is proved, where no deadline stops them: a proof by an RSA
// key of 80 KiB takes half a minute (RFC 8017 has no bound on the modulus), and an entry of a
// log with the content of a proposal has each of its signatures verified with each of its
// keys (Rekor v1, types 0.0.1 and 0.0.2), and a search for a chain goes to and fro between
// certificates that have issued one another (CVE-2026-32280). So they are measured first.
// What cannot be read passes, for whoever reads it next says so.
package effort
