package engine_test

import (
	"fmt"
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
	compiled.Images.Use(gate.Config{Registries: v.Env})
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

// TestForbiddenStatementsOfAPlatform: a statement that must not exist does not hide behind a registry
// that does not return it, where the index is verified in place of the platform.
func TestForbiddenStatementsOfAPlatform(t *testing.T) {
	v := newVariants(t)
	images := map[string]gatetest.Image{}
	var children []gatetest.Image
	for _, name := range []string{"nothing", "forbidden", "unread", "refused", "limited", "flooded"} {
		images[name] = v.Build("shop/forbids", name, name)
		children = append(children, images[name])
	}
	index := v.BuildIndex("shop/forbids", "v1", children...)
	if err := v.SignBundle(index, verifytest.Claim{Signer: v.Signer, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nothing", "forbidden", "unread", "refused", "limited", "flooded"} {
		v.Build("sigs/all", name, name)
	}
	elsewhere := v.BuildIndex("sigs/all", "v1", children...)
	if err := v.SignBundle(elsewhere, verifytest.Claim{Signer: v.Signer, NoLog: true}, nil); err != nil || elsewhere.Manifest.Digest != index.Manifest.Digest {
		t.Fatalf("%v, %s", err, elsewhere.Manifest.Digest)
	}
	fault := func(name string, do registrytest.Action) registrytest.Fault {
		return registrytest.Fault{Kind: registrytest.Referrers, Repository: "shop/forbids", Reference: images[name].Manifest.Digest, Do: do}
	}
	var flood []registrytest.Descriptor
	for n := range 1500 {
		flood = append(flood, registrytest.Descriptor{
			MediaType: "application/vnd.oci.image.manifest.v1+json", Digest: fmt.Sprintf("sha256:%064x", n), Size: 500, ArtifactType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		})
	}
	for _, name := range []string{"forbidden", "unread", "refused", "limited", "flooded"} {
		if err := v.AttestBundle(images[name], verifytest.Claim{Signer: v.Signer, NoLog: true}, gatetest.OtherType, map[string]any{"verdict": "dirty"}); err != nil {
			t.Fatal(err)
		}
	}
	v.Registry.SetFaults(fault("unread", registrytest.Status(500)), fault("refused", registrytest.Status(403)),
		fault("limited", registrytest.Status(429)), fault("flooded", registrytest.ForgeReferrers(flood...)))
	head, _, _ := strings.Cut(validatingPlatforms, "  validations:")
	signed := head + "  validations:\n  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}\n"
	const forbidden = "  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.other, [attestors.key]) == 0)'}\n"
	alone := strings.Replace(head, "{name: scanned}", "{name: forbids}", 1) + "  validationConfigurations: {required: false}\n  validations:\n" + forbidden
	policies := map[string]string{
		"one policy":                 signed + forbidden,
		"two policies":               signed + "---\n" + alone,
		"a policy that only forbids": alone,
		"a policy in Rego that only forbids": platformsImagePolicy + `  authorities: [{name: any, static: {action: pass}}, {name: other, key: {data: KEY}, attestations: [{name: other, predicateType: 'https://example.com/other/v1'}]}]
  policy: {type: rego, data: "package sigstore\ndefault isCompliant = false\nisCompliant { not input.authorityMatches.other }"}
`,
		"a policy whose signatures are elsewhere": strings.Replace(head, "attestors: [", "attestors: [{name: signer, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}, source: {repository: HOST/sigs/all}}}, ", 1) +
			"  validations:\n  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.signer]) > 0)'}\n" + forbidden,
	}
	for name, want := range map[string]gate.Result{
		"nothing": gate.Allow, "forbidden": gate.Deny, "unread": gate.Error, "refused": gate.Error, "limited": gate.Error, "flooded": gate.Error,
	} {
		pod := podOf(t, index.Name+"@"+images[name].Manifest.Digest)
		for reason, text := range policies {
			outcome := gateOfVariants(t, v, text).Decide(t.Context(), pod)
			if outcome.Result != want {
				t.Errorf("%s, %s: %s, want %s: %v", reason, name, outcome.Result, want, against(outcome))
			}
		}
		if outcome := gateOfVariants(t, v, signed).Decide(t.Context(), pod); outcome.Result != gate.Allow {
			t.Errorf("%s, of a policy that forbids nothing: %s: %v", name, outcome.Result, against(outcome))
		}
	}
}

// TestPlatformsTogether: an expression about all images reads the statements and the signatures of
// the platforms themselves, as one about each image does.
func TestPlatformsTogether(t *testing.T) {
	v := newVariants(t)
	sign := func(image gatetest.Image, by *verifytest.Signer) {
		if err := v.SignBundle(image, verifytest.Claim{Signer: by, NoLog: true}, nil); err != nil {
			t.Fatal(err)
		}
	}
	scanned := func(image gatetest.Image, verdict string) {
		if err := v.AttestBundle(image, verifytest.Claim{Signer: v.Signer, NoLog: true}, gatetest.ScanType, map[string]any{"verdict": verdict}); err != nil {
			t.Fatal(err)
		}
	}
	other, own, same := v.Build("shop/other", "1", "other"), v.Build("shop/joint", "own", "own"), v.Build("shop/joint", "same", "same")
	index := v.BuildIndex("shop/joint", "v1", own, same)
	for _, image := range []gatetest.Image{other, index} {
		sign(image, v.Signer)
		scanned(image, "A")
	}
	scanned(own, "B")
	scanned(same, "A")
	head, _, _ := strings.Cut(validatingPlatforms, "  validations:")
	agree := head + "  validations:\n  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0 && verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)'}\n" +
		"  - {expression: 'images.containers.all(i, extractPayload(i, attestations.scan).predicate.verdict == extractPayload(images.containers[0], attestations.scan).predicate.verdict)'}\n"
	a, b := v.Build("shop/sum", "a", "a"), v.Build("shop/sum", "b", "b")
	sum := v.BuildIndex("shop/sum", "v1", a, b)
	sign(sum, v.Signer)
	sign(a, v.Second)
	sign(b, v.Second)
	expressions, _, _ := strings.Cut(scannedByBoth, "  attestations:")
	fewer := func(n string) string {
		return expressions + "  validations:\n  - {expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}\n" +
			"  - {expression: 'images.containers.filter(i, verifyImageSignatures(i, [attestors.second]) > 0).size() < " + n + "'}\n"
	}
	for _, c := range []struct {
		reason, policy string
		images         []string
		want           gate.Result
	}{
		{"the platform's own statement differs from another image's", agree, []string{other.Name, index.Name + "@" + own.Manifest.Digest}, gate.Deny},
		{"the platform's own statement is the same", agree, []string{other.Name, index.Name + "@" + same.Manifest.Digest}, gate.Allow},
		{"two platforms with a signature of which one is allowed", fewer("2"), []string{sum.Name + "@" + a.Manifest.Digest, sum.Name + "@" + b.Manifest.Digest}, gate.Deny},
		{"two platforms with a signature of which two are allowed", fewer("3"), []string{sum.Name + "@" + a.Manifest.Digest, sum.Name + "@" + b.Manifest.Digest}, gate.Allow},
	} {
		if outcome := gateOfVariants(t, v, c.policy).Decide(t.Context(), podOfMany(t, c.images...)); outcome.Result != c.want {
			t.Errorf("%s: %s, want %s: %v", c.reason, outcome.Result, c.want, against(outcome))
		}
	}
}
