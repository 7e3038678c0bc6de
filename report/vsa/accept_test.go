package vsa_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/report/vsa"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	verifierID = "https://ci.example/verifier"
	signedBy   = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: NAME}, spec: {validationFailureAction: Enforce, webhookTimeoutSeconds: 30, rules: [{name: by-us, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [
    {imageReferences: ["HOST/shop/*"], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]}]}]}}`
)

// port is a env with a verifier that signs summaries.
type port struct {
	*gatetest.Env
	verifier, stranger vsa.Key
	public             []byte // of the verifier
}

func newPort(t testing.TB) *port {
	t.Helper()
	env := testkit.Must(gatetest.NewEnv())(t)
	t.Cleanup(env.Close)
	p := &port{Env: env}
	signer := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t)
	p.verifier, p.public = keyOf(t, signer), signer.PublicPEM()
	p.stranger = keyOf(t, testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t))
	return p
}

func keyOf(t testing.TB, signer *verifytest.Signer) vsa.Key {
	t.Helper()
	return testkit.Must(vsa.ParseKey(testkit.Must(signer.PrivatePEM())(t), nil))(t)
}

func pod(t testing.TB, image string) gate.Request {
	t.Helper()
	return gate.Request{Object: testkit.Must(workload.Parse([]byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"containers": [{"name": "web", "image": "` + image + `"}]}}`)))(t)}
}

// given is what a summary is made of.
type given struct {
	verifier string
	at       time.Time
	policies string // the name of the policy that was asked
	key      vsa.Key
}

// summary verifies an image in full, and signs what came of it.
func (p *port) summary(t testing.TB, of gatetest.Image, by given) []byte {
	t.Helper()
	made := testkit.Must(p.Policy(strings.ReplaceAll(signedBy, "NAME", by.policies)))(t)
	outcome := testkit.Must(p.Gate(made))(t).Decide(t.Context(), pod(t, of.Name))
	summaries, left, err := vsa.Verifier{ID: by.verifier, Time: by.at}.Summaries([]gate.Outcome{outcome})
	if err != nil || len(summaries) != 1 || len(left) != 0 {
		t.Fatalf("%+v, %+v, %v", summaries, left, err)
	}
	return testkit.Must(summaries[0].Sign(t.Context(), by.key))(t)
}

// put stores a summary beside an image.
func (p *port) put(t testing.TB, to gatetest.Image, bundle []byte) {
	t.Helper()
	ref := testkit.Must(image.Parse(to.ByDigest()))(t)
	described := testkit.Must(p.Client.Describe(t.Context(), testkit.Must(p.Client.Resolve(t.Context(), ref))(t)))(t)
	if _, err := p.Client.Push(t.Context(), ref.Repository(), vsa.Artifact(bundle, described.Descriptor())); err != nil {
		t.Fatal(err)
	}
}

// Policies that accept a summary not older than a day: two in place of a signature, and
// one that wants the summary.
const (
	inCEL = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: summary-or-signature}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences: [{glob: "HOST/shop/*"}]
  attestors:
  - name: ci
    cosign: {key: {data: VERIFIER}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}
  - name: ours
    cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}
  attestations:
  - name: vsa
    intoto: {type: https://slsa.dev/verification_summary/v1}
  validations:
  - message: neither a fresh verification summary nor a signature
    expression: >-
      images.containers.all(i,
        (verifyAttestationSignatures(i, attestations.vsa, [attestors.ci]) > 0 &&
         extractPayload(i, attestations.vsa).predicate.verifier.id == 'https://ci.example/verifier' &&
         extractPayload(i, attestations.vsa).predicate.verificationResult == 'PASSED' &&
         extractPayload(i, attestations.vsa).predicate.policy.digest.sha256 == 'POLICIES' &&
         extractPayload(i, attestations.vsa).predicate.resourceUri == 'oci://' + image(i).registry() + '/' + image(i).repository() &&
         time.now() - timestamp(extractPayload(i, attestations.vsa).predicate.timeVerified) < duration('24h')) ||
        verifyImageSignatures(i, [attestors.ours]) > 0)
`
	inRego = `apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: summary-or-signature}
