package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify/verifytest"
	"github.com/quaymaster/quaymaster/workload"
)

// imageEnv has images with all kinds of evidence, by real signers, and some whose signatures are elsewhere.
type imageEnv struct {
	*gatetest.Variants
	certified, uncertified *verifytest.Signer // with certificates of their own
}

func newImageEnv(t *testing.T) *imageEnv {
	t.Helper()
	env := testkit.Must(gatetest.NewEnv())(t)
	t.Cleanup(env.Close)
	v := testkit.Must(gatetest.NewVariants(env))(t)
	h := &imageEnv{Variants: v}
	h.certified = testkit.Must(env.Sigstore.Keyless(verifytest.Identity{URI: gatetest.ReleaseSubject, Issuer: gatetest.ReleaseIssuer}))(t)
	h.uncertified = testkit.Must(env.Sigstore.Keyless(verifytest.Identity{URI: gatetest.ReleaseSubject, Issuer: gatetest.ReleaseIssuer}))(t)
	add := func(reason string, sign func(image gatetest.Image) error) {
		image := env.Build(fmt.Sprintf("shop/own%d", len(v.Images)), "1", reason)
		if err := sign(image); err != nil {
			t.Fatal(err)
		}
		v.Images = append(v.Images, gatetest.Variant{Reason: reason, Name: image.Name})
	}
	elsewhere := func(signer *verifytest.Signer) func(image gatetest.Image) error {
		return func(image gatetest.Image) error {
			image.Repository = "signatures"
			return env.SignLegacy(image, verifytest.Claim{Signer: signer, NoLog: true}, nil)
		}
	}
	add("signed by the key, elsewhere", elsewhere(env.Signer))
	add("signed with another key, elsewhere", elsewhere(v.Stranger))
	for i, predicate := range predicates() {
		add(fmt.Sprintf("attested with %v", predicate), func(image gatetest.Image) error {
			if i%2 == 1 {
				return env.AttestBundle(image, verifytest.Claim{Signer: env.Signer, NoLog: true}, gatetest.ScanType, predicate)
			}
			return env.AttestLegacy(image, verifytest.Claim{Signer: env.Signer, NoLog: true}, gatetest.ScanType, predicate)
		})
	}
	now := time.Now()
	for _, s := range []struct {
		reason string
		by     []*verifytest.Signer
		what   []string
	}{
		{"first dirty, then clean", []*verifytest.Signer{env.Signer, env.Signer}, []string{"dirty", "clean"}},
		{"first clean, then dirty", []*verifytest.Signer{env.Signer, env.Signer}, []string{"clean", "dirty"}},
		{"dirty, and clean by the second key", []*verifytest.Signer{env.Signer, v.Second}, []string{"dirty", "clean"}},
		{"clean, and dirty by the second key", []*verifytest.Signer{env.Signer, v.Second}, []string{"clean", "dirty"}},
		{"clean by both keys", []*verifytest.Signer{env.Signer, v.Second}, []string{"clean", "clean"}},
		{"clean by the second key, and later dirty", []*verifytest.Signer{v.Second, v.Second}, []string{"clean", "dirty"}},
		{"clean, and dirty with another key", []*verifytest.Signer{env.Signer, v.Stranger}, []string{"clean", "dirty"}},
	} {
		add("attested "+s.reason, func(image gatetest.Image) error {
			for i, signer := range s.by {
				at := now.Add(time.Duration(i-9) * time.Minute)
				claim := verifytest.Claim{Signer: signer, Records: []verifytest.Record{{Time: at}}}
				if err := env.AttestLegacy(image, claim, gatetest.ScanType, map[string]any{"verdict": s.what[i]}); err != nil {
					return err
				}
			}
			return env.AttestLegacy(image, verifytest.Claim{Signer: env.Signer}, gatetest.OtherType, map[string]any{"ids": []string{"a", "b"}, "found": s.what})
		})
	}
	for reason, signer := range map[string]*verifytest.Signer{"certified": h.certified, "another certificate": h.uncertified} {
		add("signed by "+reason, func(image gatetest.Image) error { return env.SignLegacy(image, verifytest.Claim{Signer: signer}, nil) })
	}
	return h
}

