package bundle_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// during returns a trusted root with a period for the log at a URL; the others are unchanged.
func during(t *testing.T, root []byte, url string, start, end time.Time) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(root, &content); err != nil {
		t.Fatal(err)
	}
	for _, each := range content["tlogs"].([]any) {
		if log := each.(map[string]any); log["baseUrl"] == url {
			log["publicKey"].(map[string]any)["validFor"] = map[string]any{"start": start.Format(time.RFC3339), "end": end.Format(time.RFC3339)}
		}
	}
	return verifytest.Must(json.Marshal(content))
}

// until returns a trusted root with an end of its certificate authorities.
func until(t *testing.T, root []byte, end time.Time) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(root, &content); err != nil {
		t.Fatal(err)
	}
	for _, each := range content["certificateAuthorities"].([]any) {
		each.(map[string]any)["validFor"].(map[string]any)["end"] = end.Format(time.RFC3339)
	}
	return verifytest.Must(json.Marshal(content))
}

// TestLogPeriods: an entry counts only of a log that was in use when the signature was made,
// whether the log gives the time itself or a timestamp authority does.
func TestLogPeriods(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	p256 := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	now := time.Now().Truncate(time.Second)
	claim := func(stamps []verifytest.Stamp, records ...verifytest.Record) verifytest.Claim {
		return verifytest.Claim{Signer: signer, Statement: signature(), Records: records, Stamps: stamps}
	}
	timeless := func(stamps ...verifytest.Stamp) verifytest.Claim {
		c := claim(stamps, verifytest.Record{Log: l.own.Rekor2})
		c.Signer = p256
		return c
	}
	stamped := []verifytest.Stamp{{}}
	v1, v2 := l.own.Rekor.URL(), l.own.Rekor2.URL()
	key := func(a *verify.Authority) { *a = byKey(p256, nil) }
	var rows []row
	for _, c := range []struct {
		name, log string
		claim     verifytest.Claim
		change    func(*verify.Authority)
		ended     verify.Code
	}{
		{"a promise", v1, claim(nil, verifytest.Record{}), nil, verify.BadLogEntry},
		{"a proof of Rekor v1", v1, claim(stamped, verifytest.Record{NoPromise: true}), nil, verify.BadLogEntry},
		{"a proof of Rekor v2", v2, claim(stamped, verifytest.Record{Log: l.own.Rekor2}), nil, verify.BadLogEntry},
		{"a proof of Rekor v2, and another log", v2, claim(stamped, verifytest.Record{Log: l.own.Rekor2}, verifytest.Record{}), nil, ""},
		{"a key, and a timestamp", v2, timeless(verifytest.Stamp{}), key, verify.BadLogEntry},
		{"a key, and no time", v2, timeless(), key, ""},
	} {
		for _, period := range []struct {
			name       string
			start, end time.Time
			want       verify.Code
		}{
			{"in use", now.Add(-time.Hour), now.Add(time.Hour), ""},
			{"ended", now.Add(-2 * time.Hour), now.Add(-time.Hour), c.ended},
			{"not yet in use", now.Add(time.Hour), now.Add(2 * time.Hour), c.ended},
		} {
			rows = append(rows, row{c.name + ", " + period.name, "the time of signing is now", c.claim, keyless(func(a *verify.Authority) {
				if c.change != nil {
					c.change(a)
				}
				a.TrustedRoot = during(t, l.own.TrustedRoot(), c.log, period.start, period.end)
			}), period.want})
		}
	}
	l.play(t, rows)
}
