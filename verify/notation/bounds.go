package notation

import "time"

// Bounds on the cost of untrusted bytes.
const (
	// maxEnvelope: an envelope holds one descriptor, a signature, a chain and a
	// timestamp token: 3 to 20 KiB in practice.
	maxEnvelope = 256 << 10
	// maxChain: root, two intermediates and a leaf are common. Each certificate costs a signature
	// check and up to two revocation requests.
	maxChain = 10
	// maxAnswer bounds a CRL. The largest known have less than 16 MiB.
	maxAnswer = 16 << 20
	// maxOCSPAnswer bounds an OCSP response, of which notation reads no more. About 4 KiB are
	// common. The response contains the key that verifies it, and a key of 80 KiB takes half a
	// minute.
	maxOCSPAnswer = 20 << 10
	// maxPoints bounds the CRLs of one certificate, all of which notation downloads. One is common,
	// and two where one is in a directory (LDAP).
	maxPoints = 4
	// maxRemembered bounds the cache of revocation responses, and what one verification holds for it.
	// Parsed CRLs take up to ten times their size (TestParsedListSize), so larger ones than 6 MiB are
	// not cached.
	maxRemembered   = 64 << 20
	parsedCRLFactor = 10
	// maxAnswerAge bounds the caching of a response with a longer validity; most are valid for
	// less than a week.
	maxAnswerAge = 7 * 24 * time.Hour
	// maxRedirects: a revocation server responds itself, or has moved once or twice.
	maxRedirects = 3
	// defaultTimeout covers all revocation requests for one signature together. They must fit
	// into an admission request with the other work.
	defaultTimeout = 5 * time.Second
)
