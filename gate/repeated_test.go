package gate_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// scanAgain attaches one signature twice: as it was logged some hours ago, and logged again later.
func scanAgain(t *testing.T, h *env, image gatetest.Image, verdict string, hours ...int) {
	t.Helper()
	claim := verifytest.Claim{Signer: h.key, Statement: verifytest.Attestation(image.Manifest.Digest, scanType, map[string]string{"verdict": verdict})}
	for _, ago := range hours {
		claim.Records = append(claim.Records, verifytest.Record{Time: time.Now().Add(-time.Duration(ago) * time.Hour)})
	}
	whole := must(h.Sigstore.Bundle(claim))(t)
	for i := range hours {
		var bundle map[string]any
		must(0, json.Unmarshal(whole, &bundle))(t)
		material := bundle["verificationMaterial"].(map[string]any)
		material["tlogEntries"] = material["tlogEntries"].([]any)[i : i+1]
		must(0, h.PutBundle(image, must(json.Marshal(bundle))(t), scanType))(t)
	}
}

// TestRepeatedVerdicts: a verdict that is signed again is the latest, although its text is that of
// an older statement. An old signature that is logged again is not.
func TestRepeatedVerdicts(t *testing.T) {
	const clean, dirty = "clean", "dirty"
	for _, c := range []struct {
		reason   string
		verdicts []string // the oldest first
		again    bool     // the first one is logged again at last
		want     gate.Result
	}{
		{"clean, and dirty before", []string{dirty, clean}, false, gate.Allow},
		{"dirty once more", []string{dirty, clean, dirty}, false, gate.Deny},
		{"clean once more", []string{clean, dirty, clean}, false, gate.Allow},
		{"an old clean one is logged again", []string{clean, dirty}, true, gate.Deny},
		{"an old dirty one is logged again", []string{dirty, clean}, true, gate.Allow},
	} {
		for _, bundle := range []bool{false, true} {
			if c.again && !bundle {
				continue // in both formats a signature is identified alike
			}
			h := newEnv(t, registrytest.Options{})
			app := h.Build("app", "v1", "app")
			for i, verdict := range c.verdicts {
				hours := len(c.verdicts) - i + 1
				if c.again && i == 0 {
					scanAgain(t, h, app, verdict, hours, 1)
					continue
				}
				scan(t, h, app, verdict, hours, bundle)
			}
			for _, denies := range []bool{false, true} {
				out := decide(t, h.gate(t, scanned(h, denies)), app.Name)
				if out.Result != c.want {
					t.Errorf("%s, bundles %t, by a deny condition %t: %s, want %s: %+v", c.reason, bundle, denies, out.Result, c.want, out.Verdicts[0].Reasons)
				}
				facts := out.Verdicts[0].Decisions[0].Facts
				if out.Result == gate.Allow && slices.ContainsFunc(facts, func(f verify.Fact) bool { return len(f.Signatures) != 1 }) {
					t.Errorf("%s, bundles %t: the signatures are not known", c.reason, bundle)
				}
			}
		}
	}
}
