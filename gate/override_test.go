package gate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/override"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// an is an override in JSON: effect and match, and more fields of spec.
func an(name string, effect policy.OverrideEffect, match string, more ...string) string {
	fields := append([]string{
		`"effect": "` + string(effect) + `"`, `"reason": "INC-7"`, `"expires": "2999-01-01T00:00:00Z"`, `"match": {` + match + `}`,
	}, more...)
	return `{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "ImageOverride", "metadata": {"name": "` + name + `"}, "spec": {` +
		strings.Join(fields, ", ") + `}}`
}

func digests(of ...gatetest.Image) string {
	list := make([]string, len(of))
	for i, image := range of {
		list[i] = image.Manifest.Digest
	}
	return `"digests": ["` + strings.Join(list, `", "`) + `"]`
}

func repositories(names ...string) string {
	return `"repositories": ["` + strings.Join(names, `", "`) + `"]`
}

func keyOf(signer *verifytest.Signer) string {
	text, _ := json.Marshal(string(signer.PublicPEM()))
	return `"signers": [{"key": ` + string(text) + `}]`
}

// overridden makes a gate of rules with overrides.
func (h *env) overridden(t testing.TB, rules []policy.Rule, texts []string, options ...gate.Option) *gate.Gate {
	t.Helper()
	var policies []*policy.Policy
	for i, r := range rules {
		policies = append(policies, &policy.Policy{Kind: "Test", Name: fmt.Sprint("test-", i), Hash: "1", Rules: []policy.Rule{r}})
	}
	return h.overriddenFor(t, policies, texts, options...)
}

func (h *env) overriddenFor(t testing.TB, policies []*policy.Policy, texts []string, options ...gate.Option) *gate.Gate {
	t.Helper()
	set := overridingSet(t, must(set.New(policies...))(t), texts)
	state := gate.Fixed{Policies: set, Prover: prover{Snapshot: h.snapshot, ByFormat: verify.ByFormat{
		attest.Cosign: cosign.New(h.snapshot), attest.Bundle: bundle.New(h.snapshot),
	}}}
	return must(gate.New(gate.Config{Registries: h, State: state}, options...))(t)
}

func overridingSet(t testing.TB, set *set.Set, texts []string) *set.Set {
	t.Helper()
	list := make([]*policy.Override, len(texts))
	for i, text := range texts {
		list[i] = must(override.Overrides{}.Compile([]byte(text), "test.yaml"))(t)
	}
	return must(set.WithOverrides(list...))(t)
}

// overrideYard are the images of the overrides.
type overrideYard struct {
	*env
	good, bad, both, alone, index gatetest.Image
}

func newOverrideYard(t testing.TB) *overrideYard {
	t.Helper()
	y := &overrideYard{env: newEnv(t, registrytest.Options{})}
	y.good, y.bad, y.both = y.Build("org/good", "v1", "good"), y.Build("org/bad", "v1", "bad"), y.Build("org/both", "v1", "both")
	y.alone = y.Build("other/alone", "v1", "alone")
	child, sibling := y.Build("org/child", "v1", "child"), y.Build("org/sibling", "v1", "sibling")
	y.index = y.BuildIndex("org/index", "v1", child, sibling)
	for _, signed := range []gatetest.Image{y.good, y.both, y.index} {
		must(0, y.SignBundle(signed, byKey(y.key), nil))(t)
	}
	must(0, y.SignBundle(y.both, byKey(y.stranger), nil))(t)
	must(0, y.SignBundle(y.alone, byKey(y.stranger), nil))(t)
	return y
}

func (y *overrideYard) child() gatetest.Image { return y.Build("org/child", "v1", "child") }

