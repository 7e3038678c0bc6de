package engine_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestFixedFields: an update that brings an object under a rule changes no field that the API server keeps
// fixed. Where the rule requires digests, the tag is denied with the next step; where it does not, the object is
// admitted as it is. A field that may change is pinned.
func TestFixedFields(t *testing.T) {
	v := newVariants(t)
	s := v.Build("shop/s", "1", "s")
	if err := v.SignLegacy(s, verifytest.Claim{Signer: v.Signer, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
	const pol = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod, Job, Deployment], selector: {matchLabels: {tier: prod}}}}]}
    verifyImages: [{verifyDigest: REQUIRED, imageReferences: ["HOST/shop/*"], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]}]
`
	const head = "metadata: {name: web, namespace: shop LABEL}\nspec: "
	for _, row := range []struct {
		name, text string
		pinning    gate.Pinning
		isFixed    bool
	}{
		{"a volume", "apiVersion: v1\nkind: Pod\n" + head + "{containers: [{name: a, image: 'IMG@DIG'}], volumes: [{name: v, image: {reference: 'IMG'}}]}\n", gate.PinHere, true},
		{"an ephemeral container", "apiVersion: v1\nkind: Pod\n" + head + "{containers: [{name: a, image: 'IMG@DIG'}], ephemeralContainers: [{name: e, image: 'IMG'}]}\n", gate.PinHere, true},
		{"a Job", "apiVersion: batch/v1\nkind: Job\n" + head + "{template: {spec: {containers: [{name: a, image: 'IMG'}]}}}\n", gate.PinNamed, true},
		{"a container", "apiVersion: v1\nkind: Pod\n" + head + "{containers: [{name: a, image: 'IMG'}]}\n", gate.PinHere, false},
		{"a Deployment", "apiVersion: apps/v1\nkind: Deployment\n" + head + "{template: {spec: {containers: [{name: a, image: 'IMG'}]}}}\n", gate.PinNamed, false},
	} {
		for _, required := range []string{"true", "false"} {
			g := gateOfVariants(t, v, strings.ReplaceAll(pol, "REQUIRED", required))
			text := strings.NewReplacer("IMG", s.Name, "DIG", s.Manifest.Digest).Replace(row.text)
			request := gate.Request{
				Object: read(t, strings.Replace(text, " LABEL", ", labels: {tier: prod}", 1))[0], Old: read(t, strings.Replace(text, " LABEL", "", 1))[0],
				Pinning: row.pinning, Stage: gate.StageMutate,
			}
			request.Subject.Operation = "UPDATE"
			o := g.Decide(t.Context(), request)
			want, patched := gate.Allow, !row.isFixed
			if row.isFixed && required == "true" {
				want = gate.Deny
			}
			if o.Result != want || (len(o.Patch) > 0) != patched {
				t.Errorf("%s, verifyDigest %s: %s, patch %v, want %s: %v", row.name, required, o.Result, o.Patch, want, o.Verdicts)
			}
			if want == gate.Deny && !hasCode(o, policy.MissingDigest) {
				t.Errorf("%s: the reasons are %v", row.name, o.Verdicts)
			}
		}
	}
}

func hasCode(o gate.Outcome, code policy.Code) bool {
	for _, v := range o.Verdicts {
		for _, r := range v.Reasons {
			if r.Code == code {
				return true
			}
		}
	}
	return false
}
