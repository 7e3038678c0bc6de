package gate_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const scanType = "https://example.com/scan/v1"

// scanned requires the latest scan by the key to be clean: by a condition, or by a deny condition.
func scanned(h *env, denies bool) rule {
	r := rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Attestations: []policy.Attestation{{
		Name: "scan", Path: "attestations[0]", PredicateType: scanType, LatestDecides: true, Condition: means("clean"),
		Signers: []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{
			Authority: &verify.Authority{Name: "key", Key: &verify.Key{Ref: string(h.key.PublicPEM())}},
		}}}},
	}}}}}
	if denies {
		r.check.Attestations[0].Condition, r.check.Deny = nil, means("dirty")
	}
	return r
}

// scan attests a verdict, logged some hours ago: in a bundle, or in cosign's older format.
func scan(t *testing.T, h *env, image gatetest.Image, verdict string, hours int, bundle bool) {
	t.Helper()
	claim := verifytest.Claim{Signer: h.key, Records: []verifytest.Record{{Time: time.Now().Add(-time.Duration(hours) * time.Hour)}}}
	attests := h.AttestLegacy
	if bundle {
		attests = h.AttestBundle
	}
	must(0, attests(image, claim, scanType, map[string]string{"verdict": verdict}))(t)
}

// TestStatementsOfCopies: a copy of an image that lacks the latest statement does not supply the
// statements for the image. Signatures of a copy count.
func TestStatementsOfCopies(t *testing.T) {
	for _, denies := range []bool{false, true} {
		h := newEnv(t, registrytest.Options{})
		app, partial, whole := h.Build("app", "v1", "app"), h.Build("partial", "v1", "app"), h.Build("whole", "v1", "app")
		for _, image := range []gatetest.Image{app, partial, whole} {
			scan(t, h, image, "clean", 2, true)
		}
		scan(t, h, app, "dirty", 1, true)
		store := &shelf{}
		g := h.gate(t, scanned(h, denies), gate.WithStore(store))
		if out := decide(t, g, partial.Name); out.Result != gate.Allow {
			t.Fatalf("the copy: %s %+v", out.Result, out.Verdicts[0].Reasons)
		}
		for reason, replica := range map[string]*gate.Gate{
			"this replica": g, "another one with the store": h.gate(t, scanned(h, denies), gate.WithStore(store)),
			"another one with a peer": h.gate(t, scanned(h, denies), gate.WithPeers(peer{gate: g})),
		} {
			if out := decide(t, replica, app.Name); out.Result != gate.Deny {
				t.Errorf("%s, the image, which has a later statement: %s", reason, out.Result)
			}
			if out := decide(t, replica, whole.Name); out.Result != gate.Allow {
				t.Errorf("%s, an image without one: %s", reason, out.Result)
			}
			if out := decide(t, replica, partial.ByDigest()); out.Result != gate.Allow || out.Cost.Requests != 0 {
				t.Errorf("%s, the copy once more: %s with %d requests", reason, out.Result, out.Cost.Requests)
			}
		}
		must(0, h.SignBundle(partial, byKey(h.key), nil))(t)
		signed := h.gate(t, signedBy(h.key))
		decide(t, signed, partial.Name)
		if out := decide(t, signed, app.ByDigest()); out.Result != gate.Allow || out.Cost.Requests != 0 {
			t.Errorf("a signature of the copy: %s with %d requests", out.Result, out.Cost.Requests)
		}
	}
}

// TestStatementsUnderPrefix: a copy does not supply the statements for the image either where a
// policy names a prefix of tags, and no repository.
func TestStatementsUnderPrefix(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, partial := h.Build("app", "v1", "app"), h.Build("partial", "v1", "app")
	for _, image := range []gatetest.Image{app, partial} {
		scan(t, h, image, "clean", 2, true)
	}
	scan(t, h, app, "dirty", 1, true)
	prefixed := scanned(h, false)
	prefixed.check.Sources = []attest.Source{{TagPrefix: "env-"}}
	store := &shelf{}
	g := h.gate(t, prefixed, gate.WithStore(store))
	if out := decide(t, g, partial.Name); out.Result != gate.Allow {
		t.Fatalf("the copy: %s %+v", out.Result, out.Verdicts[0].Reasons)
	}
	if out := decide(t, g, partial.ByDigest()); out.Result != gate.Allow || out.Cost.Requests != 0 {
		t.Errorf("the copy once more: %s with %d requests", out.Result, out.Cost.Requests)
	}
	for reason, replica := range map[string]*gate.Gate{"this replica": g, "another one with the store": h.gate(t, prefixed, gate.WithStore(store))} {
		if out := decide(t, replica, app.Name); out.Result != gate.Deny {
			t.Errorf("%s, the image, which has a later statement: %s", reason, out.Result)
		}
	}
	named := scanned(h, false)
	named.check.Sources = []attest.Source{{Repository: repositoryOf(t, partial)}}
	elsewhere := h.gate(t, named)
	for i, image := range []gatetest.Image{partial, app} {
		if out := decide(t, elsewhere, image.ByDigest()); out.Result != gate.Allow || i > 0 && out.Cost.Requests != 0 {
			t.Errorf("statements of a named repository, for %s: %s with %d requests", image.Name, out.Result, out.Cost.Requests)
		}
	}
}

