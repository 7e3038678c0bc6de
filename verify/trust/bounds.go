package trust

import "time"

// Bounds on what is read and kept, each with its reason.
const (
	// MaxRoot is the greatest size of a trusted_root.json. The public-good root
	// is 7 KiB; Kyverno's dialect caps a given one at 1 MiB.
	MaxRoot = 1 << 20
	// MaxPEM is the greatest size of keys or certificates in PEM.
	MaxPEM = 256 << 10
	// MaxCertificates is the greatest number of certificates in one PEM text:
	// building chains grows with the number of candidates (CVE-2026-32280).
	MaxCertificates = 32
	// MaxChain is the greatest number of certificates that may travel with a
	// signature, leaf included, for the same reason.
	MaxChain = 10
	// maxKeys is the greatest number of looked-up keys that are remembered; a
	// policy set names far fewer.
	maxKeys = 4096
	// maxMaterials is the greatest number of composed materials that a snapshot
	// remembers, one for each authority.
	maxMaterials = 4096
	// minRSA is the least length of an RSA key in bits, as NIST SP 800-131A
	// has it.
	minRSA = 2048
)

// Times of looking things up.
const (
	// DefaultKeyInterval is how long a looked-up key is used before it is looked
	// up again.
	DefaultKeyInterval = time.Hour
	// keyHold is how many intervals a key is used that cannot be looked up
	// again: a KMS may be away for a while, but a key that was withdrawn must
	// not live for ever.
	keyHold = 24
	// keyTimeout bounds one look-up, whoever waits for it.
	keyTimeout = 10 * time.Second
	// DefaultRootInterval is how often TUF is asked for a new root.
	DefaultRootInterval = 24 * time.Hour
	// rootTimeout bounds one refresh by TUF, which fetches five to seven files.
	rootTimeout = time.Minute
)