spec:
  images: [{glob: HOST/shop/app*}]
  authorities:
  - name: summary
    key: {data: VERIFIER}
    attestations:
    - name: vsa
      predicateType: https://slsa.dev/verification_summary/v1
      policy:
        type: rego
        data: |
          package sigstore
          isCompliant {
            input.predicate.verifier.id == "https://ci.example/verifier"
            input.predicate.verificationResult == "PASSED"
            input.predicate.policy.digest.sha256 == "POLICIES"
            input.predicate.resourceUri == "oci://HOST/shop/app"
            time.now_ns() - time.parse_rfc3339_ns(input.predicate.timeVerified) < 24 * 60 * 60 * 1000000000
          }
  - name: signature
    key: {data: KEY}
`
	inConditions = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: summary}
spec:
  validationFailureAction: Enforce
  webhookTimeoutSeconds: 30
  rules:
  - name: summary
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["HOST/shop/*"]
      type: SigstoreBundle
      attestations:
      - type: https://slsa.dev/verification_summary/v1
        attestors: [{entries: [{keys: {publicKeys: VERIFIER, rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]
        conditions:
        - all:
          - {key: "{{ verifier.id }}", operator: Equals, value: https://ci.example/verifier}
          - {key: "{{ verificationResult }}", operator: Equals, value: PASSED}
          - {key: "{{ policy.digest.sha256 }}", operator: Equals, value: POLICIES}
          - {key: "{{ resourceUri }}", operator: Equals, value: oci://HOST/shop/app}
          - {key: "{{ time_since('', timeVerified, '') }}", operator: LessThan, value: 24h}
`
)

// classic compiles a ClusterPolicy as it stands.
func classic(t testing.TB, text string, now func() time.Time) *policy.Policy {
	t.Helper()
	engine := testkit.Must(jmespath.New(jmespath.Options{Now: now, Random: rand.Reader}))(t)
	return testkit.Must(testkit.Must(kyverno.New(kyverno.Options{Engine: engine}))(t).Compile([]byte(text), "test.yaml"))(t)
}

// accepting compiles the policies, which want the summary to be of other policies.
func (p *port) accepting(t testing.TB, now func() time.Time) map[string]*policy.Policy {
	t.Helper()
	set := testkit.Must(set.New(testkit.Must(p.Policy(strings.ReplaceAll(signedBy, "NAME", "full")))(t)))(t)
	quoted := func(text []byte) string { return string(testkit.Must(json.Marshal(string(text)))(t)) }
	fill := strings.NewReplacer("HOST", p.Registry.Host(), "VERIFIER", quoted(p.public), "KEY", quoted(p.Signer.PublicPEM()), "POLICIES", set.Hash())
	clusterImage := sigstore.New(sigstore.Options{Now: now})
	return map[string]*policy.Policy{
		"ImageValidatingPolicy": testkit.Must(imagevalidating.New(imagevalidating.Options{Options: kyvernocel.Options{Now: now, Random: rand.Reader}}).Compile([]byte(fill.Replace(inCEL)), "cel.yaml"))(t),
		"ClusterImagePolicy":    testkit.Must(clusterImage.Compile([]byte(fill.Replace(inRego)), "rego.yaml"))(t),
		"ClusterPolicy":         classic(t, fill.Replace(inConditions), now),
	}
}

