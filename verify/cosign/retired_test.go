package cosign_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestRetiredWithTimestamp: a timestamp of the trusted root's authority confirms the time of a retired key where
// the terms need no time otherwise, and changes no other check and no other signer.
func TestRetiredWithTimestamp(t *testing.T) {
	l := newLab(t)
	now := time.Now().Truncate(time.Second)
	signer := l.keyless(t, func(i *verifytest.Identity) { i.Lifetime = 48 * time.Hour })
	expired := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = now.Add(-24 * time.Hour) })
	stranger := l.keyless(t, nil)
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	roots := l.own.CA.ChainPEM()
	var rows []row
	for name, authority := range map[string]verify.Authority{
		"certificate with chain": {Name: "a", Certificate: &verify.Certificate{Chain: roots}},
		"certificate":            {Name: "a", Certificate: &verify.Certificate{Leaf: signer.CertificatePEM(), CT: verify.CT{Ignore: true}}},
		"keyless with roots":     keyless(func(a *verify.Authority) { a.Keyless.Roots = roots }),
	} {
		authority.Log.Ignore = true
		for _, c := range []struct {
			reason  string
			by      *verifytest.Signer
			stamps  []verifytest.Stamp
			retired *verifytest.Signer
			end     time.Time
			want    verify.Code
		}{
			{"a timestamp before the end", signer, []verifytest.Stamp{{}}, signer, after, ""},
			{"a timestamp after the end", signer, []verifytest.Stamp{{}}, signer, before, verify.OutsideValidity},
			{"a timestamp of another authority", signer, []verifytest.Stamp{{TSA: l.foreign.TSA}}, signer, after, verify.NoTimestamp},
			{"a timestamp of another signature", signer, []verifytest.Stamp{{OtherSignature: true}}, signer, after, verify.NoTimestamp},
			{"a timestamp before the certificate", signer, []verifytest.Stamp{{Time: now.Add(-72 * time.Hour)}}, signer, after, verify.ExpiredCertificate},
			{"a timestamp before the certificate, and another key was retired", signer, []verifytest.Stamp{{Time: now.Add(-72 * time.Hour)}}, stranger, before, ""},
			{"no timestamp", signer, nil, signer, after, verify.NoTimestamp},
			{"no timestamp, and another key was retired", signer, nil, stranger, before, ""},
			{"a timestamp of another authority, and another key was retired", signer, []verifytest.Stamp{{TSA: l.foreign.TSA}}, stranger, before, ""},
			{"it has expired", expired, []verifytest.Stamp{{Time: now.Add(-24 * time.Hour)}}, expired, after, verify.ExpiredCertificate},
			{"it has expired, and another key was retired", expired, []verifytest.Stamp{{Time: now.Add(-24 * time.Hour)}}, stranger, after, verify.ExpiredCertificate},
		} {
			if c.by == expired && name == "certificate" {
				continue // it is another certificate
			}
			authority.Retired = map[string]time.Time{verify.Fingerprint(c.retired.Public(), nil): c.end}
			signed := verifytest.Claim{Signer: c.by, Image: signature(nil), NoLog: true, Stamps: c.stamps}
			attested := verifytest.Claim{Signer: c.by, Statement: provenance(), NoLog: true, Stamps: c.stamps}
			rows = append(rows,
				row{name + ", " + c.reason, c.reason, signed, authority, c.want},
				row{name + ", attestation, " + c.reason, c.reason, attested, authority, c.want})
		}
	}
	l.run(t, rows)
}
