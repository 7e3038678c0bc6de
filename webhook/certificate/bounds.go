package certificate

import "time"

// The lives of what the gateway signs itself, and the bounds on what it reads.
const (
	// AuthorityLife and LeafLife are how long the own authority and its leaf hold.
	// Both are renewed when two thirds are over.
	AuthorityLife = 365 * 24 * time.Hour
	LeafLife      = 90 * 24 * time.Hour
	// PublishTime is how long a new authority is in the bundle before a leaf of it
	// is served: far longer than webhook configurations take to be updated and
	// read, far shorter than what is left of the old leaf.
	PublishTime = time.Hour
	// skew is how far clocks may be apart: certificates begin that much earlier.
	skew = 5 * time.Minute
	// Interval is how often a Store or files are looked at.
	Interval = 30 * time.Second

	// maxEntry bounds one entry or file, in bytes: a bundle of maxAuthorities with
	// RSA keys of 4096 bits.
	maxEntry = 64 << 10
	// maxAuthorities bounds a bundle: the one that signs, one that is on its way
	// out, and room for a mishap; of files, what a company has.
	maxAuthorities = 16
	// maxChain bounds the certificates that are sent at each handshake.
	maxChain = 8
	// maxNames bounds the names in a leaf.
	maxNames = 64
	// maxAttempts bounds how often a write is tried when replicas write at once.
	maxAttempts = 5
	// peerKeySize is that of the replicas' key, in bytes.
	peerKeySize = 32
)