// TestAccept: a fresh summary of a named verifier is taken in place of the full proof,
// in three dialects, by a real gate; and with any one thing wrong it is not.
func TestAccept(t *testing.T) {
	p := newPort(t)
	policies := p.accepting(t, time.Now)
	now := time.Now()
	good := given{verifier: verifierID, at: now, policies: "full", key: p.verifier}
	// The same bytes in another repository, and others: both are signed for the full verification,
	// which is then out of reach, so that only the summary can admit the image.
	build := func(repository, content string, signed bool) gatetest.Image {
		built := p.Build(repository, "1", content)
		if signed {
			if err := p.SignLegacy(built, verifytest.Claim{Signer: p.Signer, NoLog: true}, nil); err != nil {
				t.Fatal(err)
			}
		}
		return built
	}
	hide := func(of gatetest.Image) {
		p.Registry.Delete("shop/app", strings.ReplaceAll(of.Manifest.Digest, ":", "-")+".sig")
	}
	for i, row := range []struct {
		reason string
		put    func(of gatetest.Image, content string) // of is signed
		want   gate.Result
	}{
		{"a fresh summary", func(of gatetest.Image, _ string) { p.put(t, of, p.summary(t, of, good)) }, gate.Allow},
		{"none", func(gatetest.Image, string) {}, gate.Deny},
		{"a summary beside others that say nothing good", func(of gatetest.Image, _ string) {
			old, other := good, good
			old.at, other.verifier = now.Add(-48*time.Hour), "https://other.example"
			p.put(t, of, p.summary(t, of, old))
			p.put(t, of, p.summary(t, of, other))
			p.put(t, of, p.summary(t, of, good))
		}, gate.Allow},
		{"it failed", func(of gatetest.Image, _ string) {
			hide(of)
			p.put(t, of, p.summary(t, of, good))
		}, gate.Deny},
		{"of another verifier", func(of gatetest.Image, _ string) {
			other := good
			other.verifier = "https://ci.example/verifier/evil"
			p.put(t, of, p.summary(t, of, other))
		}, gate.Deny},
		{"of the day before yesterday", func(of gatetest.Image, _ string) {
			old := good
			old.at = now.Add(-25 * time.Hour)
			p.put(t, of, p.summary(t, of, old))
		}, gate.Deny},
		{"of the same bytes under another name", func(of gatetest.Image, content string) {
			twin := build("shop/twin", content, true)
			p.put(t, of, p.summary(t, twin, good))
		}, gate.Deny},
		{"of other bytes under the same name", func(of gatetest.Image, content string) {
			other := build("shop/app", "other "+content, true)
			p.put(t, of, p.summary(t, other, good))
		}, gate.Deny},
		{"by another key", func(of gatetest.Image, _ string) {
			other := good
			other.key = p.stranger
			p.put(t, of, p.summary(t, of, other))
		}, gate.Deny},
		{"by other policies", func(of gatetest.Image, _ string) {
			other := good
			other.policies = "lax"
			p.put(t, of, p.summary(t, of, other))
		}, gate.Deny},
	} {
		content := fmt.Sprint("content ", i)
		of := build("shop/app", content, true)
		row.put(of, content)
		hide(of)
		for name, made := range policies {
			t.Run(row.reason+"/"+name, func(t *testing.T) {
				outcome := testkit.Must(p.Gate(made))(t).Decide(t.Context(), pod(t, of.ByDigest()))
				if outcome.Result != row.want {
					t.Errorf("%s %+v, want %s", outcome.Result, outcome.Verdicts[0].Reasons, row.want)
				}
			})
		}
	}
}

// TestFreshnessIsOfTheDecision: what a gate remembers of a summary is that it was signed,
// not that it was fresh.
func TestFreshnessIsOfTheDecision(t *testing.T) {
	p := newPort(t)
	now := time.Now()
	clock := now
	for name, made := range p.accepting(t, func() time.Time { return clock }) {
		clock = now
		built := p.Build("shop/app", "1", "content of "+name)
		if err := p.SignLegacy(built, verifytest.Claim{Signer: p.Signer, NoLog: true}, nil); err != nil {
			t.Fatal(err)
		}
		p.put(t, built, p.summary(t, built, given{verifier: verifierID, at: now, policies: "full", key: p.verifier}))
		p.Registry.Delete("shop/app", strings.ReplaceAll(built.Manifest.Digest, ":", "-")+".sig")
		g := testkit.Must(p.Gate(made))(t)
		for _, row := range []struct {
			later time.Duration
			want  gate.Result
		}{{0, gate.Allow}, {23 * time.Hour, gate.Allow}, {24*time.Hour + time.Second, gate.Deny}} {
			clock = now.Add(row.later)
			if outcome := g.Decide(t.Context(), pod(t, built.ByDigest())); outcome.Result != row.want {
				t.Errorf("%s, %s later: %s %+v, want %s", name, row.later, outcome.Result, outcome.Verdicts[0].Reasons, row.want)
			}
		}
	}
}