func TestOverrides(t *testing.T) {
	y := newOverrideYard(t)
	const denied, allowed = policy.OverrideDenied, policy.OverrideAllowed
	host := y.Registry.Host()
	signed := signedBy(y.key)
	audit := signedBy(y.stranger)
	audit.check.Action = policy.Audit
	either := signedBy(y.key, y.stranger)
	unpinned := signedBy(y.key)
	unpinned.check.MutateDigest = false
	wantsDigest := signedBy(y.key)
	wantsDigest.check.VerifyDigest = true
	for _, c := range []struct {
		reason    string
		rule      policy.Rule // nil: none
		overrides []string
		pinning   gate.Pinning
		image     string
		want      gate.Result
		code      policy.Code
		pins      bool
	}{
		// Deny.
		{"a digest is denied that policies allow, by tag", signed, []string{an("a", "Deny", digests(y.good))}, gate.PinHere, y.good.Name, gate.Deny, denied, false},
		{"the same by digest", signed, []string{an("a", "Deny", digests(y.good))}, gate.PinHere, y.good.ByDigest(), gate.Deny, denied, false},
		{"another digest is denied", signed, []string{an("a", "Deny", digests(y.bad))}, gate.PinHere, y.good.Name, gate.Allow, policy.Verified, true},
		{"a digest that no policy matches", nil, []string{an("a", "Deny", digests(y.good))}, gate.PinHere, y.good.Name, gate.Deny, denied, false},
		{"the same by digest, at an endpoint that pins nothing", nil, []string{an("a", "Deny", digests(y.good))}, gate.PinNever, y.good.ByDigest(), gate.Deny, denied, false},
		{"the same by tag there", nil, []string{an("a", "Deny", digests(y.good))}, gate.PinNever, y.good.Name, gate.Deny, denied, false},
		{"by the second call", nil, []string{an("a", "Deny", digests(y.good))}, gate.PinDone, y.good.ByDigest(), gate.Deny, denied, false},
		{"in a template", nil, []string{an("a", "Deny", digests(y.good))}, gate.PinLater, y.good.Name, gate.Deny, denied, false},
		{"another is denied, and the tag might be moved to it", nil, []string{an("a", "Deny", digests(y.bad))}, gate.PinHere, y.good.Name, gate.Unchecked, policy.NotConcerned, true},
		{"the same, confined to another namespace", nil, []string{an("a", "Deny", digests(y.bad), `"namespaces": ["team-*"]`)}, gate.PinHere, y.good.Name, gate.Unchecked, policy.NotConcerned, false},
		{"an index lists a denied platform", signed, []string{an("a", "Deny", digests(y.child()))}, gate.PinHere, y.index.Name, gate.Deny, denied, false},
		{"the same by the index's digest, without a policy", nil, []string{an("a", "Deny", digests(y.child()))}, gate.PinNever, y.index.ByDigest(), gate.Deny, denied, false},
		{"an index is denied, and a platform of it named", nil, []string{an("a", "Deny", digests(y.index))}, gate.PinNever, y.child().ByDigest(), gate.Unchecked, policy.NotConcerned, false},
		{"an absent tag may be a denied one", nil, []string{an("a", "Deny", digests(y.good))}, gate.PinHere, host + "/org/none:v1", gate.Error, policy.ImageNotFound, false},
		{"the same where the override does not hold", nil, []string{an("a", "Deny", digests(y.good), `"namespaces": ["team-a"]`)}, gate.PinHere, host + "/org/none:v1", gate.Unchecked, policy.NotConcerned, false},
		{"a repository is denied", signed, []string{an("a", "Deny", repositories(host+"/org/good"))}, gate.PinHere, y.good.Name, gate.Deny, denied, false},
		{"the same by digest", signed, []string{an("a", "Deny", repositories(host+"/org/good"))}, gate.PinHere, y.good.ByDigest(), gate.Deny, denied, false},
		{"by a pattern", nil, []string{an("a", "Deny", repositories(host+"/org/*"))}, gate.PinNever, y.good.Name, gate.Deny, denied, false},
		{"by a pattern for one character", nil, []string{an("a", "Deny", repositories(host+"/org/goo?"))}, gate.PinNever, y.good.Name, gate.Deny, denied, false},
		{"beside the pattern", signed, []string{an("a", "Deny", repositories(host+"/or?"))}, gate.PinHere, y.good.Name, gate.Allow, policy.Verified, true},
		{"a repository that does not answer is denied all the same", nil, []string{an("a", "Deny", repositories(host+"/org/none"))}, gate.PinHere, host + "/org/none:v1", gate.Deny, denied, false},
		{"a signer is denied", signed, []string{an("a", "Deny", keyOf(y.key))}, gate.PinHere, y.good.Name, gate.Deny, denied, false},
		{"another signer is denied", signed, []string{an("a", "Deny", keyOf(y.stranger))}, gate.PinHere, y.good.Name, gate.Allow, policy.Verified, true},
		{"one of two signers is denied, and the other would do", either, []string{an("a", "Deny", keyOf(y.stranger))}, gate.PinHere, y.both.Name, gate.Deny, denied, false},
		{"only the other signer signed", either, []string{an("a", "Deny", keyOf(y.stranger))}, gate.PinHere, y.good.Name, gate.Allow, policy.Verified, true},
		{"a denied signer is found by a policy under audit", audit, []string{an("a", "Deny", keyOf(y.stranger))}, gate.PinHere, y.alone.Name, gate.Deny, denied, false},
		{"a denied signer is in no policy", signed, []string{an("a", "Deny", keyOf(y.stranger))}, gate.PinHere, y.both.Name, gate.Allow, policy.Verified, true},
		{"whether a denied signer signed is not known, under audit", audit, []string{an("a", "Deny", keyOf(y.stranger))}, gate.PinHere, host + "/org/none:v1", gate.Error, policy.ImageNotFound, false},

		// Allow.
		{"a digest is allowed that policies deny, and pinned", signed, []string{an("a", "Allow", digests(y.bad))}, gate.PinHere, y.bad.Name, gate.Allow, allowed, true},
		{"the same by digest", signed, []string{an("a", "Allow", digests(y.bad))}, gate.PinDone, y.bad.ByDigest(), gate.Allow, allowed, false},
		{"pinned although the policy does not pin", unpinned, []string{an("a", "Allow", digests(y.bad))}, gate.PinHere, y.bad.Name, gate.Allow, allowed, true},
		{"in a template", signed, []string{an("a", "Allow", digests(y.bad))}, gate.PinLater, y.bad.Name, gate.Allow, allowed, true},
		{"a tag that was not pinned may resolve to another", signed, []string{an("a", "Allow", digests(y.bad))}, gate.PinDone, y.bad.Name, gate.Deny, policy.Unsigned, false},
		{"or that cannot be pinned", signed, []string{an("a", "Allow", digests(y.bad))}, gate.PinNever, y.bad.Name, gate.Deny, policy.Unsigned, false},
		{"another digest is allowed", signed, []string{an("a", "Allow", digests(y.good))}, gate.PinHere, y.bad.Name, gate.Deny, policy.Unsigned, false},
		{"a repository is allowed", signed, []string{an("a", "Allow", repositories(host+"/org/bad"))}, gate.PinHere, y.bad.Name, gate.Allow, allowed, true},
		{"and not pinned where the policy does not pin", unpinned, []string{an("a", "Allow", repositories(host+"/org/bad"))}, gate.PinHere, y.bad.Name, gate.Allow, allowed, false},
		{"and its tag that is not there", signed, []string{an("a", "Allow", repositories(host+"/org/none"))}, gate.PinHere, host + "/org/none:v1", gate.Allow, allowed, false},
		{"and its tag that was to be pinned", wantsDigest, []string{an("a", "Allow", repositories(host+"/org/bad"))}, gate.PinDone, y.bad.Name, gate.Allow, allowed, true},
		{"and not the one beside it", signed, []string{an("a", "Allow", repositories(host+"/org/ba"))}, gate.PinHere, y.bad.Name, gate.Deny, policy.Unsigned, false},
		{"in the namespace", signed, []string{an("a", "Allow", repositories("*"), `"namespaces": ["def*"]`)}, gate.PinHere, y.bad.Name, gate.Allow, allowed, true},
		{"and not in others", signed, []string{an("a", "Allow", repositories("*"), `"namespaces": ["team-a"]`)}, gate.PinHere, y.bad.Name, gate.Deny, policy.Unsigned, false},
		{"an allowed signer is in no policy", signed, []string{an("a", "Allow", keyOf(y.stranger))}, gate.PinHere, y.alone.Name, gate.Allow, allowed, true},
		{"by digest", signed, []string{an("a", "Allow", keyOf(y.stranger))}, gate.PinDone, y.alone.ByDigest(), gate.Allow, allowed, false},
		{"an allowed signer did not sign", signed, []string{an("a", "Allow", keyOf(y.stranger))}, gate.PinHere, y.bad.Name, gate.Deny, policy.Unsigned, false},
		{"an Allow that is not needed is not used", signed, []string{an("a", "Allow", repositories("*"))}, gate.PinHere, y.good.Name, gate.Allow, policy.Verified, true},

		// Both.
		{"Deny wins", signed, []string{an("a", "Allow", digests(y.bad)), an("b", "Deny", digests(y.bad))}, gate.PinHere, y.bad.Name, gate.Deny, denied, false},
		{"whatever they go by", signed, []string{an("a", "Allow", digests(y.bad)), an("b", "Deny", repositories("*"))}, gate.PinHere, y.bad.ByDigest(), gate.Deny, denied, false},
		{"also by a signer", signed, []string{an("a", "Allow", repositories("*")), an("b", "Deny", keyOf(y.key))}, gate.PinHere, y.good.Name, gate.Deny, denied, false},
		{"what may be denied is not allowed", signed, []string{an("a", "Allow", repositories("*")), an("b", "Deny", digests(y.good))}, gate.PinHere, host + "/org/none:v1", gate.Error, policy.ImageNotFound, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var rules []policy.Rule
			if c.rule != nil {
				rules = append(rules, c.rule)
			}
			g := y.overridden(t, rules, c.overrides)
			for turn := range 2 { // the second time from memory
				request := pod(t, c.image)
				request.Pinning = c.pinning
				out := g.Decide(t.Context(), request)
				v := out.Verdicts[0]
				if out.Result != c.want || v.Reasons[0].Code != c.code || v.Pin != c.pins {
					t.Fatalf("turn %d: %s, pin %t, want %s %s, pin %t\n%+v", turn, out.Result, v.Pin, c.want, c.code, c.pins, v.Reasons)
				}
				used := c.code == denied || c.code == allowed
				if used != (v.Override != nil) {
					t.Errorf("turn %d: the override is %+v", turn, v.Override)
				}
				for _, text := range []string{"INC-7", "2999-01-01T00:00:00Z"} { // why, and until when
					if used && !strings.Contains(v.Reasons[0].Message, text) {
						t.Errorf("%q is not in: %s", text, v.Reasons[0].Message)
					}
				}
				if c.code == allowed && len(v.Warnings) == 0 {
					t.Error("no warning reports the override")
				}
			}
		})
	}
}

