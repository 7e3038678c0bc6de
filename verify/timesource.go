package verify

import "time"

// TimeSource is the origin of a time of signing.
type TimeSource string

// The origins.
const (
	LogTime   TimeSource = "log"       // the entry of a transparency log
	StampTime TimeSource = "timestamp" // a timestamp authority (RFC 3161)
	// OwnTime is written by the signer itself: a signing authority of the Notary Project. It bounds
	// the validity of certificates, and says nothing about age: the holder of the key writes any time.
	OwnTime TimeSource = "signer"
)

// String returns the source for messages.
func (s TimeSource) String() string {
	switch s {
	case LogTime:
		return "a transparency log"
	case StampTime:
		return "a timestamp authority"
	case OwnTime:
		return "the signer"
	}
	return "an unknown source"
}

// VerifiedTime returns SignedAt if another party than the signer vouches for it; else zero. Only this
// time counts for an age.
func (f Fact) VerifiedTime() time.Time {
	if f.TimeSource != LogTime && f.TimeSource != StampTime {
		return time.Time{}
	}
	return f.SignedAt
}
