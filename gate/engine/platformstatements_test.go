package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// gateOfVariants returns a gate with the policies of a text, in the environment of the variants.
func gateOfVariants(t *testing.T, v *gatetest.Variants, text string) *gate.Gate {
	t.Helper()
	compiled, err := engine.CompileDocuments(read(t, v.Fill(text)), engine.NewResources(), true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	compiled.Images.Use(v.Env)
	set, err := compiled.Set()
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Config{Registries: v.Env, State: gate.Fixed{Policies: set, Prover: v.Prover}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// validatingPlatforms is an ImageValidatingPolicy without validations.
const validatingPlatforms = `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: scanned}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  matchImageReferences: [{glob: HOST/shop/*}]
  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}]
  attestations: [{name: scan, intoto: {type: SCAN}}, {name: other, intoto: {type: 'https://example.com/other/v1'}}]
  validations:
  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)'}
`

// TestStatementsOfAPlatformUnderExpressions: the index behind the tag verifies a platform for
// policies with expressions only where no statement about the platform itself may fail them.
func TestStatementsOfAPlatformUnderExpressions(t *testing.T) {
	v := newVariants(t)
	clean, dirty := map[string]any{"verdict": "clean"}, map[string]any{"verdict": "dirty"}
	images := map[string]gatetest.Image{}
	var children []gatetest.Image
	for _, name := range []string{"nothing", "clean", "dirty", "no verdict", "unread", "other"} {
		images[name] = v.Build("shop/platforms", strings.ReplaceAll(name, " ", "-"), name)
		children = append(children, images[name])
	}
	index := v.BuildIndex("shop/platforms", "v1", children...)
	for _, attested := range []struct {
		image         gatetest.Image
		predicateType string
		predicate     any
	}{
		{index, gatetest.ScanType, clean}, {images["clean"], gatetest.ScanType, clean}, {images["dirty"], gatetest.ScanType, dirty},
		{images["no verdict"], gatetest.ScanType, map[string]any{}}, {images["unread"], gatetest.ScanType, dirty}, {images["other"], gatetest.OtherType, dirty},
	} {
		if err := v.AttestBundle(attested.image, verifytest.Claim{Signer: v.Signer, NoLog: true}, attested.predicateType, attested.predicate); err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range []gatetest.Image{index, images["unread"]} {
		if err := v.SignBundle(image, verifytest.Claim{Signer: v.Signer, NoLog: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	v.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Repository: "shop/platforms", Reference: images["unread"].Manifest.Digest, Do: registrytest.Status(500)})
	const statement = "  authorities: [{name: scanned, key: {data: KEY}, attestations: [{name: scan, predicateType: SCAN, policy: {type: cue, data: 'predicate: verdict: \"clean\"'}}]}, "
	for _, c := range []struct {
		reason, policy string
		want           map[string]gate.Result // of the platforms
	}{
		{"the statement is read", validatingPlatforms + "  - {expression: \"images.containers.all(i, extractPayload(i, attestations.scan).predicate.verdict == 'clean')\"}\n", map[string]gate.Result{
			"nothing": gate.Allow, "clean": gate.Allow, "dirty": gate.Deny, "no verdict": gate.Error, "unread": gate.Error, "other": gate.Allow,
		}},
		{"another statement must not exist", validatingPlatforms +
			"  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.other, [attestors.key]) == 0)'}\n", map[string]gate.Result{
			"nothing": gate.Allow, "clean": gate.Allow, "other": gate.Deny,
		}},
		{"one of two authorities", platformsImagePolicy + statement + "{name: second, key: {data: SECOND}}]\n", map[string]gate.Result{
			"nothing": gate.Allow, "clean": gate.Allow, "dirty": gate.Deny, "unread": gate.Error, "other": gate.Allow,
		}},
		{"an authority that must not match", platformsImagePolicy + "  authorities: [{name: signed, key: {data: KEY}}, " +
			"{name: other, key: {data: KEY}, attestations: [{name: other, predicateType: 'https://example.com/other/v1'}]}]\n" +
			"  policy: {type: rego, data: \"package sigstore\\ndefault isCompliant = false\\nisCompliant { not input.authorityMatches.other }\"}\n", map[string]gate.Result{
			"nothing": gate.Allow, "clean": gate.Allow, "other": gate.Deny,
		}},
	} {
		for name, want := range c.want {
			outcome := gateOfVariants(t, v, c.policy).Decide(t.Context(), podOf(t, index.Name+"@"+images[name].Manifest.Digest))
			if outcome.Result != want {
				t.Errorf("%s, %s: %s, want %s: %v", c.reason, name, outcome.Result, want, against(outcome))
			}
		}
	}
}

// TestSignaturesOfAPlatform: the index behind the tag verifies a platform only where no signature of the
// platform itself is one that the policy forbids, or may be one.
func TestSignaturesOfAPlatform(t *testing.T) {
	v := newVariants(t)
	images := map[string]gatetest.Image{}
	var children []gatetest.Image
	for _, name := range []string{"nothing", "forbidden", "both", "stranger", "unread"} {
		images[name] = v.Build("shop/signed", name, name)
		children = append(children, images[name])
	}
	index := v.BuildIndex("shop/signed", "v1", children...)
	for _, signed := range []struct {
		image  gatetest.Image
		signer *verifytest.Signer
	}{{index, v.Signer}, {images["forbidden"], v.Second}, {images["both"], v.Signer}, {images["both"], v.Second}, {images["stranger"], v.Stranger}, {images["unread"], v.Second}} {
		if err := v.SignBundle(signed.image, verifytest.Claim{Signer: signed.signer, NoLog: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	v.Registry.SetFaults(registrytest.Fault{Kind: registrytest.Referrers, Repository: "shop/signed", Reference: images["unread"].Manifest.Digest, Do: registrytest.Status(500)})
	expressions, _, _ := strings.Cut(scannedByBoth, "  attestations:")
	required := expressions + "  validations:\n  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}\n"
	authorities := platformsImagePolicy + "  authorities: [{name: good, key: {data: KEY}}, {name: bad, key: {data: SECOND}}]\n"
	forbids := map[string]gate.Result{"nothing": gate.Allow, "stranger": gate.Allow, "forbidden": gate.Deny, "both": gate.Deny, "unread": gate.Error}
	requires := map[string]gate.Result{"nothing": gate.Allow, "stranger": gate.Allow, "forbidden": gate.Allow, "both": gate.Allow, "unread": gate.Allow}
	for _, c := range []struct {
		reason, policy string
		want           map[string]gate.Result
	}{
		{"an expression requires a signature", required, requires},
		{"and forbids another", required + "  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.second]) == 0)'}\n", forbids},
		{"one of two authorities", authorities, requires},
		{"an authority that must not match", authorities + "  policy: {type: rego, data: \"package sigstore\\ndefault isCompliant = false\\nisCompliant { input.authorityMatches.good; not input.authorityMatches.bad }\"}\n", forbids},
	} {
		for name, want := range c.want {
			outcome := gateOfVariants(t, v, c.policy).Decide(t.Context(), podOf(t, index.Name+"@"+images[name].Manifest.Digest))
			if outcome.Result != want {
				t.Errorf("%s, %s: %s, want %s: %v", c.reason, name, outcome.Result, want, against(outcome))
			}
		}
	}
}

const platformsImagePolicy = `
apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: scanned}
spec:
  images: [{glob: HOST/shop/*}]
`