// TestDeniedKeyOfACertificate: a denied key is denied where a policy identifies it by its certificate, too.
func TestDeniedKeyOfACertificate(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signer := must(h.Sigstore.Keyless(verifytest.Identity{Email: "a@example.com", Issuer: "https://issuer.example", NoSCT: true}))(t)
	built := h.Build("org/app", "v1", "app")
	must(0, h.SignLegacy(built, verifytest.Claim{Signer: signer, NoLog: true}, nil))(t)
	rule := signedBy(h.key)
	rule.check.Requirements[0].Members[0].Authority = &verify.Authority{
		Name: "certificate", Certificate: &verify.Certificate{Leaf: signer.CertificatePEM(), CT: verify.CT{Ignore: true}}, Log: verify.Log{Ignore: true},
	}
	for _, c := range []struct {
		reason, match string
		want          gate.Result
	}{
		{"the key", keyOf(signer), gate.Deny},
		{"another key", keyOf(h.stranger), gate.Allow},
	} {
		g := h.overridden(t, []policy.Rule{rule}, []string{an("a", "Deny", c.match)})
		for turn := range 2 { // the second time from the cache
			if out := decide(t, g, built.Name); out.Result != c.want {
				t.Errorf("%s, turn %d: %s, want %s: %+v", c.reason, turn, out.Result, c.want, out.Verdicts[0].Reasons)
			}
		}
	}
}