// repositoryOf is the repository of an image.
func repositoryOf(t *testing.T, of gatetest.Image) image.Repository {
	t.Helper()
	return must(image.Parse(of.Name))(t).Repository()
}

// TestUnreadStatements: where a registry returns a part of an image's statements, a later one may
// be among the rest.
func TestUnreadStatements(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusForbidden} {
		h := newEnv(t, registrytest.Options{})
		h.client = must(registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond)))(t)
		t.Cleanup(h.client.Close)
		app, index := h.Build("app", "v1", "app"), h.Build("app", "other", "other")
		scan(t, h, app, "clean", 2, false)
		must(0, h.SignLegacy(app, byKey(h.key), nil))(t)
		index = h.BuildIndex("app", "index", app, index)
		scan(t, h, index, "clean", 2, false)
		fails := registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Status(status)}
		for _, denies := range []bool{false, true} {
			for _, c := range []struct {
				reason string
				rule   rule
				name   string
				faults []registrytest.Fault
				want   gate.Result
			}{
				{"all is read", scanned(h, denies), app.Name, nil, gate.Allow},
				{"the referrers are not", scanned(h, denies), app.Name, []registrytest.Fault{fails}, gate.Error},
				{"nor those of a platform of a clean index", scanned(h, denies), index.Name + "@" + app.Manifest.Digest, []registrytest.Fault{
					{Kind: registrytest.Manifest, Reference: attestationTag(app), Do: registrytest.Status(status)},
				}, gate.Error},
				{"of a platform nothing is attested", scanned(h, denies), index.Name, nil, gate.Allow},
				{"a signature cannot be outdated", signedBy(h.key), app.Name, []registrytest.Fault{fails}, gate.Allow},
				{"nor can the existence of a statement", exists(scanned(h, false)), app.Name, []registrytest.Fault{fails}, gate.Allow},
			} {
				h.Registry.SetFaults(c.faults...)
				if out := decide(t, h.gate(t, c.rule), c.name); out.Result != c.want {
					t.Errorf("%d, %s: %s, want %s: %+v", status, c.reason, out.Result, c.want, out.Verdicts[0].Reasons)
				}
			}
		}
	}
}

// exists drops the condition of a rule about statements.
func exists(r rule) rule {
	r.check.Attestations[0].Condition = nil
	return r
}

// attestationTag is cosign's tag for the statements of an image.
func attestationTag(image gatetest.Image) string {
	return strings.Replace(image.Manifest.Digest, ":", "-", 1) + ".att"
}

// TestOnlyAtATarget: the three results of an image that its source no longer has, by digest, differ: the evidence
// of a target counts, and without any the image is not found.
func TestOnlyAtATarget(t *testing.T) {
	q := newQuays(t)
	for _, c := range []struct {
		name string
		key  *verifytest.Signer
		want gate.Result
		why  policy.Code
	}{
		{"signed", q.key, gate.Allow, policy.Verified},
		{"foreign", q.stranger, gate.Deny, policy.Code(verify.WrongKey)},
		{"bare", nil, gate.Error, policy.ImageNotFound},
	} {
		only := q.first.Build("hub/"+c.name, "v1", c.name)
		if c.key != nil {
			must(0, q.first.SignBundle(only, byKey(c.key), nil))(t)
		}
		g := q.mirrored(t, signedBy(q.key))
		for _, temperature := range []string{"cold", "warm"} {
			out := decide(t, g, q.Registry.Host()+"/"+c.name+"@"+only.Manifest.Digest)
			if got := codes(out.Verdicts[0].Reasons); out.Result != c.want || got[0] != c.why {
				t.Errorf("%s, %s: %s %v, want %s %s", c.name, temperature, out.Result, got, c.want, c.why)
			}
		}
	}
}
