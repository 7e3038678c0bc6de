package gate_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
)

// An override holds under every name that an image has.
func TestOverridesOfMirroredImages(t *testing.T) {
	q := newQuays(t)
	app, bad := q.Build("app", "v1", "app"), q.Build("bad", "v1", "bad")
	must(0, q.SignBundle(app, byKey(q.key), nil))(t)
	copied, wrong := copyTo(q.first, app, "app"), copyTo(q.first, bad, "bad")
	source, target := q.Registry.Host(), q.first.Registry.Host()
	mapping := must(mirror.NewSet(must(mirror.Parse(fmt.Appendf(nil, `
apiVersion: quaymaster.dev/v1alpha1
kind: RegistryMirror
metadata: {name: hub}
spec: {mirrors: [{sources: [%q], targets: [{location: %s/hub}]}, {sources: [quay.example], targets: [{location: gcr.io/p/hub}]}]}
`, source, target), "test"))(t)))(t)
	redirected := target + "/hub/app:v1@" + app.Manifest.Digest
	for _, c := range []struct {
		reason   string
		override string
		pinning  gate.Pinning
		image    string
		want     gate.Result
		code     policy.Code
		patched  string
	}{
		{"nothing is denied", an("a", "Deny", repositories("other.example/x")), gate.PinHere, app.Name, gate.Allow, policy.Verified, redirected},
		{"the source is denied, and a copy named", an("a", "Deny", repositories(source+"/app")), gate.PinDone, copied.ByDigest(), gate.Deny, policy.OverrideDenied, ""},
		{"the copy is denied by its own name", an("a", "Deny", repositories(target+"/hub/*")), gate.PinDone, copied.ByDigest(), gate.Deny, policy.OverrideDenied, ""},
		{"the source is denied", an("a", "Deny", repositories(source+"/app")), gate.PinHere, app.Name, gate.Deny, policy.OverrideDenied, ""},
		{"its redirected copy is denied", an("a", "Deny", repositories(target+"/hub/*")), gate.PinHere, app.Name, gate.Deny, policy.OverrideDenied, ""},
		{"another copy is denied", an("a", "Deny", repositories(target+"/hub/bad")), gate.PinHere, app.Name, gate.Allow, policy.Verified, redirected},
		{"the digest is denied, and a copy named", an("a", "Deny", digests(app)), gate.PinDone, copied.Name, gate.Deny, policy.OverrideDenied, ""},
		{"a source is allowed, and stays there, since only verified images are redirected", an("a", "Allow", repositories(source+"/bad")), gate.PinHere, bad.Name, gate.Allow, policy.OverrideAllowed, source + "/bad:v1@" + bad.Manifest.Digest},
		{"a source is allowed, and a copy named", an("a", "Allow", repositories(source+"/bad")), gate.PinDone, wrong.ByDigest(), gate.Allow, policy.OverrideAllowed, ""},
		{"the source is denied, and a copy named by another name of its registry", an("a", "Deny", repositories("quay.example/app")), gate.PinDone, "us-docker.pkg.dev/p/gcr.io/hub/app@" + app.Manifest.Digest, gate.Deny, policy.OverrideDenied, ""},
		{"a source is allowed, and a copy named by another name of its registry", an("a", "Allow", repositories("quay.example/app")), gate.PinDone, "us-docker.pkg.dev/p/gcr.io/hub/app@" + app.Manifest.Digest, gate.Allow, policy.OverrideAllowed, ""},
		{"a copy of another source", an("a", "Allow", repositories(source+"/app")), gate.PinDone, wrong.ByDigest(), gate.Deny, policy.Unsigned, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			set := must(set.New(&policy.Policy{Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(q.key)}}))(t)
			state := gate.Fixed{Policies: overridingSet(t, set, []string{c.override}), Mirrors: mapping, Prover: prover{
				Snapshot: q.snapshot, ByFormat: verify.ByFormat{attest.Bundle: bundle.New(q.snapshot)},
			}}
			g := must(gate.New(gate.Config{Registries: q, State: state}, gate.WithMirrors(must(redirect.New())(t), nil)))(t)
			request := pod(t, c.image)
			request.Pinning = c.pinning
			out := g.Decide(t.Context(), request)
			v := out.Verdicts[0]
			if out.Result != c.want || v.Reasons[0].Code != c.code {
				t.Fatalf("%s %+v", out.Result, v.Reasons)
			}
			patched := ""
			for _, operation := range out.Patch {
				if operation.Op == "replace" {
					patched, _ = operation.Value.(string)
				}
			}
			if patched != c.patched {
				t.Errorf("patched to %q, want %q", patched, c.patched)
			}
		})
	}
}
