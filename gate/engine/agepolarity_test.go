package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestMaximumAgeAdmitsNothing: evidence that is too old does not count in favour of an image, and does count
// against it: a requirement never makes a policy hold that does not hold by itself.
func TestMaximumAgeAdmitsNothing(t *testing.T) {
	v := newVariants(t)
	logged := strings.ReplaceAll(scannedByBoth, ", ctlog: {insecureIgnoreTlog: true}", "")
	head, _, _ := strings.Cut(logged, "  - {expression:")
	signed := head + "  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)'}\n"
	unrevoked := signed + "  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.second]) == 0)'}\n"
	image := func(name string, second, own time.Duration) gatetest.Image {
		built := v.Build("shop/"+name, "1", name)
		for signer, ago := range map[*verifytest.Signer]time.Duration{v.Signer: own, v.Second: second} {
			if ago == 0 {
				continue
			}
			claim := verifytest.Claim{Signer: signer, Records: []verifytest.Record{{Time: time.Now().Add(-ago)}}}
			if err := v.AttestBundle(built, claim, gatetest.ScanType, map[string]any{"verdict": "clean"}); err != nil {
				t.Fatal(err)
			}
		}
		return built
	}
	for _, c := range []struct {
		reason, policy string
		second, own    time.Duration
		maximum        time.Duration
		want           gate.Result
	}{
		{"not revoked", unrevoked, 0, time.Minute, 0, gate.Allow},
		{"revoked", unrevoked, 50 * time.Hour, time.Minute, 0, gate.Deny},
		{"revoked long ago", unrevoked, 50 * time.Hour, time.Minute, 24 * time.Hour, gate.Deny},
		{"revoked now", unrevoked, time.Minute, time.Minute, 24 * time.Hour, gate.Deny},
		{"not revoked, and fresh", unrevoked, 0, time.Minute, 24 * time.Hour, gate.Allow},
		{"not revoked, and too old", unrevoked, 0, 50 * time.Hour, 24 * time.Hour, gate.Deny},
		{"attested long ago", signed, 0, 50 * time.Hour, 24 * time.Hour, gate.Deny},
		{"attested now", signed, 0, time.Minute, 24 * time.Hour, gate.Allow},
	} {
		built := image(strings.ReplaceAll(strings.ReplaceAll(c.reason, ",", ""), " ", "-"), c.second, c.own)
		compiled := testkit.Must(engine.CompileDocuments(read(t, v.Fill(c.policy)), engine.NewResources(), true, time.Now))(t)
		compiled.Images.Use(gate.Config{Registries: v.Env})
		policies := testkit.Must(compiled.Set())(t).Policies()
		if c.maximum > 0 {
			policies = append(policies, testkit.Must(requirements.Compile("Settings", "the settings", []requirements.Requirement{
				{Path: "requirements[0]", Images: []string{"*"}, MaximumAge: c.maximum},
			}))(t))
		}
		all := testkit.Must(set.New(policies...))(t)
		g := testkit.Must(gate.New(gate.Config{Registries: v.Env, State: gate.Fixed{Policies: all, Prover: v.Prover}}))(t)
		out := g.Decide(t.Context(), podOf(t, built.Name))
		if out.Result != c.want {
			t.Errorf("%s: %s, want %s: %v", c.reason, out.Result, c.want, against(out))
		}
	}
}
