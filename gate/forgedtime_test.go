package gate_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestForgedTime: no entry of another log and no timestamp of another authority makes an image older, alone or
// beside a genuine one, in both formats.
func TestForgedTime(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	foreign := must(verifytest.New(verifytest.Options{}))(t)
	now, old := time.Now().Add(-time.Hour), time.Now().Add(-1000*time.Hour)
	genuine := verifytest.Record{Time: now}
	rule := loggedBy(1, h.key)
	p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{rule}}
	for _, c := range []struct {
		reason string
		claim  verifytest.Claim
		want   bool
	}{
		{"the control: an old entry of the log", verifytest.Claim{Records: []verifytest.Record{{Time: old}}}, true},
		{"a recent entry", verifytest.Claim{Records: []verifytest.Record{genuine}}, false},
		{"an old entry of another log", verifytest.Claim{Records: []verifytest.Record{{Log: foreign.Rekor, Time: old}}}, false},
		{"an old entry of another log in the log's name", verifytest.Claim{Records: []verifytest.Record{{Log: foreign.Rekor, As: h.Sigstore.Rekor, Time: old}}}, false},
		{"an old timestamp of another authority", verifytest.Claim{Records: []verifytest.Record{genuine}, Stamps: []verifytest.Stamp{{TSA: foreign.TSA, Time: old}}}, false},
		{"an old timestamp of another signature", verifytest.Claim{Records: []verifytest.Record{genuine}, Stamps: []verifytest.Stamp{{Time: old, OtherSignature: true}}}, false},
		{"an old entry, and other signed bytes", verifytest.Claim{Records: []verifytest.Record{{Time: old}}, WrongSignature: true}, false},
	} {
		for format, sign := range map[string]func(gatetest.Image, verifytest.Claim, map[string]any) error{"legacy": h.SignLegacy, "bundle": h.SignBundle} {
			image := h.Build("app", "v1", c.reason+format)
			claim := c.claim
			claim.Signer, claim.Time = h.key, now
			must(0, sign(image, claim, nil))(t)
			out := decide(t, h.requiring(t, []*policy.Policy{p, settings(t, minimum(72*time.Hour))}), image.Name)
			if allowed := out.Result == gate.Allow; allowed != c.want {
				t.Errorf("%s, %s: %s (%s)", c.reason, format, out.Result, codesOf(out))
			}
		}
	}
}
