package trust

import "time"

// Bounds on input and caches.
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
	// maxKeys is the greatest number of cached looked-up keys; a policy set names far fewer.
	maxKeys = 4096
	// maxMaterials is the greatest number of composed materials in the cache of a snapshot, one
	// for each authority.
	maxMaterials = 4096
	// maxMaterialBytes bounds their authorities: an expression may make a root for each request.
	maxMaterialBytes = 16 << 20
	// minRSA is the least length of an RSA key in bits, as in NIST SP 800-131A.
	minRSA = 2048
)

// Intervals and timeouts of look-ups.
const (
	// DefaultKeyInterval is how long a looked-up key is used before it is looked
	// up again.
	DefaultKeyInterval = time.Hour
	// keyHold is the number of intervals for which a key is used without a successful look-up. A
	// KMS may be unavailable for a while, but a withdrawn key must not stay in use for ever.
	keyHold = 24
	// keyTimeout bounds one look-up, independently of the callers' deadlines.
	keyTimeout = 10 * time.Second
	// DefaultRootInterval is the interval of root refreshes by TUF.
	DefaultRootInterval = 24 * time.Hour
	// rootTimeout bounds one refresh by TUF, which fetches five to seven files.
	rootTimeout = time.Minute
)
