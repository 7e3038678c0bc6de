package trust

import (
	"crypto/x509"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// Part is a part of a trusted root.
type Part string

// The parts.
const (
	PartFulcio    Part = "fulcio"    // certificate authorities
	PartRekor     Part = "rekor"     // transparency logs
	PartCT        Part = "ct"        // certificate transparency logs
	PartTimestamp Part = "timestamp" // timestamp authorities
)

// Ends returns the latest end of each part of the trusted root. Later signatures cannot be
// verified with that part. The time is zero where there is no end; absent parts are left out. An
// error means that the root is broken.
func (s *Snapshot) Ends() (map[Part]time.Time, error) {
	parsed, err := s.source.parse()
	if err != nil {
		return nil, err
	}
	ends := map[Part]time.Time{}
	for _, authority := range parsed.FulcioCertificateAuthorities() {
		if a, ok := authority.(*root.FulcioCertificateAuthority); ok {
			later(ends, PartFulcio, endOf(a.ValidityPeriodEnd, append(a.Intermediates[:len(a.Intermediates):len(a.Intermediates)], a.Root)...))
		}
	}
	for _, authority := range parsed.TimestampingAuthorities() {
		if a, ok := authority.(*root.SigstoreTimestampingAuthority); ok {
			later(ends, PartTimestamp, endOf(a.ValidityPeriodEnd, append(a.Intermediates[:len(a.Intermediates):len(a.Intermediates)], a.Root, a.Leaf)...))
		}
	}
	for _, log := range parsed.RekorLogs() {
		later(ends, PartRekor, log.ValidityPeriodEnd)
	}
	for _, log := range parsed.CTLogs() {
		later(ends, PartCT, log.ValidityPeriodEnd)
	}
	return ends, nil
}

// later records an end, if it is later than that of others of the same part.
func later(ends map[Part]time.Time, part Part, end time.Time) {
	last, known := ends[part]
	if !known || end.IsZero() || !last.IsZero() && end.After(last) {
		ends[part] = end
	}
}

// endOf is the earliest of the ends of a chain and the end that the root sets for it.
func endOf(given time.Time, chain ...*x509.Certificate) time.Time {
	end := given
	for _, c := range chain {
		if c != nil && (end.IsZero() || c.NotAfter.Before(end)) {
			end = c.NotAfter
		}
	}
	return end
}