// TestDeniedNameOfACertificate: an identity is denied by any name of the certificate, whichever of them
// the policy matches.
func TestDeniedNameOfACertificate(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	const issuer = "https://issuer.example"
	signer := must(h.Sigstore.Keyless(verifytest.Identity{Email: "a@example.com,b@example.com", Issuer: issuer}))(t)
	built := h.Build("org/app", "v1", "app")
	must(0, h.SignLegacy(built, verifytest.Claim{Signer: signer}, nil))(t)
	by := func(subject string) *verify.Authority {
		identity := verify.Identity{Issuer: verify.Exactly(issuer), Subject: verify.Exactly(subject)}
		return &verify.Authority{Name: "keyless", Keyless: &verify.Keyless{Identities: []verify.Identity{identity}}}
	}
	leaf := &verify.Authority{
		Name: "certificate", Certificate: &verify.Certificate{Leaf: signer.CertificatePEM(), CT: verify.CT{Ignore: true}}, Log: verify.Log{Ignore: true},
	}
	for _, c := range []struct {
		reason    string
		authority *verify.Authority
		match     string
		want      gate.Result
	}{
		{"the name that the policy matches", by("a@example.com"), `"issuer": "` + issuer + `", "subject": "a@example.com"`, gate.Deny},
		{"another name", by("a@example.com"), `"issuer": "` + issuer + `", "subject": "b@example.com"`, gate.Deny},
		{"an earlier name", by("b@example.com"), `"issuer": "` + issuer + `", "subject": "a@example.com"`, gate.Deny},
		{"an expression for another name", by("a@example.com"), `"issuer": "` + issuer + `", "subjectRegExp": "b@.*"`, gate.Deny},
		{"another name of a certificate that the policy holds", leaf, `"issuer": "` + issuer + `", "subject": "b@example.com"`, gate.Deny},
		{"no name of it", by("a@example.com"), `"issuer": "` + issuer + `", "subject": "c@example.com"`, gate.Allow},
		{"another name, of another issuer", by("a@example.com"), `"issuer": "https://other.example", "subject": "b@example.com"`, gate.Allow},
	} {
		rule := signedBy(h.key)
		rule.check.Requirements[0].Members[0].Authority = c.authority
		g := h.overridden(t, []policy.Rule{rule}, []string{an("a", "Deny", `"signers": [{`+c.match+`}]`)})
		for turn := range 2 { // the second time from the cache
			if out := decide(t, g, built.Name); out.Result != c.want {
				t.Errorf("%s, turn %d: %s, want %s: %+v", c.reason, turn, out.Result, c.want, out.Verdicts[0].Reasons)
			}
		}
	}
}

