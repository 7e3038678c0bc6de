package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const sbomType = "https://example.com/sbom/v1"

// states attests a verdict by a key, without a log.
func states(t *testing.T, h *env, image gatetest.Image, signer *verifytest.Signer, predicateType, verdict string) {
	t.Helper()
	must(0, h.AttestBundle(image, byKey(signer), predicateType, map[string]string{"verdict": verdict}))(t)
}

// TestDeniedBesideMissing: a platform's own statement that the deny condition refuses counts, although
// another attestation is on the index alone.
func TestDeniedBesideMissing(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	dirty, clean := h.Build("app", "d", "d"), h.Build("app", "c", "c")
	index := h.BuildIndex("app", "v1", dirty, clean)
	states(t, h, index, h.key, scanType, "clean")
	states(t, h, index, h.key, sbomType, "complete")
	states(t, h, dirty, h.key, scanType, "dirty")
	states(t, h, clean, h.key, scanType, "clean")
	check := policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Deny: means("dirty")}}
	for _, predicateType := range []string{scanType, sbomType} {
		check.Attestations = append(check.Attestations, policy.Attestation{
			Name: predicateType, Path: "attestations", PredicateType: predicateType,
			Signers: []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: keyAuthority(h.key)}}}},
		})
	}
	g := h.gate(t, rule{check})
	expect(t, decide(t, g, index.Name+"@"+dirty.Manifest.Digest), gate.Deny, policy.NoAttestation)
	expect(t, decide(t, g, index.Name+"@"+clean.Manifest.Digest), gate.Allow, policy.Verified)
}

// TestDeniedByEachSigner: of two required signers, each has a statement that the deny condition
// lets pass.
func TestDeniedByEachSigner(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	check := policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Deny: means("dirty"), Attestations: []policy.Attestation{{
		Name: "scan", Path: "attestations[0]", PredicateType: scanType,
		Signers: []policy.Requirement{{Name: "attestors[0]", Threshold: 2, Members: []policy.Member{
			{Authority: keyAuthority(h.key)}, {Authority: keyAuthority(h.stranger)},
		}}},
	}}}}
	g := h.gate(t, rule{check})
	for i, c := range []struct {
		first, second string
		want          gate.Result
		code          policy.Code
	}{
		{"clean", "dirty", gate.Deny, policy.Denied},
		{"dirty", "clean", gate.Deny, policy.Denied},
		{"clean", "clean", gate.Allow, policy.Verified},
	} {
		app := h.Build("app", fmt.Sprint("v", i), fmt.Sprint(i))
		states(t, h, app, h.key, scanType, c.first)
		states(t, h, app, h.stranger, scanType, c.second)
		expect(t, decide(t, g, app.Name), c.want, c.code)
	}
}

// TestLaterBeyondReferrers: more referrers than are opened may hide a later statement, so the
// statements that were read do not decide. A signature among those read does.
func TestLaterBeyondReferrers(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	scan(t, h, app, "clean", 2, true)
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	g := h.gate(t, scanned(h, false))
	expect(t, decide(t, g, app.Name), gate.Allow, policy.Verified)
	for i := range attest.MaxOpenedReferrers {
		must(0, h.PutBundle(app, fmt.Appendf(nil, "{%d", i), scanType))(t)
	}
	if out := decide(t, h.gate(t, scanned(h, false)), app.Name); out.Result != gate.Error {
		t.Errorf("beyond %d referrers: %s %+v", attest.MaxOpenedReferrers, out.Result, out.Verdicts[0].Reasons)
	}
	expect(t, decide(t, h.gate(t, signedBy(h.key)), app.Name), gate.Allow, policy.Verified)
}

// TestIdentityOfTwoAuthorities: an identity of OpenID Connect that two authorities certify is one
// signer.
func TestIdentityOfTwoAuthorities(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	other := must(verifytest.New(verifytest.Options{}))(t)
	const issuer = "https://issuer.example"
	subjects := []string{"ann@example.com", "bob@example.com"}
	both := policy.Requirement{Name: "attestors[0]", Threshold: 2}
	for _, ca := range []*verifytest.CA{h.Sigstore.CA, other.CA} {
		authority := &verify.Authority{Name: "keyless", Log: verify.Log{Ignore: true}, Keyless: &verify.Keyless{
			Roots: ca.ChainPEM(), CT: verify.CT{Ignore: true},
		}}
		for _, subject := range subjects {
			authority.Keyless.Identities = append(authority.Keyless.Identities, verify.Identity{Issuer: verify.Exactly(issuer), Subject: verify.Exactly(subject)})
		}
		both.Members = append(both.Members, policy.Member{Authority: authority})
	}
	g := h.gate(t, rule{policy.Check{Entry: "verifyImages[0]", Claims: policy.Claims{Requirements: []policy.Requirement{both}}}})
	for i, second := range subjects {
		app := h.Build("app", fmt.Sprint("v", i), fmt.Sprint(i))
		for ca, subject := range map[*verifytest.CA]string{h.Sigstore.CA: subjects[0], other.CA: second} {
			signer := must(h.Sigstore.Keyless(verifytest.Identity{Email: subject, Issuer: issuer, CA: ca, NotBefore: time.Now().Add(-time.Minute)}))(t)
			must(0, h.SignBundle(app, verifytest.Claim{Signer: signer}, nil))(t)
		}
		want := gate.Allow
		if second == subjects[0] {
			want = gate.Deny
		}
		if out := decide(t, g, app.Name); out.Result != want {
			t.Errorf("%s and %s: %s, want %s: %+v", subjects[0], second, out.Result, want, out.Verdicts[0].Reasons)
		}
	}
}

