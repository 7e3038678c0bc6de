package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const exemptByTag = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      skipImageReferences: ["docker.io/library/nginx:1.*"]
      attestors: [{entries: [{keys: {publicKeys: "%s", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pinned}
spec:
  validationFailureAction: Enforce
  rules:
  - name: pinned
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{imageReferences: ["*"], required: false}]
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: redis, namespace: exceptions, annotations: {quaymaster.dev/images: "docker.io/library/redis:7"}}
spec:
  exceptions: [{policyName: signed, ruleNames: [signed]}]
  match: {any: [{resources: {kinds: [Pod]}}]}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: controls, namespace: exceptions}
spec:
  exceptions: [{policyName: signed, ruleNames: ["*"]}]
  match: {any: [{resources: {kinds: [Pod]}}]}
  podSecurity: [{controlName: Host Namespaces}]
`

// TestExemptByTag: an image that is exempt by its tag stays exempt when another policy has pinned it. An
// exception for controls of the Pod Security Standards exempts no image.
func TestExemptByTag(t *testing.T) {
	key, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	registry := &turning{archive: archive{found: map[image.Digest][]byte{}}, tags: &[]image.Digest{}}
	configured := registry.add(`{"config":{"User":"1"}}`)
	tagged := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":1}}`, configured)).String()
	*registry.tags = append(*registry.tags, image.MustParseDigest(tagged))
	other := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":1},"annotations":{}}`, configured)).String()
	g := gateOf(t, fmt.Sprintf(exemptByTag, strings.ReplaceAll(string(key.PublicPEM()), "\n", "\\n")), registry)
	for _, c := range []struct {
		image, reason string
		want          gate.Result
	}{
		{"nginx:1.27", "the tag is exempt", gate.Allow},
		{"nginx:1.27@" + tagged, "the tag resolves to the digest", gate.Allow},
		{"nginx:1.27@" + other, "the tag resolves to another digest", gate.Deny},
		{"nginx:2.0@" + tagged, "the tag is not exempt", gate.Deny},
		{"nginx@" + tagged, "there is no tag", gate.Deny},
		{"redis:7@" + tagged, "an exception lists the tag, which resolves to the digest", gate.Allow},
		{"redis:7@" + other, "an exception lists the tag, which resolves to another digest", gate.Deny},
		{"redis:8@" + tagged, "an exception lists another tag", gate.Deny},
	} {
		object := read(t, strings.ReplaceAll(pod, "nginx:1.27", c.image))[0]
		outcome := g.Decide(t.Context(), gate.Request{Object: object, Pinning: gate.PinHere})
		if outcome.Result != c.want {
			t.Errorf("%s: %s is %s, want %s: %v", c.image, c.reason, outcome.Result, c.want, outcome.Verdicts)
		}
	}
}

const exemptWhileLabelled = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      mutateDigest: false
      verifyDigest: false
      attestors: [{entries: [{keys: {publicKeys: "%s", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: redis, namespace: exceptions, annotations: {quaymaster.dev/images: "docker.io/library/redis:7"}}
spec:
  exceptions: [{policyName: signed, ruleNames: [signed]}]
  match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {debug: "true"}}}}]}
`

// TestExemptionByTagEnds: an update that takes the object out of an exception verifies the image, with a digest
// beside the exempt tag or without; one that stays within it is allowed.
func TestExemptionByTagEnds(t *testing.T) {
	key, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	registry := &turning{archive: archive{found: map[image.Digest][]byte{}}, tags: &[]image.Digest{}}
	configured := registry.add(`{"config":{"User":"1"}}`)
	tagged := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":1}}`, configured)).String()
	*registry.tags = append(*registry.tags, image.MustParseDigest(tagged))
	g := gateOf(t, fmt.Sprintf(exemptWhileLabelled, strings.ReplaceAll(string(key.PublicPEM()), "\n", "\\n")), registry)
	for _, name := range []string{"redis:7", "redis:7@" + tagged} {
		labelled := read(t, strings.NewReplacer("nginx:1.27", name, "namespace: shop", "namespace: shop, labels: {debug: 'true'}").Replace(pod))[0]
		more := read(t, strings.NewReplacer("nginx:1.27", name, "namespace: shop", "namespace: shop, labels: {debug: 'true', more: 'true'}").Replace(pod))[0]
		plain := read(t, strings.ReplaceAll(pod, "nginx:1.27", name))[0]
		for _, row := range []struct {
			reason  string
			request gate.Request
			want    gate.Result
		}{
			{"created within the exception", gate.Request{Object: labelled}, gate.Allow},
			{"created without it", gate.Request{Object: plain}, gate.Deny},
			{"updated within it", gate.Request{Object: more, Old: labelled}, gate.Allow},
			{"taken out of it", gate.Request{Object: plain, Old: labelled}, gate.Deny},
		} {
			row.request.Pinning = gate.PinHere
			if !row.request.Old.IsZero() {
				row.request.Subject.Operation = "UPDATE"
			}
			if outcome := g.Decide(t.Context(), row.request); outcome.Result != row.want {
				t.Errorf("%s, %s: %s, want %s: %v", name, row.reason, outcome.Result, row.want, outcome.Verdicts)
			}
		}
	}
}
