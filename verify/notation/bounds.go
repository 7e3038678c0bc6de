package notation

import "time"

// The bounds on what foreign bytes may cost.
const (
	// maxEnvelope: an envelope holds one descriptor, a signature, a chain and a
	// timestamp token: 3 to 20 KiB in practice.
	maxEnvelope = 256 << 10
	// maxChain: root, two intermediates and a leaf are common; each certificate
	// costs a signature check and up to two questions about revocation.
	maxChain = 10
	// maxAnswer bounds a CRL. The largest known have less than 16 MiB.
	maxAnswer = 16 << 20
	// maxOCSPAnswer bounds an OCSP answer, of which notation reads no more. About
	// 4 KiB are common. It brings the key that it is to be proved with, and a key
	// of 80 KiB takes half a minute.
	maxOCSPAnswer = 20 << 10
	// maxRemembered bounds the memory for answers about revocation, of which
	// parsed CRLs take about four times their size.
	maxRemembered   = 64 << 20
	parsedCRLFactor = 4
	// maxAnswerAge bounds how long an answer is kept that claims to hold for
	// longer; most hold for less than a week.
	maxAnswerAge = 7 * 24 * time.Hour
	// maxRedirects: a revocation server answers itself, or moved once or twice.
	maxRedirects = 3
	// defaultTimeout is for all questions about one signature together, which
	// must fit into an admission request with the rest.
	defaultTimeout = 5 * time.Second
	// unknownLife is how long a fact may rest on an answer whose end we cannot
	// read.
	unknownLife = 10 * time.Minute
)
