package imagevalidating_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// planned plans a policy for a pod of one container.
func planned(t testing.TB, text string, object map[string]any) (policy.RulePlan, error) {
	t.Helper()
	p := must(compile(text))(t)
	subject := &policy.Subject{Object: policy.ContentOf(object), Kind: "Pod", Version: "v1", Operation: "CREATE", Namespace: "shop"}
	found := policy.Image{Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse("registry.example/org/app:v1")}
	return p.Rules[0].Plan(t.Context(), subject, []policy.Image{found})
}

// TestAsks: only what the expressions name is asked about, and everything where that
// cannot be told.
func TestAsks(t *testing.T) {
	const call = "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
	for _, c := range []struct {
		reason, expression string
		want               string
	}{
		{"one", call, "ours"},
		{"by index", "images.containers.all(i, verifyImageSignatures(i, [attestors['ours']]) > 0)", "ours"},
		{"both", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.keyless]) > 0)", "ours keyless"},
		{"either", "images.containers.all(i, verifyImageSignatures(i, i == '' ? [attestors.ours] : [attestors.keyless]) > 0)", "ours keyless"},
		{"computed", "images.containers.all(i, verifyImageSignatures(i, attestors.map(k, attestors[k])) > 0)", "ours keyless"},
		{"a statement", "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.keyless]) > 0)", "keyless/https://cosign.sigstore.dev/attestation/vuln/v1"},
		{"a computed statement", "images.containers.all(i, verifyAttestationSignatures(i, i == '' ? 'scan' : 'sbom', [attestors.ours]) >= 0)", "ours/https://cosign.sigstore.dev/attestation/vuln/v1"},
		{"nothing", "images.containers.all(i, i.startsWith('registry.example/'))", ""},
	} {
		plan, err := planned(t, strings.Replace(minimal, call, "|-\n      "+c.expression, 1), map[string]any{})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		var got []string
		for _, q := range plan.Checks[0].Asks {
			name := strings.TrimPrefix(q.Authority.Name, "attestors.")
			if q.Role == attest.Attestation {
				name += "/" + q.Predicate
			}
			got = append(got, name)
		}
		if text := strings.Join(slices.Compact(got), " "); text != c.want {
			t.Errorf("%s: asks %q, want %q", c.reason, text, c.want)
		}
	}
}

func TestChecks(t *testing.T) {
	plan := must(planned(t, minimal, map[string]any{}))(t)
	check := plan.Checks[0]
	if !check.MutateDigest || !check.VerifyDigest || !check.Required || check.Action != policy.Enforce || check.WantsData != policy.NoData {
		t.Errorf("defaults: %+v", check)
	}
	text := edit(minimal, "spec:\n", "spec:\n  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}\n"+
		"  credentials: {allowInsecureRegistry: true, providers: [amazon], secrets: [pull, other/pull]}\n  validationActions: [Warn]\n")
	text = edit(text, "- expression: images", "- expression: images.containers.all(i, getImageData(i).manifest.schemaVersion == 2)\n  - expression: images")
	check = must(planned(t, text, map[string]any{}))(t).Checks[0]
	if check.MutateDigest || check.VerifyDigest || check.Required || check.Action != policy.Warn || check.WantsData != policy.DataOne {
		t.Errorf("said: %+v", check)
	}
	c := check.Credentials
	if !c.AllowInsecure || !slices.Equal(c.Providers, []string{"amazon"}) || !slices.Equal(c.Secrets, []string{"kyverno/pull", "other/pull"}) {
		t.Errorf("credentials: %+v", c)
	}
	sourced := edit(minimal, "cosign: {key:", "cosign: {source: {repository: registry.example/signatures, PullSecrets: [{name: sigs}]}, key:")
	check = must(planned(t, sourced, map[string]any{}))(t).Checks[0]
	if len(check.Asks[0].Sources) != 1 || !slices.Equal(check.Credentials.Secrets, []string{"shop/sigs"}) {
		t.Errorf("sources: %+v %+v", check.Asks[0].Sources, check.Credentials)
	}
}

// TestAttestorExpressions: whom an attestor stands for may depend on the object and on
// the image; what cannot be told is an error when it is asked, and never nobody.
func TestAttestorExpressions(t *testing.T) {
	h := newHarbor(t)
	good, foreign := h.signed(t, "good", h.key).Name, h.signed(t, "foreign", h.stranger).Name
	text := edit(with(allSigned), "key: {data: 'KEY'}", "key: {expression: variables.key}",
		"spec:\n", "spec:\n  variables: [{name: key, expression: 'string(object.metadata.annotations[\"key\"])'}]\n")
	annotated := func(name string, key []byte) gate.Request {
		o := object{images: []string{name}, annotations: map[string]string{"key": string(key)}}
		return o.request(t)
	}
	expect(t, h.decide(t, annotated(good, h.key.PublicPEM()), text), "the key that signed", gate.Allow, "")
	expect(t, h.decide(t, annotated(good, h.stranger.PublicPEM()), text), "another key", gate.Deny, "wrong-key")
	expect(t, h.decide(t, annotated(foreign, h.stranger.PublicPEM()), text), "the other's image", gate.Allow, "")
	expect(t, h.decide(t, annotated(good, []byte("no key")), text), "no key", gate.Unable, "PEM")
	expect(t, h.decide(t, pod(t, good), text), "no annotation", gate.Unable, "no such key")
	subject := edit(minimal, "subject: ann@example.com", "subjectExpression: \"'https://github.com/' + image.split('/')[1]\"", "[attestors.ours]", "[attestors.keyless]")
	plan := must(planned(t, subject, map[string]any{}))(t)
	if a := plan.Checks[0].Asks[0].Authority; a.Keyless == nil || !strings.Contains(a.Keyless.Identities[0].String(), "https://github.com/org") {
		t.Errorf("%+v", plan.Checks[0].Asks[0].Authority)
	}
}