// TestCost: a summary takes fewer requests than the full verification.
func TestCost(t *testing.T) {
	p := newPort(t)
	built := p.Build("shop/app", "1", "content")
	claim := verifytest.Claim{Signer: p.Signer, NoLog: true}
	if err := p.SignBundle(built, claim, nil); err != nil {
		t.Fatal(err)
	}
	const full = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: full}, spec: {validationFailureAction: Enforce, webhookTimeoutSeconds: 30, rules: [{name: all, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [
    {imageReferences: ["HOST/shop/*"], type: SigstoreBundle, attestors: [ENTRY], attestations: [TYPES]}]}]}}`
	const entry = `{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}`
	var types []string
	for _, one := range []string{"https://slsa.dev/provenance/v1", "https://spdx.dev/Document", "https://cyclonedx.org/bom", "https://cosign.sigstore.dev/attestation/vuln/v1", "https://openvex.dev/ns"} {
		if err := p.AttestBundle(built, claim, one, map[string]any{"said": true}); err != nil {
			t.Fatal(err)
		}
		types = append(types, `{type: "`+one+`", attestors: [`+entry+`]}`)
	}
	proved := testkit.Must(p.Policy(strings.NewReplacer("ENTRY", entry, "TYPES", strings.Join(types, ", ")).Replace(full)))(t)
	whole := testkit.Must(p.Gate(proved))(t).Decide(t.Context(), pod(t, built.Name))
	summaries, left, err := vsa.Verifier{ID: verifierID, Time: time.Now()}.Summaries([]gate.Outcome{whole})
	if err != nil || len(summaries) != 1 {
		t.Fatal(whole.Verdicts[0].Reasons, left, err)
	}
	p.put(t, built, testkit.Must(summaries[0].Sign(t.Context(), p.verifier))(t))
	statement := testkit.Must(summaries[0].Statement())(t)
	if inputs := strings.Count(string(statement), `"uri":"oci://`); inputs != 6 {
		t.Errorf("%d attestations were used, want a signature and 5: %s", inputs, statement)
	}
	quoted := string(testkit.Must(json.Marshal(string(p.public)))(t))
	short := classic(t, strings.NewReplacer("HOST", p.Registry.Host(), "attestors: [ENTRY], ", "", "TYPES", `{type: "https://slsa.dev/verification_summary/v1", attestors: [`+strings.Replace(entry, "KEY", quoted, 1)+`], conditions: [{all: [{key: "{{ verificationResult }}", operator: Equals, value: PASSED}]}]}`).Replace(full), time.Now)
	cheap := testkit.Must(p.Gate(short))(t).Decide(t.Context(), pod(t, built.Name))
	if whole.Result != gate.Allow || cheap.Result != gate.Allow {
		t.Fatal(whole.Result, cheap.Result, cheap.Verdicts[0].Reasons)
	}
	t.Logf("in full: %d requests, %d bytes; by its summary: %d requests, %d bytes", whole.Cost.Requests, whole.Cost.Bytes, cheap.Cost.Requests, cheap.Cost.Bytes)
	if cheap.Cost.Requests > 5 || // the digest, cosign's tag, the list, the manifest, the bundle
		3*cheap.Cost.Requests > whole.Cost.Requests {
		t.Errorf("%d requests, and %d in full", cheap.Cost.Requests, whole.Cost.Requests)
	}
}