// predicates are values of a predicate's members of each type, and at the boundaries of conditions.
func predicates() []map[string]any {
	var all []map[string]any
	for _, verdict := range []any{nil, "", "*", "clean*", "c?ean", "Clean", "clean ", true, 1.0, 5.0, []any{"clean"}, []any{}, map[string]any{"clean": "clean"}} {
		all = append(all, map[string]any{"verdict": verdict, "score": 3.0})
	}
	return append(all, []map[string]any{
		{}, {"verdict": "clean", "score": 7.0, "builder": map[string]any{"id": "https://ci.example/v1.2"}},
		{"verdict": "clean", "score": "7", "builder": map[string]any{"id": "https://ci.example/v1"}}, {"verdict": "clean", "builder": nil}, {"verdict": "clean", "builder": "https://ci.example/v1.2"},
		{"score": 10.0, "builder": map[string]any{"id": 12.0}, "components": []any{map[string]any{"name": "text", "version": "1.5"}, map[string]any{"name": "other"}}},
		{"score": 4.0, "builder": map[string]any{}, "components": []any{map[string]any{"name": "text", "version": "1.9"}, map[string]any{"name": "x", "version": "1.5"}}},
		{"components": []any{map[string]any{"name": "text", "version": 1.5}}}, {"components": []any{map[string]any{"name": "text", "version": true}, map[string]any{"name": "text"}}},
		{"components": []any{map[string]any{"name": "text", "version": 7.0}}}, {"components": []any{"text"}}, {"components": map[string]any{}}, {"components": "text"},
		{"components": []any{map[string]any{"name": "text", "version": []any{"1.5"}}}}, {"components": []any{map[string]any{"name": "text", "version": "1.*"}}},
		{"score": -1.0, "components": []any{}, "request": map[string]any{"namespace": "other"}}, {"components": nil, "score": nil},
	}...)
}

func (h *imageEnv) fill(t *testing.T, text string) string {
	t.Helper()
	quoted := func(pem []byte) string { return string(testkit.Must(json.Marshal(string(pem)))(t)) }
	return strings.NewReplacer("%STRANGER", quoted(h.Stranger.PublicPEM()), "%FULCIO", quoted(h.Sigstore.CA.ChainPEM()), "%CERTIFIED", quoted(h.certified.CertificatePEM()),
		"%REKOR", quoted(h.Sigstore.Rekor.PublicPEM()), "%CTLOG", quoted(h.Sigstore.CTLog.PublicPEM()), "%TSA", quoted(h.Sigstore.TSA.ChainPEM()),
		"%WHO", gatetest.ReleaseSubject).Replace(h.Fill(text))
}

// gates returns the gates of a policy and of its conversion.
func (h *imageEnv) gates(t *testing.T, text string) (source, made *gate.Gate, written string) {
	t.Helper()
	result := convertText(t, text, cel.Options{})
	if len(result.Problems) > 0 {
		t.Fatalf("%v\n%s", result.Problems, text)
	}
	out := testkit.Must(cel.YAML(result.Policies))(t)
	list := compiledResults(t, result.Policies)
	original := sourcePolicy(t, []byte(text))
	return testkit.Must(h.Gate(original))(t), testkit.Must(h.Gate(list...))(t), string(out)
}