// What an index in an index lists is found, and one that hides too much is not admitted.
func TestOverrideOfNestedIndexes(t *testing.T) {
	y := newOverrideYard(t)
	inner := y.BuildIndex("org/nested", "inner", y.child())
	outer := y.BuildIndex("org/nested", "outer", y.good, inner)
	untyped := inner
	untyped.Manifest.MediaType = ""
	hidden := y.BuildIndex("org/nested", "hidden", y.good, untyped)
	nested := outer
	for depth := range 10 {
		nested = y.BuildIndex("org/nested", fmt.Sprint("deep-", depth), nested)
	}
	for _, c := range []struct {
		reason, image string
		denied        gatetest.Image
		want          gate.Result
		code          policy.Code
	}{
		{"listed by an index that it lists", outer.Name, y.child(), gate.Deny, policy.OverrideDenied},
		{"that index itself", outer.Name, inner, gate.Deny, policy.OverrideDenied},
		{"listed by an index without a type", hidden.Name, y.child(), gate.Deny, policy.OverrideDenied},
		{"another beside that", hidden.Name, y.bad, gate.Unchecked, policy.NotConcerned},
		{"another", outer.Name, y.bad, gate.Unchecked, policy.NotConcerned},
		{"below more indexes than are read", nested.Name, y.bad, gate.Error, policy.TooMuch},
	} {
		out := y.overridden(t, nil, []string{an("a", "Deny", digests(c.denied))}).Decide(t.Context(), pod(t, c.image))
		if out.Result != c.want || out.Verdicts[0].Reasons[0].Code != c.code {
			t.Errorf("%s: %s %+v", c.reason, out.Result, out.Verdicts[0].Reasons)
		}
	}
}

// A use of an override is forgotten when it has ended.
func TestOverrideEnds(t *testing.T) {
	y := newOverrideYard(t)
	end := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		reason string
		at     time.Time
		want   gate.Result
	}{
		{"a second before", end.Add(-time.Second), gate.Allow},
		{"at the end", end, gate.Deny},
	} {
		g := y.overridden(t, []policy.Rule{signedBy(y.key)}, []string{an("a", "Allow", repositories("*"))}, gate.WithClock(func() time.Time { return c.at }))
		if out := g.Decide(t.Context(), pod(t, y.bad.Name)); out.Result != c.want {
			t.Errorf("%s: %s %+v", c.reason, out.Result, out.Verdicts[0].Reasons)
		}
	}
}

