package bundle_test

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
	signer := l.keyless(t, func(i *verifytest.Identity) { i.Lifetime = 48 * time.Hour })
	stranger := l.keyless(t, nil)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	now := time.Now().Truncate(time.Second)
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	roots := l.own.CA.ChainPEM()
	withoutLog := func(a verify.Authority) verify.Authority {
		a.Log.Ignore = true
		return a
	}
	v2 := []verifytest.Record{{Log: l.own.Rekor2}}
	kinds := []struct {
		name      string
		signer    *verifytest.Signer
		records   []verifytest.Record
		authority verify.Authority
	}{
		{"certificate with chain", signer, nil, withoutLog(verify.Authority{Name: "a", Certificate: &verify.Certificate{Chain: roots, CT: verify.CT{Ignore: true}}})},
		{"certificate", signer, nil, withoutLog(verify.Authority{Name: "a", Certificate: &verify.Certificate{Leaf: signer.CertificatePEM(), CT: verify.CT{Ignore: true}}})},
		{"keyless with roots", signer, nil, withoutLog(keyless(func(a *verify.Authority) { a.Keyless.Roots = roots }))},
		{"key, and keys of a log without a time", key, v2, byKey(key, func(a *verify.Authority) {
			a.Log.Keys, a.Log.URL = l.own.Rekor2.PublicPEM(), l.own.Rekor2.URL()
		})},
		{"key, and a root of a log without a time", key, v2, byKey(key, func(a *verify.Authority) { a.Log.Root = l.own.TrustedRoot() })},
	}
	ending := func(a verify.Authority, of *verifytest.Signer, end time.Time) verify.Authority {
		switch {
		case a.Key == nil:
			a.Retired = retired(of, end)
		case of == key:
			a.NotAfter = end // trust.Snapshot.Resolve
		}
		return a
	}
	var rows []row
	for _, kind := range kinds {
		for _, c := range []struct {
			reason  string
			stamps  []verifytest.Stamp
			retired *verifytest.Signer
			end     time.Time
			want    verify.Code
		}{
			{"a timestamp before the end", []verifytest.Stamp{{}}, kind.signer, after, ""},
			{"one of two timestamps is of the authority", []verifytest.Stamp{{TSA: l.foreign.TSA}, {}}, kind.signer, after, ""},
			{"a timestamp after the end", []verifytest.Stamp{{}}, kind.signer, before, verify.OutsideValidity},
			{"a timestamp of another authority", []verifytest.Stamp{{TSA: l.foreign.TSA}}, kind.signer, after, verify.NoTimestamp},
			{"a timestamp of another signature", []verifytest.Stamp{{OtherSignature: true}}, kind.signer, after, verify.NoTimestamp},
			{"no timestamp", nil, kind.signer, after, verify.NoTimestamp},
			{"no timestamp, and another key was retired", nil, stranger, before, ""},
			{"a timestamp of another authority, and another key was retired", []verifytest.Stamp{{TSA: l.foreign.TSA}}, stranger, before, ""},
		} {
			claim := verifytest.Claim{Signer: kind.signer, Statement: signature(), NoLog: kind.records == nil, Records: kind.records, Stamps: c.stamps}
			rows = append(rows, row{kind.name + ", " + c.reason, c.reason, claim, ending(kind.authority, c.retired, c.end), c.want})
		}
	}
	expired := l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = now.Add(-24 * time.Hour) })
	during := func(start, end time.Time) verify.Authority {
		return ending(byKey(key, func(a *verify.Authority) { a.Log.Root = during(t, l.own.TrustedRoot(), l.own.Rekor2.URL(), start, end) }), key, after)
	}
	claim := func(by *verifytest.Signer, at time.Time, records ...verifytest.Record) verifytest.Claim {
		return verifytest.Claim{Signer: by, Statement: signature(), NoLog: records == nil, Records: records, Stamps: []verifytest.Stamp{{Time: at}}}
	}
	chain := kinds[0].authority
	rootless := chain
	rootless.TrustedRoot = []byte("no root")
	rows = append(rows,
		row{"expired", "the retirement of a key does not admit what has expired", claim(expired, now.Add(-24*time.Hour)), ending(chain, expired, after), verify.ExpiredCertificate},
		row{"expired, another retired", "it has expired without that, too", claim(expired, now.Add(-24*time.Hour)), ending(chain, stranger, after), verify.ExpiredCertificate},
		row{"timestamp before the certificate", "the certificate was not valid at that time", claim(signer, now.Add(-72*time.Hour)), ending(chain, signer, after), verify.ExpiredCertificate},
		row{"timestamp before the certificate, another retired", "nothing depends on that time", claim(signer, now.Add(-72*time.Hour)), ending(chain, stranger, before), ""},
		row{"no root", "there is no authority to confirm a time", claim(signer, now), ending(rootless, signer, after), verify.NoTimestamp},
		row{"no root, another retired", "the terms need none", claim(signer, now), ending(rootless, stranger, before), ""},
		row{"log in use", "the log was in use at the time of the timestamp", claim(key, now, v2...), during(before, after), ""},
		row{"log not in use", "the log was not in use at the time of the timestamp", claim(key, now, v2...), during(now.Add(-2*time.Hour), before), verify.BadLogEntry},
	)
	l.play(t, rows)
	fact, err := l.verify(t, claim(signer, now), ending(chain, signer, after))
	if err != nil || !fact.SignedAt.Equal(now) || fact.TimeSource != verify.StampTime || fact.Expires.IsZero() {
		t.Errorf("signed at %s, expires %s (%v), want the timestamp's %s and the end of the certificate", fact.SignedAt, fact.Expires, err, now)
	}
}
