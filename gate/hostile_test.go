package gate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
)

// TestAHostileRegistryIsNeverAYes runs every misbehaviour against a signed image
// and against an unsigned one: the first may fail to be proved, the second is
// never allowed.
func TestAHostileRegistryIsNeverAYes(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	other := registrytest.Start(registrytest.Options{})
	t.Cleanup(other.Close)
	// A registry's operator can always claim that there is no signature; these misbehaviours
	// amount to that.
	denials := []string{"another body", "lying digest", "a page", "wrong media type", "redirect elsewhere"}
	for name, do := range map[string]registrytest.Action{
		"another body":       registrytest.Body([]byte(`{"schemaVersion":2}`)),
		"lying digest":       registrytest.LieDigest("sha256:" + strings.Repeat("0", 64)),
		"malformed digest":   registrytest.LieDigest("sha256:../../x"),
		"endless body":       registrytest.Endless(),
		"half a body":        registrytest.Half(),
		"slow body":          registrytest.Slow(release),
		"no answer":          registrytest.Hang(),
		"a page":             registrytest.HTML(),
		"gzip bomb":          registrytest.GzipBomb(64 << 20),
		"wrong media type":   registrytest.MediaType("text/plain"),
		"oversize":           registrytest.Oversize(image.MediaTypeIndex, 64<<20),
		"redirect loop":      registrytest.RedirectLoop(),
		"redirect elsewhere": registrytest.RedirectTo(other.URL() + "/v2/"),
		"401":                registrytest.Status(401), "403": registrytest.Status(403), "429": registrytest.RetryAfter(429, "3600"),
		"500": registrytest.Status(500), "503": registrytest.RetryAfter(503, "3600"),
		"endless pages": registrytest.LinkEndless(), "looping pages": registrytest.LinkLoop(),
		"pages elsewhere": registrytest.LinkTo(other.URL() + "/v2/app/referrers/x"),
	} {
		for _, kind := range []registrytest.Kind{registrytest.Manifest, registrytest.Referrers, registrytest.Blob} {
			t.Run(fmt.Sprintf("%s/%s", name, kind), func(t *testing.T) {
				t.Parallel()
				h := newEnv(t, registrytest.Options{})
				signed, unsigned := h.Build("signed", "v1", "1"), h.Build("unsigned", "v1", "2")
				must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
				must(0, h.SignBundle(unsigned, byKey(h.stranger), nil))(t)
				h.Registry.SetFaults(registrytest.Fault{Kind: kind, Do: do})
				g := h.gate(t, signedBy(h.key), gate.WithTimeout(300*time.Millisecond))
				if outcome := decide(t, g, unsigned.Name); outcome.Result == gate.Allow {
					t.Fatalf("an image signed by another key is allowed: %+v", outcome.Verdicts)
				}
				outcome := decide(t, g, signed.Name)
				if !slices.Contains(denials, name) && outcome.Result == gate.Deny && outcome.Verdicts[0].Reasons[0].Code == policy.Unsigned {
					t.Errorf("an error is reported as unsigned: %+v", outcome.Verdicts[0].Reasons)
				}
				if other.SawAuthorization() {
					t.Error("a credential reached another host")
				}
			})
		}
	}
}

func TestManySignatures(t *testing.T) {
	h := newEnv(t, registrytest.Options{PageSize: 50})
	crowded := h.Build("crowded", "v1", "1")
	for i := range 1000 {
		must(0, h.PutBundle(crowded, fmt.Appendf(nil, `{"junk":%d}`, i), attest.PredicateCosignSign))(t)
	}
	g := h.gate(t, signedBy(h.key))
	outcome := decide(t, g, crowded.Name)
	if outcome.Result != gate.Error || !strings.Contains(fmt.Sprint(outcome.Verdicts[0].Reasons), string(policy.TooMuch)) {
		t.Errorf("a bound was reached and the answer is %s: %+v", outcome.Result, outcome.Verdicts[0].Reasons)
	}
	// A requirement that was met before the bound stays met: the legacy tag is
	// bounded by itself.
	must(0, h.SignLegacy(crowded, byKey(h.key), nil))(t)
	expect(t, decide(t, h.gate(t, signedBy(h.key)), crowded.Name), gate.Allow, policy.Verified)
}

// brokenProver panics, as a library may on untrusted bytes.
type brokenProver struct{ prover }

func (brokenProver) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	panic("an index out of range")
}

func TestAPanicDenies(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed := h.Build("app", "v1", "1")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	set := must(set.New(&policy.Policy{Kind: "Test", Name: "test", Rules: []policy.Rule{signedBy(h.key)}}))(t)
	g := must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: set, Prover: brokenProver{prover{Snapshot: h.snapshot}}}}))(t)
	expect(t, decide(t, g, signed.Name), gate.Error, policy.CannotProve)
}

func TestADeadlineIsIndeterminate(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed := h.Build("app", "v1", "1")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	h.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Hang()})
	outcome := decide(t, h.gate(t, signedBy(h.key), gate.WithTimeout(100*time.Millisecond)), signed.Name)
	if outcome.Result != gate.Error {
		t.Errorf("%s: %+v", outcome.Result, outcome.Verdicts)
	}
}