// An endpoint that knows no namespace does not know either whether a Deny for some holds.
func TestOverrideWithoutNamespace(t *testing.T) {
	y := newOverrideYard(t)
	for _, c := range []struct {
		reason, override, namespace string
		want                        gate.Result
		code                        policy.Code
	}{
		{"for all", an("a", "Deny", digests(y.good)), "", gate.Deny, policy.OverrideDenied},
		{"for some", an("a", "Deny", digests(y.good), `"namespaces": ["team-a"]`), "", gate.Error, policy.OverrideDenied},
		{"for some, and another image", an("a", "Deny", repositories("other.example/x"), `"namespaces": ["team-a"]`), "", gate.Unchecked, policy.NotConcerned},
		{"for some, and among them", an("a", "Deny", digests(y.good), `"namespaces": ["team-a"]`), "team-a", gate.Deny, policy.OverrideDenied},
		{"for some, and not among them", an("a", "Deny", digests(y.good), `"namespaces": ["team-a"]`), "team-b", gate.Unchecked, policy.NotConcerned},
	} {
		request := must(gate.ForImages(c.namespace, "", []string{y.good.ByDigest()}))(t)
		request.Pinning = gate.PinNever
		out := y.overridden(t, nil, []string{c.override}).Decide(t.Context(), request)
		if out.Result != c.want || out.Verdicts[0].Reasons[0].Code != c.code {
			t.Errorf("%s: %s %+v", c.reason, out.Result, out.Verdicts[0].Reasons)
		}
	}
	request := must(gate.ForImages("", "", []string{y.bad.ByDigest()}))(t)
	g := y.overridden(t, []policy.Rule{signedBy(y.key)}, []string{an("a", "Allow", repositories("*"), `"namespaces": ["team-a"]`)})
	if out := g.Decide(t.Context(), request); out.Result != gate.Deny {
		t.Errorf("an Allow for some namespaces, where none is known: %s", out.Result)
	}
}

// A rule that could not be evaluated does not block an image that an Allow matches.
func TestOverrideOfBrokenPolicy(t *testing.T) {
	y := newOverrideYard(t)
	broken := &policy.Policy{Kind: "Test", Name: "broken", Hash: "1", Rules: []policy.Rule{unaskable{}}}
	g := y.overriddenFor(t, []*policy.Policy{broken}, []string{an("a", "Allow", repositories(y.Registry.Host()+"/org/*"))})
	for _, c := range []struct {
		reason string
		images []string
		want   []gate.Result
	}{
		{"all are allowed", []string{y.good.Name, y.bad.Name}, []gate.Result{gate.Allow, gate.Allow}},
		{"one is not", []string{y.good.Name, y.alone.Name}, []gate.Result{gate.Allow, gate.Error}},
	} {
		out := g.Decide(t.Context(), pod(t, c.images...))
		worst := gate.Allow
		for i, v := range out.Verdicts {
			if v.Result != c.want[i] || (v.Override != nil) != (c.want[i] == gate.Allow) {
				t.Errorf("%s: %s is %s, %+v", c.reason, v.Image.Ref, v.Result, v.Reasons)
			}
			if c.want[i] != gate.Allow {
				worst = gate.Error
			}
		}
		if out.Result != worst {
			t.Errorf("%s: %s", c.reason, out.Result)
		}
	}
	if out := y.overriddenFor(t, []*policy.Policy{broken}, nil).Decide(t.Context(), pod(t, y.good.Name)); out.Result != gate.Error {
		t.Errorf("without an override: %s", out.Result)
	}
}

// An Allow by any of its means wins over a rule that could not be evaluated; the signers of such a
// rule are unknown, and may be denied ones.
func TestOverridesBesideARuleThatCannotBeAsked(t *testing.T) {
	y := newOverrideYard(t)
	unasked := policy.Policy{Kind: "Test", Name: "unasked", Hash: "1", Rules: []policy.Rule{unaskable{}}}
	audit := unasked
	audit.AuditOnly = true
	broken := audit
	broken.Broken = errors.New("an unknown field")
	for _, c := range []struct {
		reason          string
		policy          *policy.Policy
		override, image string
		want            gate.Result
	}{
		{"a repository is allowed", &unasked, an("a", "Allow", repositories("*")), y.alone.Name, gate.Allow},
		{"a digest is allowed", &unasked, an("a", "Allow", digests(y.alone)), y.alone.Name, gate.Allow},
		{"a signer is allowed", &unasked, an("a", "Allow", keyOf(y.stranger)), y.alone.Name, gate.Allow},
		{"the same by digest", &unasked, an("a", "Allow", keyOf(y.stranger)), y.alone.ByDigest(), gate.Allow},
		{"another signer is allowed", &unasked, an("a", "Allow", keyOf(y.stranger)), y.good.Name, gate.Error},
		{"a signer is denied, under audit", &audit, an("a", "Deny", keyOf(y.key)), y.good.Name, gate.Error},
		{"no signer is denied, under audit", &audit, an("a", "Deny", repositories("other.example/x")), y.good.Name, gate.Allow},
		{"a signer is denied, and the policy is broken, which asks nothing", &broken, an("a", "Deny", keyOf(y.key)), y.good.Name, gate.Allow},
	} {
		out := y.overriddenFor(t, []*policy.Policy{c.policy}, []string{c.override}).Decide(t.Context(), pod(t, c.image))
		if out.Result != c.want {
			t.Errorf("%s: %s %+v", c.reason, out.Result, out.Verdicts[0].Reasons)
		}
	}
}