const podOf = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"containers": [{"name": "c", "image": "IMAGE"}]}}`

func request(t *testing.T, object, image string) gate.Request {
	t.Helper()
	return gate.Request{
		Object: testkit.Must(workload.Parse([]byte(strings.ReplaceAll(object, "IMAGE", image))))(t), Pinning: gate.PinHere,
		Subject: policy.Subject{Operation: "CREATE", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}},
	}
}

// decided is the answer of a gate to a request: its result, the failures with their actions, and the patch that pins images.
func decided(t *testing.T, g *gate.Gate, r gate.Request) string {
	t.Helper()
	out := g.Decide(t.Context(), r)
	if out.Result == gate.Unchecked { // an image that the source skips is none of the result's
		out.Result = gate.Allow
	}
	failures := map[string]bool{}
	for _, v := range out.Verdicts {
		for _, d := range v.Decisions {
			if d.Result != policy.Pass && d.Result != policy.Skipped {
				failures[fmt.Sprint(d.Result, "/", d.Check.Action)] = true
			}
		}
	}
	return fmt.Sprint(out.Result, " ", slices.Sorted(maps.Keys(failures)), " ", out.Patch)
}

// imageRule is a policy with one entry.
func imageRule(entry string) string {
	return "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: signed}, spec: {validationFailureAction: Enforce, rules: [\n" +
		"  {name: signed, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{" + entry + "}]}]}}"
}

// TestVerifyImages: source and result decide the same about images with all kinds of evidence, and pin the
// same. Of each row some images are admitted and others denied.
func TestVerifyImages(t *testing.T) {
	h := newImageEnv(t)
	const (
		all    = "imageReferences: ['HOST/shop/*'], "
		ofKey  = "{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}"
		second = "{keys: {publicKeys: SECOND, rekor: {ignoreTlog: true}}}"
		signed = all + "attestors: [{entries: [" + ofKey + "]}]"
	)
	const scanned = all + "attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + "]}], conditions: ["
	keyless := func(fields string) string { return all + "attestors: [{entries: [{keyless: {" + fields + "}}]}]" }
	for _, c := range []struct{ reason, entry string }{
		{"a key", signed},
		{"a key, and a log", all + "attestors: [{entries: [{keys: {publicKeys: KEY}}]}]"},
		{"a key, and the public log by its address", all + "attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {url: 'https://rekor.sigstore.dev'}}}]}]"},
		{"a key, and a log by its key", all + "attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {url: 'https://rekor.sigstore.dev', pubkey: %REKOR}}}]}]"},
		{"a key, and another log's key", all + "attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {url: 'https://rekor.sigstore.dev', pubkey: %CTLOG}}}, " + ofKey + "], count: 1}]"},
		{"a key, and a timestamp", all + "attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}, ctlog: {tsaCertChain: %TSA}}}]}]"},
		{"an algorithm", all + "attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}, signatureAlgorithm: sha256}}]}]"},
		{"an algorithm of the entry", all + "attestors: [{count: 1, entries: [{signatureAlgorithm: sha512, keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}, " + second + "]}]"},
		{"one of two keys", all + "attestors: [{count: 1, entries: [" + ofKey + ", " + second + "]}]"},
		{"both keys", all + "attestors: [{entries: [" + ofKey + ", " + second + "]}]"},
		{"two of three keys", all + "attestors: [{count: 2, entries: [" + ofKey + ", " + second + ", {keys: {publicKeys: %STRANGER, rekor: {ignoreTlog: true}}}]}]"},
		{"two sets", all + "attestors: [{entries: [" + ofKey + "]}, {count: 1, entries: [" + second + ", {keys: {publicKeys: %STRANGER, rekor: {ignoreTlog: true}}}]}]"},
		{"a nested set", all + "attestors: [{count: 2, entries: [{attestor: {count: 1, entries: [" + ofKey + "]}}, " + second + "]}]"},
		{"one of nested sets", all + "attestors: [{count: 1, entries: [{attestor: {entries: [" + ofKey + ", " + second + "]}}, {keys: {publicKeys: %STRANGER, rekor: {ignoreTlog: true}}}]}]"},
		{"an identity", keyless("issuer: ISSUER, subject: '%WHO'")},
		{"an identity by wildcards", keyless("issuer: ISSUER, subject: 'https://git.example/org/*'")},
		{"an identity by an expression", keyless("issuer: ISSUER, subjectRegExp: SUBJECT")},
		{"an identity by an expression that is found within", keyless("issuerRegExp: 'https://token\\.example', subjectRegExp: 'https://git.example/org/.*'")},
		{"an identity, without the timestamp of its certificate", keyless("issuer: ISSUER, subject: '%WHO', ctlog: {ignoreSCT: true}")},
		{"an identity, and a log by its key", keyless("issuer: ISSUER, subject: '%WHO', ctlog: {pubkey: %CTLOG}, rekor: {url: 'https://rekor.sigstore.dev', pubkey: %REKOR}")},
		{"an identity of an authority", keyless("issuer: ISSUER, subject: '%WHO', roots: %FULCIO")},
		{"an identity with an extension", all + "attestors: [{count: 1, entries: [{keyless: {issuer: ISSUER, subject: '%WHO', additionalExtensions: {githubWorkflowName: x}}}, " + second + "]}]"},
		{"an identity and a timestamp", keyless("issuer: ISSUER, subject: '%WHO', rekor: {ignoreTlog: true, url: 'https://rekor.sigstore.dev'}, ctlog: {tsaCertChain: %TSA}")},
		{"annotations", all + "attestors: [{entries: [{annotations: {env: prod, team: a}, keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]"},
		{"a repository", all + "repository: HOST/signatures, attestors: [{entries: [" + ofKey + "]}]"},
		{"a repository of an attestor", all + "attestors: [{entries: [{repository: HOST/signatures, keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]"},
		{"one repository, and another of an attestor", all + "repository: HOST/elsewhere, attestors: [{count: 1, entries: [{repository: HOST/signatures, keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}, " + second + "]}]"},
		{"a certificate", all + "attestors: [{entries: [{certificates: {cert: %CERTIFIED, certChain: %FULCIO}}]}]"},
		{"certificates of a chain", all + "attestors: [{entries: [{certificates: {certChain: %FULCIO}}]}]"},
		{"a notary", all + "type: Notary, attestors: [{entries: [{certificates: {cert: NOTARY}}]}]"},
		{"bundles", all + "type: SigstoreBundle, attestors: [{entries: [" + ofKey + "]}]"},
		{"another cache", signed + ", useCache: false, cosignOCI11: true"},
		{"tags remain", signed + ", mutateDigest: false, verifyDigest: false"},
		{"tags are denied", signed + ", mutateDigest: false"},
		{"not required", signed + ", required: false"},
		{"digests alone", all + "required: false, mutateDigest: false"},
		{"some images are free", signed + ", skipImageReferences: ['HOST/shop/v1*']"},
		{"images by their tags", "imageReferences: ['HOST/shop/v12:1', 'HOST/shop/v2?:*'], attestors: [{entries: [" + ofKey + "]}]"},
		{"one image, and another", "imageReferences: ['HOST/shop/v*'], skipImageReferences: ['HOST/shop/v?:1', 'HOST/shop/v2*'], attestors: [{entries: [" + ofKey + "]}]"},
		{"audited", signed + ", failureAction: Audit, mutateDigest: false"},
		{"statements", all + "attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + "]}]}]"},
		{"statements of a name", all + "attestations: [{name: scan, predicateType: SCAN, attestors: [{entries: [" + ofKey + "]}]}]"},
		{"statements of several types", all + "attestations: [{name: scan, type: SCAN, attestors: [{entries: [" + ofKey + "]}]}, {type: 'https://example.com/other/v1', attestors: [{count: 1, entries: [" + ofKey + ", " + second + "]}]}], required: false"},
		{"signatures and statements", signed + ", attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + "]}]}]"},
		{"the old fields of a key", "image: 'HOST/shop/*', key: KEY, required: true"},
		{"the old fields of an identity", "image: 'HOST/shop/*', issuer: ISSUER, subject: '%WHO'"},
		{"the old fields of a statement", "image: 'HOST/shop/*', key: KEY, annotations: {}, attestations: [{predicateType: SCAN}], required: false"},
		{"a condition", scanned + "{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"},
		{"a condition for one of two signers", all + "attestations: [{type: SCAN, attestors: [{count: 1, entries: [" + ofKey + ", " + second + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"},
		{"a condition for two signers", all + "attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + ", " + second + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"},
		{"a condition for two sets of signers", all + "attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + "]}, {entries: [" + second + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"},
		{"one of several conditions", scanned + "{any: [{key: '{{ verdict }}', operator: Equals, value: clean}, {key: '{{ verdict }}', operator: Equals, value: Clean}]}]}]"},
		{"an expression", scanned + "{all: [{key: \"{{ regex_match('^https://ci.example/v[0-9].[0-9]$', '{{ builder.id }}') }}\", operator: Equals, value: true}]}]}]"},
		{"a number", scanned + "{all: [{key: '{{ score }}', operator: GreaterThan, value: 3}]}]}]"},
		{"an equal number", scanned + "{all: [{key: '{{ score }}', operator: Equals, value: 7}]}]}]"},
		{"a boolean", scanned + "{any: [{key: '{{ verdict }}', operator: Equals, value: true}, {key: '{{ score }}', operator: Equals, value: 10}]}]}]"},
		{"a length", scanned + "{all: [{key: \"{{ components[?version=='1.5'] | length(@) }}\", operator: Equals, value: 1}]}]}]"},
		{"values of a list", scanned + "{all: [{key: \"{{ components[?name=='text'].version || 'none' }}\", operator: AllNotIn, value: ['1.5', '7', 'true']}]}]}]"},
		{"a start", scanned + "{all: [{key: '{{ builder.id }}', operator: Equals, value: 'https://ci.example/*'}]}]}]"},
		{"a value of none", scanned + "{all: [{key: '{{ verdict }}', operator: AnyNotIn, value: [dirty, '5']}]}]}]"},
		{"a member of the request", scanned + "{all: [{key: '{{ request.namespace }}', operator: Equals, value: shop}, {key: '{{ verdict }}', operator: Equals, value: clean}]}]}]"},
		{"conditions on two types", all + "attestations: [{name: scan, type: SCAN, attestors: [{entries: [" + ofKey + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}]}]}, " +
			"{name: other, type: 'https://example.com/other/v1', attestors: [{entries: [" + ofKey + "]}], conditions: [{all: [{key: '{{ length(found) }}', operator: Equals, value: 2}]}]}]"},
		{"a denial by all statements", all + "attestations: [{name: scan, type: SCAN, attestors: [{entries: [" + ofKey + "]}]}, {name: other, type: 'https://example.com/other/v1', attestors: [{entries: [" + ofKey + "]}]}], " +
			"validate: {message: It is dirty., deny: {conditions: {any: [{key: '{{ scan.verdict }}', operator: AnyIn, value: [dirty]}]}}}"},
		{"a denial by a length", all + "attestations: [{name: scan, type: SCAN, attestors: [{entries: [" + ofKey + "]}]}, {name: other, type: 'https://example.com/other/v1', attestors: [{entries: [" + ofKey + "]}]}], " +
			"validate: {message: It is dirty., deny: {conditions: {any: [{key: '{{ length(other.found) }}', operator: LessThan, value: 2}, {key: '{{ scan.verdict }}', operator: NotEquals, value: clean}]}}}"},
		{"credentials", signed + ", imageRegistryCredentials: {allowInsecureRegistry: true}"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			source, made, written := h.gates(t, h.fill(t, imageRule(c.entry)))
			results := map[string]int{}
			conditional := strings.Contains(c.entry, "conditions:")
			for _, image := range h.Images {
				if strings.HasPrefix(image.Reason, "attested ") && !strings.Contains(c.entry, "attestations:") {
					continue // as unsigned as others
				}
				want, got := decided(t, source, request(t, podOf, image.Name)), decided(t, made, request(t, podOf, image.Name))
				if conditional && strings.HasPrefix(want, "deny") && got == "error [indeterminate/Enforce] []" {
					got = want // the statement has no value that the condition reads
				}
				isText := slices.Contains([]string{"a number", "an equal number"}, c.reason) && strings.Contains(image.Reason, "score:7") && strings.Contains(image.Reason, "v1]") // and is denied
				isStricter := !strings.HasPrefix(got, "allow") && slices.ContainsFunc(map[string][]string{
					"values of a list": {"components:map[] ", "components:map[]]", "components:text", "components:<nil>"}, "a value of none": {"verdict:[clean]"},
				}[c.reason], func(predicate string) bool { return strings.Contains(image.Reason, predicate) })
				if want != got && !isText && !isStricter {
					t.Errorf("%s: %s, was %s\n%s", image.Reason, got, want, written)
				}
				result, _, _ := strings.Cut(want, " ")
				results[result]++
			}
			if (results["allow"] == 0 || results["deny"] == 0) && !slices.Contains([]string{"audited", "a key, and another log's key"}, c.reason) {
				t.Errorf("no image was admitted, or none denied: %v", results)
			}
		})
	}
}

// TestVerifyImagesOfObjects: the same for controllers, containers of each role, several images, updates, namespaces that
// are excluded, and rules with several entries.
func TestVerifyImagesOfObjects(t *testing.T) {
	h := newImageEnv(t)
	const text = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: signed}, spec: {validationFailureAction: Enforce, webhookTimeoutSeconds: 9, background: false, rules: [
  {name: by-key, match: {any: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]}, exclude: {any: [{resources: {namespaces: ['kube-*']}}]}, verifyImages: [
    {imageReferences: ['HOST/shop/*'], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]},
    {imageReferences: ['HOST/shop/v1*'], mutateDigest: false, verifyDigest: false, required: false, failureAction: Audit, attestors: [{entries: [{keys: {publicKeys: SECOND, rekor: {ignoreTlog: true}}}]}]}]},
  {name: shop-alone, match: {any: [{resources: {kinds: [Deployment], namespaces: [shop]}}]}, verifyImages: [{imageReferences: ['*'], required: false, mutateDigest: false, verifyDigest: true}]}]}}`
	source, made, written := h.gates(t, h.fill(t, text))
	const spec = `{"containers": [{"name": "a", "image": "IMAGE"}]}`
	pod := func(namespace, spec string) string {
		return `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "` + namespace + `"}, "spec": ` + spec + `}`
	}
	signed, unsigned := "", ""
	for _, i := range h.Images {
		switch i.Reason {
		case "signed by the key":
			signed = i.Name
		case "nothing":
			unsigned = i.Name
		}
	}
	objects := map[string]string{
		"a pod": pod("shop", spec), "a pod of an excluded namespace": pod("kube-system", spec),
		"an init container":                   pod("shop", `{"containers": [], "initContainers": [{"name": "a", "image": "IMAGE"}]}`),
		"an ephemeral container":              pod("shop", `{"containers": [], "ephemeralContainers": [{"name": "a", "image": "IMAGE"}]}`),
		"a volume":                            pod("shop", `{"containers": [], "volumes": [{"name": "a", "image": {"reference": "IMAGE"}}]}`),
		"beside a signed image":               pod("shop", `{"containers": [{"name": "a", "image": "`+signed+`"}, {"name": "b", "image": "IMAGE"}]}`),
		"before an unsigned image":            pod("shop", `{"containers": [{"name": "a", "image": "IMAGE"}, {"name": "b", "image": "`+unsigned+`"}]}`),
		"beside an image of another registry": pod("shop", `{"containers": [{"name": "a", "image": "IMAGE"}, {"name": "b", "image": "localhost:1/other:1"}]}`),
		"no image":                            pod("shop", `{"containers": []}`),
		"a deployment":                        `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"template": {"spec": ` + spec + `}}}`,
		"a replication controller":            `{"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"template": {"spec": ` + spec + `}}}`,
		"a cron job":                          `{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"jobTemplate": {"spec": {"template": {"spec": ` + spec + `}}}}}`,
		"another kind":                        `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {"image": "IMAGE"}}`,
	}
	results := map[string]int{}
	for reason, object := range objects {
		for _, image := range h.Images {
			if strings.HasPrefix(image.Reason, "attested ") {
				continue
			}
			created := request(t, object, image.Name)
			updated, renewed := created, created
			updated.Subject.Operation, updated.Old = "UPDATE", created.Object
			renewed.Subject.Operation, renewed.Old = "UPDATE", testkit.Must(workload.Parse([]byte(strings.ReplaceAll(object, "IMAGE", unsigned))))(t)
			for operation, r := range map[string]gate.Request{"created": created, "unchanged": updated, "of another image": renewed} {
				want, got := decided(t, source, r), decided(t, made, r)
				if want != got {
					t.Errorf("%s, %s, with an image %s: %s, was %s\n%s", reason, operation, image.Reason, got, want, written)
				}
				result, _, _ := strings.Cut(want, "]")
				results[strings.TrimSuffix(result, " [")]++
			}
		}
	}
	for _, want := range []string{"allow", "allow [fail/Audit", "deny [fail/Enforce"} {
		if results[want] == 0 {
			t.Errorf("no object has the result %s: %v", want, results)
		}
	}
}