// TestUnreadIndex: an image that is named by tag and digest is unsigned only if the index behind the
// tag, which may be signed in its place, was read.
func TestUnreadIndex(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	child, bare := h.Build("app", "c", "c"), h.Build("bare", "c", "c2")
	index, unsigned := h.BuildIndex("app", "v1", child), h.BuildIndex("bare", "v1", bare)
	must(0, h.SignBundle(index, byKey(h.key), nil))(t)
	must(0, h.SignBundle(unsigned, byKey(h.stranger), nil))(t)
	at := func(reference string, kind registrytest.Kind, status int) []registrytest.Fault {
		return []registrytest.Fault{{Kind: kind, Reference: reference, Do: registrytest.Status(status)}}
	}
	signed, wrong := index.Name+"@"+child.Manifest.Digest, unsigned.Name+"@"+bare.Manifest.Digest
	for _, c := range []struct {
		reason, image string
		faults        []registrytest.Fault
		want          gate.Result
		code          policy.Code
	}{
		{"the index is signed", signed, nil, gate.Allow, policy.Verified},
		{"the tag cannot be read", signed, at("v1", registrytest.Manifest, 403), gate.Error, policy.AccessRefused},
		{"the index's signatures cannot be read", signed, at(index.Manifest.Digest, registrytest.Referrers, 403), gate.Error, policy.AccessRefused},
		{"the tag is not there", signed, at("v1", registrytest.Manifest, 404), gate.Deny, policy.Unsigned},
		{"the index is signed by another key", wrong, nil, gate.Deny, policy.Unsigned},
		{"its signatures cannot be read", wrong, at(unsigned.Manifest.Digest, registrytest.Referrers, 403), gate.Error, policy.AccessRefused},
	} {
		t.Run(c.reason, func(t *testing.T) {
			h.Registry.SetFaults(c.faults...)
			expect(t, decide(t, h.gate(t, signedBy(h.key)), c.image), c.want, c.code)
		})
	}
	// The author of a workload chooses the tag, so that a failure setting does not admit it.
	h.Registry.SetFaults(at("v1", registrytest.Manifest, 503)...)
	h.client = must(registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond)))(t)
	t.Cleanup(h.client.Close)
	open := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "open", Hash: "1", FailOpen: true, Rules: []policy.Rule{signedBy(h.key)}})
	expect(t, decide(t, open, signed), gate.Error, policy.CannotProve)
}

// TestNestedIndex: where each platform is required, an index inside an index may list any.
func TestNestedIndex(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	child := h.Build("app", "c", "c")
	inner := h.BuildIndex("app", "inner", child)
	outer := h.BuildIndex("app", "outer", inner)
	for _, image := range []gatetest.Image{child, inner} {
		must(0, h.SignBundle(image, byKey(h.key), nil))(t)
	}
	for _, platforms := range []policy.Platforms{policy.PlatformEach, policy.PlatformAny} {
		r := signedBy(h.key)
		r.check.Platforms = platforms
		expect(t, decide(t, h.gate(t, r), outer.Name), gate.Error, policy.CannotProve)
		expect(t, decide(t, h.gate(t, r), inner.Name), gate.Allow, policy.Verified)
	}
}

// references returns what the evaluation of an image requests.
func references(t *testing.T, h *env, image gatetest.Image, kind registrytest.Kind) (list []string) {
	t.Helper()
	h.Registry.Reset()
	decide(t, h.gate(t, scanned(h, false)), image.Name)
	for _, q := range h.Registry.Requests() {
		if q.Kind == kind {
			list = append(list, q.Reference)
		}
	}
	return list
}

// TestUnreadStatement: a later statement that is listed, and cannot be had as it was pushed, may be a
// worse one. Content that its author pushed wrong is none.
func TestUnreadStatement(t *testing.T) {
	for _, c := range []struct {
		reason string
		do     registrytest.Action
		want   gate.Result
	}{
		{"it is read", nil, gate.Deny},
		{"it is refused", registrytest.Status(403), gate.Error},
		{"a redirect to itself", registrytest.RedirectLoop(), gate.Error},
		{"the page of a proxy", registrytest.Body([]byte("<html>blocked</html>")), gate.Error},
		{"no bytes", registrytest.Body(nil), gate.Error},
	} {
		for _, kind := range []registrytest.Kind{registrytest.Blob, registrytest.Manifest} {
			for _, bundle := range []bool{false, true} {
				h := newEnv(t, registrytest.Options{})
				app := h.Build("app", "v1", "app")
				scan(t, h, app, "clean", 2, bundle)
				before := references(t, h, app, kind)
				scan(t, h, app, "dirty", 1, bundle)
				var faults []registrytest.Fault
				for _, reference := range references(t, h, app, kind) {
					if c.do != nil && !slices.Contains(before, reference) {
						faults = append(faults, registrytest.Fault{Kind: kind, Reference: reference, Do: c.do})
					}
				}
				if c.do != nil && len(faults) == 0 {
					continue // the tag of the older format has the manifest of both
				}
				h.Registry.SetFaults(faults...)
				if out := decide(t, h.gate(t, scanned(h, false)), app.Name); out.Result != c.want {
					t.Errorf("%s, %s, bundle %t: %s, want %s: %+v", c.reason, kind, bundle, out.Result, c.want, out.Verdicts[0].Reasons)
				}
			}
		}
	}
}