// A judge about all images is asked again without those that an Allow matches; its reasons against
// the object stay.
func TestOverrideAndJudge(t *testing.T) {
	y := newOverrideYard(t)
	allow := []string{an("a", "Allow", repositories(y.Registry.Host()+"/org/bad"))}
	all := judging{authorities: []*verify.Authority{keyAuthority(y.key)}, judge: func(given []policy.Given) policy.Judgement {
		out := eachSigned(1)(given)
		for _, d := range out.Decisions {
			if d.Result != policy.Pass {
				for i := range out.Decisions {
					out.Decisions[i] = policy.Decision{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Denied, Message: "not all"}}}
				}
			}
		}
		return out
	}}
	object := all
	object.judge = func(given []policy.Given) policy.Judgement {
		out := eachSigned(0)(given)
		out.Object = policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Denied, Message: "the object"}}}
		return out
	}
	unsure := all
	unsure.judge = func(given []policy.Given) policy.Judgement {
		out := eachSigned(0)(given)
		out.Object = policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: "the expression failed"}}}
		return out
	}
	for _, c := range []struct {
		reason    string
		rule      policy.Rule
		overrides []string
		images    []string
		want      gate.Result
	}{
		{"one of two is allowed, the other signed", all, allow, []string{y.bad.Name, y.good.Name}, gate.Allow},
		{"one of two is allowed, the other not signed", all, allow, []string{y.bad.Name, y.alone.Name}, gate.Deny},
		{"without an override", all, nil, []string{y.bad.Name, y.good.Name}, gate.Deny},
		{"reasons against the object stay", object, allow, []string{y.bad.Name}, gate.Deny},
		{"what could not be evaluated about it does not", unsure, allow, []string{y.bad.Name}, gate.Allow},
		{"without an override it does", unsure, nil, []string{y.bad.Name}, gate.Error},
	} {
		if out := y.overridden(t, []policy.Rule{c.rule}, c.overrides).Decide(t.Context(), pod(t, c.images...)); out.Result != c.want {
			t.Errorf("%s: %s %+v", c.reason, out.Result, out)
		}
	}
}

// A signer is looked for although memory alone would do for the policies.
func TestDeniedSignerBesideMemory(t *testing.T) {
	y := newOverrideYard(t)
	either := signedBy(y.key, y.stranger)
	policies := []*policy.Policy{{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{either}}}
	plain := must(set.New(policies...))(t)
	state := &gate.Current{}
	snapshot := gate.Snapshot{Policies: must(set.New(&policy.Policy{Kind: "Test", Name: "one", Hash: "1", Rules: []policy.Rule{
		rule{policy.Check{Entry: "e", Claims: policy.Claims{Requirements: []policy.Requirement{{Name: "r", Threshold: 1, Members: either.check.Requirements[0].Members[:1]}}}}},
	}}))(t), Prover: prover{Snapshot: y.snapshot, ByFormat: verify.ByFormat{attest.Cosign: cosign.New(y.snapshot), attest.Bundle: bundle.New(y.snapshot)}}}
	state.Replace(snapshot)
	g := must(gate.New(gate.Config{Registries: y, State: state}))(t)
	if out := g.Decide(t.Context(), pod(t, y.both.Name)); out.Result != gate.Allow { // memory now knows the first signer
		t.Fatal(out.Result)
	}
	state.ReplacePolicies(plain)
	if out := g.Decide(t.Context(), pod(t, y.both.Name)); out.Result != gate.Allow {
		t.Fatal(out.Result)
	}
	state.ReplacePolicies(overridingSet(t, plain, []string{an("a", "Deny", keyOf(y.stranger))}))
	if out := g.Decide(t.Context(), pod(t, y.both.Name)); out.Result != gate.Deny {
		t.Errorf("memory knew another signer, and the denied one was not looked for: %+v", out.Verdicts[0].Reasons)
	}
}