// TestVerifyImagesRefused: what has no form is refused with its path.
func TestVerifyImagesRefused(t *testing.T) {
	h := newImageEnv(t)
	const (
		key    = "{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}"
		signed = "imageReferences: ['HOST/shop/*'], attestors: [{entries: [" + key + "]}]"
		entry  = "spec.rules[0].verifyImages[0]"
	)
	for _, c := range []struct{ reason, old, new, path string }{
		{"a condition on another text", "attestors: [", "attestations: [{type: SCAN, attestors: [{entries: [" + key + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: NotEquals, value: dirty}]}]}], attestors: [", entry + ".attestations[0].conditions[0].all[0]"},
		{"a condition without a form", "attestors: [", "attestations: [{type: SCAN, attestors: [{entries: [" + key + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: clean}, {key: \"{{ random('a') }}\", operator: Equals, value: a}]}]}], attestors: [", entry + ".attestations[0].conditions[0].all[1].key"},
		{"a condition on the time of signing", "attestors: [", "attestations: [{type: SCAN, attestors: [{entries: [" + key + "]}], conditions: [{all: [{key: '{{ quaymaster.signedAt }}', operator: NotEquals, value: a}]}]}], attestors: [", entry + ".attestations[0].conditions"},
		{"a condition without names", "attestors: [", "attestations: [{type: SCAN, attestors: [{entries: [" + key + "]}], conditions: [{all: [{key: '{{ @ }}', operator: Equals, value: a}]}]}], attestors: [", entry + ".attestations[0].conditions"},
		{"a condition on the account", "attestors: [", "attestations: [{type: SCAN, attestors: [{entries: [" + key + "]}], conditions: [{all: [{key: '{{ serviceAccountName }}', operator: Equals, value: a}]}]}], attestors: [", entry + ".attestations[0].conditions[0].all[0].key"},
		{"a message with a variable", "attestors: [", "attestations: [{name: scan, type: SCAN, attestors: [{entries: [" + key + "]}]}], validate: {message: '{{ request.namespace }}', deny: {conditions: {any: [{key: '{{ scan.verdict }}', operator: AnyIn, value: [clean]}]}}}, attestors: [", entry + ".validate.message"},
		{"a denial without a form", "attestors: [", "attestations: [{name: scan, type: SCAN, attestors: [{entries: [" + key + "]}]}], validate: {message: a, deny: {conditions: {any: [{key: '{{ other.verdict }}', operator: AnyIn, value: [clean]}]}}}, attestors: [", entry + ".validate.deny.conditions.any[0].key"},
		{"a short type", "attestors: [", "attestations: [{type: vuln, attestors: [{entries: [" + key + "]}]}], attestors: [", entry + ".attestations[0].type"},
		{"a variable", "HOST/shop/*", "{{ request.namespace }}/*", entry + ".imageReferences[0]"},
		{"preconditions without a form", "verifyImages:", "preconditions: {all: [{key: '{{ images.containers.c.tag }}', operator: Equals, value: a}]}, verifyImages:", "spec.rules[0].preconditions.all[0].key"},
		{"preconditions that never hold", "verifyImages:", "preconditions: {all: [{key: '{{ request.operation }}', operator: Equals, value: DELETE}]}, verifyImages:", "spec.rules[0].preconditions"},
		{"lookups", "verifyImages:", "context: [{name: a, variable: {value: b}}], verifyImages:", "spec.rules[0].context"},
		{"extractors", "kinds: [Pod]}}]},", "kinds: [ConfigMap]}}]}, imageExtractors: {ConfigMap: [{path: /data/image}]},", "spec.rules[0].imageExtractors"},
		{"properties", "verifyImages:", "reportProperties: {a: b}, verifyImages:", "spec.rules[0].reportProperties"},
		{"one signer in two sets", "attestors: [", "attestors: [{count: 2, entries: [{attestor: {entries: [" + key + "]}}, " + key + "]}, ", entry + ".attestors[0]"},
		{"an algorithm of a certificate", key, "{signatureAlgorithm: sha512, certificates: {certChain: %FULCIO}}", entry + ".attestors[0].entries[0].certificates"},
		{"a repository of a notary", signed, "type: Notary, repository: HOST/signatures, imageReferences: ['*'], attestors: [{entries: [{certificates: {cert: NOTARY}}]}]", entry + ".attestors[0].entries[0].repository"},
		{"roles", "kinds: [Pod]}}", "kinds: [Pod]}, clusterRoles: [admin]}", "spec.rules[0].match.any[0].clusterRoles"},
		{"platforms", "{name: signed}", "{name: signed, annotations: {quaymaster.dev/platforms: each}}", "metadata.annotations[quaymaster.dev/platforms]"},
		{"an address", "HOST/shop/*", "[::1]:5000/*", entry + ".imageReferences[0]"},
	} {
		text := h.fill(t, strings.Replace(imageRule(signed), c.old, c.new, 1))
		result := convertText(t, text, cel.Options{Partial: true})
		if len(result.Problems) == 0 || len(result.Policies) > 0 || !strings.HasSuffix(result.Problems[0].Path, ": "+c.path) {
			t.Errorf("%s: %v", c.reason, result.Problems)
		}
	}
}

