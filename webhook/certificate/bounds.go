package certificate

import "time"

// Lifetimes of self-signed certificates, and limits on input.
const (
	// AuthorityLife and LeafLife are the lifetimes of the gateway's own authority and its leaf.
	// Both are renewed after two thirds of their lifetime.
	AuthorityLife = 365 * 24 * time.Hour
	LeafLife      = 90 * 24 * time.Hour
	// PublishTime is how long a new authority is in the bundle before a leaf of it is served. It is
	// far longer than webhook configurations take to be updated and read, and far shorter than the
	// remaining lifetime of the old leaf.
	PublishTime = time.Hour
	// skew is the tolerated clock difference. Certificates begin that much earlier.
	skew = 5 * time.Minute
	// Interval is the polling interval of a Store or of files.
	Interval = 30 * time.Second

	// maxEntry bounds one entry or file, in bytes: a bundle of maxAuthorities with
	// RSA keys of 4096 bits.
	maxEntry = 64 << 10
	// maxAuthorities bounds a bundle: the signing authority, the previous one and some spare ones.
	// Files may contain a company's authorities.
	maxAuthorities = 16
	// maxChain bounds the certificates that are sent in each handshake.
	maxChain = 8
	// maxNames bounds the names in a leaf.
	maxNames = 64
	// maxAttempts bounds the attempts of a write when replicas write concurrently.
	maxAttempts = 5
	// peerKeySize is the size of the replicas' shared key, in bytes.
	peerKeySize = 32
)