// An image that could not be verified is reported as such, and no Allow admits one that may be
// denied.
func TestOverridesWhileTheRegistryIsSilent(t *testing.T) {
	y := newOverrideYard(t)
	open := &policy.Policy{Kind: "Test", Name: "open", Hash: "1", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{signedBy(y.key)}}
	y.Registry.SetFaults(registrytest.Fault{Do: registrytest.RetryAfter(http.StatusServiceUnavailable, "600")})
	for _, c := range []struct {
		reason, override, image string
		want                    gate.Result
	}{
		{"what fails open", an("a", "Deny", repositories("other.example/x")), y.good.Name, gate.Allow},
		{"a digest is denied", an("a", "Deny", digests(y.bad)), y.good.Name, gate.Error},
		{"a signer is denied", an("a", "Deny", keyOf(y.key)), y.good.Name, gate.Error},
		{"a denied signer is not in this policy", an("a", "Deny", `"signers": [{"issuer": "https://i.example", "subject": "s"}]`), y.good.Name, gate.Allow},
		{"the denied digest is named", an("a", "Deny", digests(y.bad)), y.bad.ByDigest(), gate.Deny},
		{"what an index lists cannot be read", an("a", "Deny", digests(y.bad)), y.index.ByDigest(), gate.Error},
	} {
		out := y.overriddenFor(t, []*policy.Policy{open}, []string{c.override}).Decide(t.Context(), pod(t, c.image))
		if out.Result != c.want {
			t.Errorf("%s: %s %+v", c.reason, out.Result, out.Verdicts[0])
		}
		if c.want == gate.Error && out.Verdicts[0].Reasons[0].Code != policy.Unavailable {
			t.Errorf("%s: %+v", c.reason, out.Verdicts[0].Reasons)
		}
	}
}

// What ran before an update goes on running, whatever overrides say.
func TestOverrideLeavesUnchangedImages(t *testing.T) {
	y := newOverrideYard(t)
	g := y.overridden(t, nil, []string{an("a", "Deny", digests(y.good))})
	request := pod(t, y.good.Name)
	request.Old = request.Object
	request.Subject.Operation = "UPDATE"
	if out := g.Decide(t.Context(), request); out.Result != gate.Allow || out.Verdicts[0].Reasons[0].Code != policy.Unchanged {
		t.Errorf("%s %+v", out.Result, out.Verdicts[0].Reasons)
	}
	request = pod(t, y.good.Name, y.good.ByDigest())
	request.Old = pod(t, y.good.Name).Object
	if out := g.Decide(t.Context(), request); out.Result != gate.Deny {
		t.Errorf("another container with it is new: %s", out.Result)
	}
}

// The order in which overrides are given does not matter.
func TestDenyWinsInAnyOrder(t *testing.T) {
	y := newOverrideYard(t)
	texts := []string{
		an("a", "Allow", repositories("*")), an("b", "Deny", digests(y.bad)), an("c", "Allow", digests(y.bad)),
		an("d", "Deny", repositories(y.Registry.Host()+"/org/bad")), an("e", "Allow", keyOf(y.key)),
	}
	request := pod(t, y.bad.Name)
	first := ""
	for turn := range texts {
		order := append(slices.Clone(texts[turn:]), texts[:turn]...)
		if turn%2 == 1 {
			slices.Reverse(order)
		}
		out := y.overridden(t, []policy.Rule{signedBy(y.key)}, order).Decide(t.Context(), request)
		said := fmt.Sprint(out.Result, out.PolicyHash, out.Verdicts[0].Reasons)
		if first == "" {
			first = said
		}
		if out.Result != gate.Deny || said != first {
			t.Errorf("order %d: %s", turn, said)
		}
	}
}

// Without overrides nothing more is asked than before.
func TestOverridesCostNothingElsewhere(t *testing.T) {
	y := newOverrideYard(t)
	count := func(overrides ...string) int {
		g := y.overridden(t, nil, overrides)
		before := len(y.Registry.Requests())
		g.Decide(t.Context(), pod(t, y.good.Name, y.good.Name))
		return len(y.Registry.Requests()) - before
	}
	if n := count(); n != 0 {
		t.Errorf("%d requests without overrides", n)
	}
	if n := count(an("a", "Deny", repositories("other.example/x"))); n != 0 {
		t.Errorf("%d requests for a repository that is denied", n)
	}
	if n := count(an("a", "Deny", digests(y.bad))); n != 2 {
		t.Errorf("%d requests for a digest that is denied, want the tag's and the manifest", n)
	}
}