// TestExceptionsOfImages: source and result exempt the same images and objects, and no others.
func TestExceptionsOfImages(t *testing.T) {
	h := newImageEnv(t)
	rule := imageRule("imageReferences: ['HOST/shop/*'], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]")
	digest := ""
	for _, i := range h.Images {
		if i.Reason == "nothing, by digest" {
			digest = i.Name
		}
	}
	const head = "\n---\n{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: leave, namespace: exempt%s}, spec: {exceptions: [{policyName: signed, ruleNames: %s}], match: {any: [{resources: %s}]}}}\n"
	images := func(list string) string { return ", annotations: {quaymaster.dev/images: '" + list + "'}" }
	for _, c := range []struct{ reason, annotations, rules, match, refused string }{
		{"objects", "", "['*']", "{kinds: [Pod], names: [a]}", ""},
		{"pods alone", "", "[signed]", "{namespaces: [shop]}", ""},
		{"controllers", "", "[autogen-signed]", "{namespaces: [shop]}", ""},
		{"other objects", "", "['*']", "{kinds: [Pod], names: [b]}", ""},
		{"an image", images("HOST/shop/v0:1"), "['*']", "{namespaces: [shop]}", ""},
		{"images", images("HOST/shop/v2*:*, HOST/shop/v0:1"), "['*']", "{namespaces: [shop]}", ""},
		{"an image by its digest", images(strings.Replace(digest, ":1@", "@", 1)), "['*']", "{namespaces: [shop]}", ""},
		{"an image by its tag and digest", images(strings.Replace(digest, "@", ":1@", 1)), "['*']", "{namespaces: [shop]}", "metadata.annotations[quaymaster.dev/images]"},
	} {
		text := h.fill(t, rule+fmt.Sprintf(head, c.annotations, c.rules, c.match))
		result := convertText(t, text, cel.Options{})
		if c.refused != "" {
			if len(result.Problems) != 1 || !strings.HasSuffix(result.Problems[0].Path, ": "+c.refused) {
				t.Errorf("%s: %v", c.reason, result.Problems)
			}
			continue
		}
		if len(result.Problems) > 0 {
			t.Fatalf("%s: %v", c.reason, result.Problems)
		}
		source, made := sets(t, text, result)
		gates := [2]*gate.Gate{}
		for i, s := range []*set.Set{source, made} {
			gates[i] = testkit.Must(gate.New(gate.Config{Registries: h, State: gate.Fixed{Policies: s, Prover: h.Prover}}))(t)
		}
		results := map[string]int{}
		for _, object := range []string{podOf, `{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "shop"}, "spec": {"template": {"spec": {"containers": [{"name": "a", "image": "IMAGE"}]}}}}`} {
			for _, image := range h.Images {
				want, got := decided(t, gates[0], request(t, object, image.Name)), decided(t, gates[1], request(t, object, image.Name))
				if want != got {
					t.Errorf("%s: %s: %s, was %s", c.reason, image.Reason, got, want)
				}
				result, _, _ := strings.Cut(want, " ")
				results[result]++
			}
		}
		if results["allow"] == 0 || results["deny"] == 0 {
			t.Errorf("%s: no image was admitted, or none denied: %v", c.reason, results)
		}
	}
}

// TestVerifyImagesWhere: preconditions select the same objects.
func TestVerifyImagesWhere(t *testing.T) {
	h := newImageEnv(t)
	rule := imageRule("imageReferences: ['HOST/shop/*'], attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]")
	unsigned := ""
	for _, i := range h.Images {
		if i.Reason == "nothing" {
			unsigned = i.Name
		}
	}
	for _, c := range []struct{ reason, preconditions, written string }{
		{"a label", "{all: [{key: \"{{ request.object.metadata.labels.signed || '' }}\", operator: Equals, value: 'yes'}]}", "name: preconditions"},
		{"an operation", "{all: [{key: \"{{ request.operation }}\", operator: Equals, value: CREATE}]}", "operations:\n          - CREATE\n        apiGroups"},
		{"no deletion", "{all: [{key: '{{request.operation}}', operator: NotEquals, value: DELETE}, {key: '{{ request.namespace }}', operator: Equals, value: shop}]}", "name: preconditions"},
		{"one of several", "{any: [{key: '{{ request.namespace }}', operator: Equals, value: other}, {key: \"{{ request.object.spec.hostNetwork || `false` }}\", operator: Equals, value: true}]}", ""},
	} {
		source, made, written := h.gates(t, h.fill(t, strings.Replace(rule, "verifyImages:", "preconditions: "+c.preconditions+", verifyImages:", 1)))
		if !strings.Contains(written, c.written) {
			t.Errorf("%s: %s", c.reason, written)
		}
		results := map[string]int{}
		for _, meta := range []string{`"namespace": "shop"`, `"namespace": "other"`, `"namespace": "shop", "labels": {"signed": "yes"}`, `"namespace": "shop", "labels": {"signed": "no"}`} {
			for _, spec := range []string{`"containers": [{"name": "a", "image": "IMAGE"}]`, `"hostNetwork": true, "containers": [{"name": "a", "image": "IMAGE"}]`} {
				for _, object := range []string{
					`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", ` + meta + `}, "spec": {` + spec + `}}`,
					`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", ` + meta + `}, "spec": {"template": {"metadata": {` + meta + `}, "spec": {` + spec + `}}}}`,
				} {
					created := request(t, object, unsigned)
					updated := created
					updated.Subject.Operation, updated.Old = "UPDATE", testkit.Must(workload.Parse([]byte(strings.ReplaceAll(object, "IMAGE", "localhost:1/other:1"))))(t)
					for _, r := range []gate.Request{created, updated} {
						want, got := decided(t, source, r), decided(t, made, r)
						if want != got {
							t.Errorf("%s: %s %s: %s, was %s\n%s", c.reason, r.Subject.Operation, object, got, want, written)
						}
						result, _, _ := strings.Cut(want, " ")
						results[result]++
					}
				}
			}
		}
		if results["allow"] == 0 || results["deny"] == 0 {
			t.Errorf("%s: none was admitted, or none denied: %v", c.reason, results)
		}
	}
}
