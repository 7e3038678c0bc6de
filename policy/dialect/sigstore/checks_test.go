package sigstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestGlobByDigest: an image that is named by its digest is none that a glob does not name.
func TestGlobByDigest(t *testing.T) {
	other := "sha256:" + strings.Repeat("b", 64)
	for _, c := range []struct {
		glob, ref string
		want      bool
		reason    string
	}{
		{"ghcr.io/org/app:*", "ghcr.io/org/other@" + digest, false, "another image by digest"},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app@" + digest, false, "one tag is not every digest"},
		{"ghcr.io/org/app@*", "ghcr.io/org/app@" + digest, true, "every digest"},
		{"ghcr.io/org/app@*", "ghcr.io/org/app:v1", true, "every digest, and a tag, which resolves to one"},
		{"ghcr.io/org/app@" + digest, "ghcr.io/org/app:v1", true, "one digest, and a tag, which may resolve to it"},
		{"ghcr.io/org/app:v1@" + digest, "ghcr.io/org/app:v1", true, "a tag and its digest, and the tag"},
		{"ghcr.io/org/app:v1@" + digest, "ghcr.io/org/app:v2", false, "a tag and its digest, and another tag"},
		{"ghcr.io/org/app@*", "ghcr.io/org/other:v1", false, "every digest of another image"},
		{"ghcr.io/org/app:v1@" + digest, "ghcr.io/org/app:v1@" + digest, true, "both"},
		{"ghcr.io/org/app:v1@" + digest, "ghcr.io/org/app:v1@" + other, false, "both, and another digest"},
		{"ghcr.io/org/app:v1@" + digest, "ghcr.io/org/app:v2@" + digest, false, "both, and another tag"},
		{"ghcr.io/org/app:*@" + digest, "ghcr.io/org/app@" + digest, true, "every tag with the digest is none with it"},
		{"ghcr.io/org/app:*@" + digest, "ghcr.io/org/app@" + other, false, "every tag with the digest is no other digest"},
	} {
		p := compile(t, sigstore.Options{}, strings.Replace(head, "ghcr.io/org/**", `"`+c.glob+`"`, 1)+signedByKey)
		if got := len(plan(t, pod("prod"), c.ref, p).Checks) == 1; got != c.want {
			t.Errorf("%s: %s concerns %s: %t", c.reason, c.glob, c.ref, got)
		}
	}
}

// TestImagePatterns: what an index may leave out is only what a policy names no image of.
func TestImagePatterns(t *testing.T) {
	why := errors.New("why")
	none, err := sigstore.New(sigstore.Options{}).NoMatch(sigstore.UnmatchedWarn, nil)
	if err != nil {
		t.Fatal(err)
	}
	deny, err := sigstore.New(sigstore.Options{}).NoMatch("", nil)
	if err != nil || deny.AuditOnly || !none.AuditOnly {
		t.Errorf("denying audits %t, warning %t, %v", deny.AuditOnly, none.AuditOnly, err)
	}
	for _, c := range []struct {
		reason string
		p      *policy.Policy
		known  bool
	}{
		{"a repository", compile(t, sigstore.Options{}, head+signedByKey), true},
		{"any registry", compile(t, sigstore.Options{}, strings.Replace(head, "ghcr.io/org/**", `"**/app"`, 1)+signedByKey), false},
		{"a document that does not compile", sigstore.New(sigstore.Options{}).Broken([]byte(head), "x", why), false},
		{"what no policy names", none, false},
	} {
		if patterns, known := c.p.Rules[0].(policy.Selective).ImagePatterns(); known != c.known || (len(patterns) > 0) != known {
			t.Errorf("%s: %q, %t", c.reason, patterns, known)
		}
	}
}

// TestBounds: the last that is taken, and the first that is not.
func TestBounds(t *testing.T) {
	many := func(n int, entry func(i int) string) string {
		var list []string
		for i := range n {
			list = append(list, entry(i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	const authority = "  authorities: [{key: {kms: 'awskms:///alias/a'}, %s}]\n"
	statement := func(i int) string { return fmt.Sprintf("{name: a%d, predicateType: vuln}", i) }
	prefix := func(n int) string { return "source: [{tagPrefix: " + strings.Repeat("a", n) + "}]" }
	for _, c := range []struct{ reason, last, first string }{
		{"images", strings.Replace(head, "[{glob: ghcr.io/org/**}]", many(200, func(int) string { return "{glob: 'a.example/b'}" }), 1) + signedByKey, strings.Replace(head, "[{glob: ghcr.io/org/**}]", many(201, func(int) string { return "{glob: 'a.example/b'}" }), 1) + signedByKey},
		{"statements", head + fmt.Sprintf(authority, "attestations: "+many(50, statement)), head + fmt.Sprintf(authority, "attestations: "+many(51, statement))},
		{"the beginning of a tag", head + fmt.Sprintf(authority, prefix(52)), head + fmt.Sprintf(authority, prefix(53))},
	} {
		for text, good := range map[string]bool{c.last: true, c.first: false} {
			if _, err := sigstore.New(sigstore.Options{}).Compile([]byte(fill(t, text)), "x"); (err == nil) != good {
				t.Errorf("%s: taken %t, %.200v", c.reason, err == nil, err)
			}
		}
	}
	for size, stands := range map[int]bool{field.MaxDocument: true, field.MaxDocument + 1: false} {
		text := head + "#" + strings.Repeat("a", size-len(head)-1)
		if p := sigstore.New(sigstore.Options{}).Broken([]byte(text), "x", errors.New("why")); (p != nil) != stands {
			t.Errorf("%d bytes are a policy: %t", size, p != nil)
		}
	}
}

// TestTaken: the fields that a document may have, and may not have.
func TestTaken(t *testing.T) {
	keyless := strings.Replace(keylessHead, "url: 'https://fulcio.sigstore.dev'", "%s", 1) + "%s}%s}]\n"
	without := func(ca string) string { return fmt.Sprintf(keyless, ca, "", "") }
	rooted := func(rest string) string {
		return fmt.Sprintf(keyless, "url: 'https://fulcio.sigstore.dev'", ", trustRootRef: a", rest)
	}
	key := func(rest string) string { return "  authorities: [{key: {data: $KEY}, " + rest + "}]\n" }
	scripted := func(rest string) string {
		return key("attestations: [{name: a, predicateType: vuln, policy: {type: cue, " + rest + "}}]")
	}
	matching := func(entry string) string { return "  match: [{version: v1, " + entry + "}]\n" + signedByKey }
	certificate := quoted(t, verifytest.Must(verifytest.New(verifytest.Options{})).CA.ChainPEM())
	sum := strings.Repeat("ab", 32)
	for _, c := range []struct {
		reason, spec, want string // want is empty for accepted documents
	}{
		{"certificates", without("ca-cert: {data: " + certificate + "}"), ""},
		{"certificates in two places", without("ca-cert: {data: " + certificate + ", secretRef: {name: a}}"), "found 2"},
		{"certificates and a digest algorithm", without("ca-cert: {data: " + certificate + ", hashAlgorithm: sha256}"), "has no effect on a certificate"},
		{"a bundle by a key, and another root's log", key("signatureFormat: bundle, ctlog: {trustRootRef: a}"), ""},
		{"a bundle with a timestamp of its root", rooted(", signatureFormat: bundle, rfc3161timestamp: {trustRootRef: a}"), ""},
		{"a bundle with a timestamp of another root", rooted(", signatureFormat: bundle, rfc3161timestamp: {trustRootRef: b}"), "one root"},
		{"a pull secret", key("source: [{signaturePullSecrets: [{name: a}]}]"), ""},
		{"a pull secret of another namespace", key("source: [{signaturePullSecrets: [{name: b/a}]}]"), "in the object's namespace"},
		{"no beginning of a tag", key("source: [{tagPrefix: /a}]"), "want the beginning of a tag"},
		{"a ConfigMap", scripted("configMapRef: {name: a, key: b}"), ""},
		{"a ConfigMap without a name", scripted("configMapRef: {key: b}"), "want a name and a key"},
		{"an address", scripted("remote: {url: 'https://example.com/p', sha256sum: " + sum + "}"), ""},
		{"an address without a host", scripted("remote: {url: 'https:///p', sha256sum: " + sum + "}"), "remote.url"},
		{"an address with a sum that is too long", scripted("remote: {url: 'https://example.com/p', sha256sum: " + sum + "g}"), "64 hexadecimal"},
		{"daemonsets of another group", matching("resource: daemonsets, group: batch"), "want \"apps\""},
		{"a label with a wildcard", matching("resource: pods, selector: {matchLabels: {app: 'w*'}}"), "spec.match[0].selector: "},
		{"the name of a label with a space", matching("resource: pods, selector: {matchLabels: {'a b': c}}"), "spec.match[0].selector: "},
		{"a value with a space among others", matching("resource: pods, selector: {matchExpressions: [{key: app, operator: NotIn, values: [a, 'b c']}]}"), "spec.match[0].selector: "},
		{"a label that is and is not", matching("resource: pods, selector: {matchLabels: {app: web}, matchExpressions: [{key: app, operator: NotIn, values: [web]}]}"), "no labels meet it: app is to be In web and NotIn web"},
		{"a label that is there and absent", matching("resource: pods, selector: {matchExpressions: [{key: app, operator: Exists}, {key: app, operator: DoesNotExist}]}"), "no labels meet it"},
		{"a label without a name", matching("resource: pods, selector: {matchExpressions: [{key: '', operator: Exists}]}"), "key: is empty"},
		{"the object's kind", "  policy: {includeTypeMeta: true, type: cue, data: 'typemeta: kind: \"Pod\"'}\n" + signedByKey, ""},
		{"the object's kind, which is not in the input", "  policy: {includeTypeMeta: false, type: cue, data: 'typemeta: kind: \"Pod\"'}\n" + signedByKey, "typemeta is not available"},
	} {
		_, err := sigstore.New(sigstore.Options{Secrets: secrets{}, Fetcher: fetched{}}).Compile([]byte(fill(t, head+c.spec)), "x")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
	for annotations, good := range map[string]bool{"{quaymaster.dev/stale-if-error: 1h}": true, "{quaymaster.dev/stale-if-error: soon}": false, "{quaymaster.dev/stale: 1h}": false, "{quaymaster.dev/guard: accepted, example.com/stale: 1h}": true, "{a: 1}": false} {
		text := fill(t, strings.Replace(head, "name: signed", "name: signed, annotations: "+annotations, 1)+signedByKey)
		if _, err := sigstore.New(sigstore.Options{}).Compile([]byte(text), "x"); (err == nil) != good {
			t.Errorf("%s: %v", annotations, err)
		}
	}
}

// TestLabels: labels as Kubernetes compares them.
func TestLabels(t *testing.T) {
	for selector, want := range map[string]string{
		"{matchLabels: {gone: ''}}":                                           "skips",
		"{matchExpressions: [{key: app, operator: In, values: [db]}]}":        "skips",
		"{matchExpressions: [{key: gone, operator: In, values: ['']}]}":       "skips",
		"{matchExpressions: [{key: app, operator: NotIn, values: [db]}]}":     "checks",
		"{matchExpressions: [{key: gone, operator: NotIn, values: ['', a]}]}": "checks",
	} {
		p := compile(t, sigstore.Options{}, head+"  match: [{resource: pods, version: v1, selector: "+selector+"}]\n"+signedByKey)
		if got := outcome(plan(t, pod("prod"), "ghcr.io/org/app:v1", p)); got != want {
			t.Errorf("%s: %s, want %s", selector, got, want)
		}
	}
	deployment := pod("prod")
	deployment.Group, deployment.Kind, deployment.Subresource = "apps", "Deployment", "ephemeralcontainers"
	if got := outcome(plan(t, deployment, "ghcr.io/org/app:v1", compile(t, sigstore.Options{}, head+signedByKey))); got != "skips" {
		t.Errorf("containers that are added to something else than a pod: %s", got)
	}
}

// TestTargetsOf: each kind once, and with pods their later containers.
func TestTargetsOf(t *testing.T) {
	pods := func(label string) string {
		return "{resource: pods, version: v1, selector: {matchLabels: {app: " + label + "}}}"
	}
	p := compile(t, sigstore.Options{}, head+"  match: ["+pods("a")+", "+pods("b")+", {resource: deployments, group: apps, version: v1}, {resource: replicasets, group: apps, version: v1}]\n"+signedByKey)
	var got []string
	for _, target := range p.Targets {
		got = append(got, target.Group+"/"+target.Kind+"/"+target.Subresource)
	}
	if want := []string{"/Pod/", "/Pod/ephemeralcontainers", "apps/Deployment/", "apps/ReplicaSet/"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnchanged: what an update leaves as it is, is not asked about, by a policy or by
// the one about what no policy names.
func TestUnchanged(t *testing.T) {
	named := compile(t, sigstore.Options{}, head+signedByKey)
	none, err := sigstore.New(sigstore.Options{}).NoMatch("", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*policy.Policy{named, none} {
		for unchanged, want := range map[bool]int{false: 1, true: 0} {
			i := container("ghcr.io/org/app:v1")
			i.Unchanged = unchanged
			made, err := p.Rules[0].Plan(t.Context(), pod("prod"), []policy.Image{i})
			if err != nil || len(made.Checks) != want {
				t.Errorf("%s, unchanged %t: %d checks, %v", p.Name, unchanged, len(made.Checks), err)
			}
		}
	}
}

// TestNoMatchSkips: no-match applies only where policies apply; where that is not known, it
// is an error.
func TestNoMatchSkips(t *testing.T) {
	for _, c := range []struct {
		reason string
		optIn  bool
		change func(*policy.Subject)
		want   string
	}{
		{"a pod", false, func(*policy.Subject) {}, "checks"},
		{"a deletion", false, func(s *policy.Subject) { s.Operation = "DELETE" }, "skips"},
		{"a namespace that opted in", true, func(s *policy.Subject) {
			s.NamespaceLabels = map[string]string{"policy.sigstore.dev/include": "true"}
		}, "checks"},
		{"a namespace that did not", true, func(*policy.Subject) {}, "skips"},
		{"an unknown namespace", true, func(s *policy.Subject) { s.NamespaceKnown = false }, "error"},
	} {
		none, err := sigstore.New(sigstore.Options{OptIn: c.optIn}).NoMatch("", nil)
		if err != nil {
			t.Fatal(err)
		}
		s := pod("prod")
		c.change(s)
		made := plan(t, s, "quay.io/org/app:v1", none)
		if got := outcome(made); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
		if c.want == "checks" {
			if d := decision(t, &made.Checks[0], answers()); d.Result != policy.Fail || d.Reasons[0].Code != policy.Denied {
				t.Errorf("%s: %s %+v", c.reason, d.Result, d.Reasons)
			}
		}
	}
}

// TestSameStatements: authorities that want the same may be asked as one, and others not.
func TestSameStatements(t *testing.T) {
	cluster := configMaps{"cosign-system/a": {"k": "predicate: a: 1", "r": "package sigstore\nisCompliant { true }"}, "cosign-system/b": {"k": "predicate: a: 2"}}
	cue, from := "policy: {type: cue, data: 'predicate: a: 1'}", "policy: {type: cue, configMapRef: {name: a, key: k}}"
	for _, c := range []struct {
		reason, first, second string
		judged                bool
	}{
		{"the same text", "vuln, " + cue, "vuln, " + cue, false},
		{"another text", "vuln, " + cue, "vuln, " + strings.Replace(cue, "1", "2", 1), true},
		{"another language", "vuln, " + from, "vuln, " + strings.Replace(strings.Replace(from, "cue", "rego", 1), "key: k", "key: r", 1), true},
		{"another type", "vuln, " + cue, "spdx, " + cue, true},
		{"the same ConfigMap", "vuln, " + from, "vuln, " + from, false},
		{"another ConfigMap", "vuln, " + from, "vuln, " + strings.Replace(from, "name: a", "name: b", 1), true},
		{"a text here and in a ConfigMap", "vuln, " + cue, "vuln, " + from, true},
	} {
		authority := func(rest string) string {
			return "{key: {data: $KEY}, attestations: [{name: a, predicateType: " + rest + "}]}"
		}
		check := only(t, compile(t, sigstore.Options{Lookup: cluster}, head+"  authorities: ["+authority(c.first)+", "+authority(c.second)+"]\n"))
		if (check.Judge != nil) != c.judged {
			t.Errorf("%s: judged %t", c.reason, check.Judge != nil)
		}
	}
	// One text in two languages is two texts, of which this one is no Rego.
	rego := strings.Replace(from, "cue", "rego", 1)
	both := "  authorities: [{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, " + from + "}]}, {key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, " + rego + "}]}]\n"
	if got := outcome(plan(t, pod("prod"), "ghcr.io/org/app:v1", compile(t, sigstore.Options{Lookup: cluster}, head+both))); got != "error" {
		t.Errorf("invalid Rego is not evaluated as CUE: %s", got)
	}
}

// TestOverallMore: the input of a policy over all authorities, and the data that it does
// not need.
func TestOverallMore(t *testing.T) {
	const static = "  authorities: [{name: a, static: {action: pass}}, {name: b, static: {action: fail}}]\n"
	bare := func(s *policy.Subject) { s.Bare, s.Object = true, policy.Content{} }
	asks := func(member string) string {
		return "  policy: {" + member + "type: rego, data: \"package sigstore\\nisCompliant { input.authorityMatches.a }\"}\n" + static
	}
	for _, c := range []struct {
		reason, spec string
		change       func(*policy.Subject)
		want         policy.Result // empty: cannot be evaluated
		code         policy.Code
	}{
		{"one that passes", "  policy: {type: cue, data: 'authorityMatches: a: static: true'}\n" + static, nil, policy.Pass, policy.DigestPinned},
		{"one that always fails is none that passes", "  policy: {type: cue, data: 'authorityMatches: b: static: true'}\n" + static, nil, policy.Fail, policy.Denied},
		{"one that cannot be evaluated", "  policy: {includeObjectMeta: true, type: rego, data: \"package sigstore\\nisCompliant { to_number(input.metadata.name) > 1 }\"}\n" + static, nil, policy.Indeterminate, policy.PolicyError},
		{"a bare object, of which it asks nothing", asks(""), bare, policy.Pass, policy.DigestPinned},
		{"a bare object, and its specification", asks("includeSpec: true, "), bare, "", ""},
		{"a bare object, and its metadata", asks("includeObjectMeta: true, "), bare, "", ""},
		{"a bare object, and its kind", asks("includeTypeMeta: true, "), bare, "", ""},
	} {
		s := pod("prod")
		if c.change != nil {
			c.change(s)
		}
		made := plan(t, s, "ghcr.io/org/app:v1", compile(t, sigstore.Options{}, head+c.spec))
		if c.want == "" {
			if got := outcome(made); got != "error" {
				t.Errorf("%s: %s", c.reason, got)
			}
			continue
		}
		if d := decision(t, &made.Checks[0], answers()); d.Result != c.want || d.Reasons[0].Code != c.code {
			t.Errorf("%s: %s %+v, want %s %s", c.reason, d.Result, d.Reasons, c.want, c.code)
		}
	}
	const yes = "type: rego, data: \"package sigstore\\nisCompliant { true }\"}\n"
	for _, c := range []struct {
		reason, spec  string
		digest, reads bool
	}{
		{"static alone", "  policy: {" + yes + static, false, false},
		{"static alone, and the configuration", "  policy: {fetchConfigFile: true, " + yes + static, true, true},
		{"none that can pass, and the configuration", "  policy: {fetchConfigFile: true, " + yes + "  authorities: [{static: {action: fail}}]\n", false, false},
		{"a key", "  policy: {" + yes + signedByKey, true, false},
		{"a key, and the configuration", "  policy: {fetchConfigFile: true, " + yes + signedByKey, true, true},
	} {
		check := only(t, compile(t, sigstore.Options{}, head+c.spec))
		if check.MutateDigest != c.digest || check.VerifyDigest != c.digest || (check.WantsData == policy.DataEach) != c.reads {
			t.Errorf("%s: a digest %t, %t, data %v", c.reason, check.MutateDigest, check.VerifyDigest, check.WantsData)
		}
	}
	refused := only(t, compile(t, sigstore.Options{}, head+"  authorities: [{static: {action: fail}}]\n"))
	if d := decision(t, refused, answers()); d.Result != policy.Fail || d.Reasons[0].Code != policy.Denied {
		t.Errorf("refused by the policy: %s %+v", d.Result, d.Reasons)
	}
}

// TestConfigFaults: a configuration that a runtime may read otherwise fails, whatever the
// policy would say.
func TestConfigFaults(t *testing.T) {
	check := only(t, compile(t, sigstore.Options{}, head+"  policy: {fetchConfigFile: true, type: rego, data: \"package sigstore\\nisCompliant { true }\"}\n  authorities: [{static: {action: pass}}]\n"))
	listed := func(platform string) policy.ImageManifest {
		m := config("linux/amd64", "app")
		system, architecture, _ := strings.Cut(platform, "/")
		if err := json.Unmarshal(fmt.Appendf(nil, `{"platform":{"os":%q,"architecture":%q}}`, system, architecture), &m.Descriptor); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		reason string
		data   []policy.ImageManifest
		want   policy.Result
	}{
		{"one", []policy.ImageManifest{config("linux/amd64", "app")}, policy.Pass},
		{"the same twice", []policy.ImageManifest{config("linux/amd64", "app"), config("linux/amd64", "app")}, policy.Pass},
		{"two for one platform", []policy.ImageManifest{config("linux/amd64", "app"), config("linux/amd64", "root")}, policy.Fail},
		{"for the listed platform", []policy.ImageManifest{listed("linux/amd64")}, policy.Pass},
		{"listed for another architecture", []policy.ImageManifest{listed("linux/arm64")}, policy.Fail},
		{"listed for another system", []policy.ImageManifest{listed("windows/amd64")}, policy.Fail},
		{"none that can be read", []policy.ImageManifest{{Config: []byte("{")}}, policy.Fail},
	} {
		judged := check.Judge.Judge(t.Context(), []policy.Given{{Check: check, Answers: answers(), Data: policy.ImageData{Children: c.data}}})
		if d := judged.Decisions[0]; d.Result != c.want {
			t.Errorf("%s: %s %+v, want %s", c.reason, d.Result, d.Reasons, c.want)
		}
	}
}

// TestStatementsAreCounted: two statements of one signer are two, and one twice is one.
func TestStatementsAreCounted(t *testing.T) {
	const key = "authorities[0].key"
	spec := "  authorities: [{name: a, key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln}]}]\n"
	check := only(t, compile(t, sigstore.Options{}, head+"  policy: "+regoPolicy("count(input.authorityMatches.a.attestations.scan) == 2")+"\n"+spec))
	for second, want := range map[string]policy.Result{`{"score":5}`: policy.Pass, `{"score":6}`: policy.Fail} {
		if d := decision(t, check, answers(proof{key, vulnType, `{"score":6}`}, proof{key, vulnType, second})); d.Result != want {
			t.Errorf("a second statement %s: %s %+v", second, d.Result, d.Reasons)
		}
	}
}

// rootTexts are trusted roots by their names, whatever they are.
type rootTexts map[string][]byte

func (r rootTexts) TrustedRoot(name string) ([]byte, error) {
	if text, ok := r[name]; ok {
		return text, nil
	}
	return nil, errors.New("unknown")
}

// changedRoot is a trusted root in which members are others.
func changedRoot(t *testing.T, root []byte, change func(map[string]any)) []byte {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal(root, &value); err != nil {
		t.Fatal(err)
	}
	change(value)
	return verifytest.Must(json.Marshal(value))
}

// TestUnusable: where a referenced root is unusable, the policy cannot be evaluated,
// neither alone nor by a judge.
func TestUnusable(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	double := func(v map[string]any) {
		list := v["timestampAuthorities"].([]any)
		v["timestampAuthorities"] = append(list, list[0])
	}
	options := sigstore.Options{
		TrustRoots: rootTexts{
			"good": s.TrustedRoot(), "none": []byte("{"),
			"logless":  changedRoot(t, s.TrustedRoot(), func(v map[string]any) { delete(v, "tlogs") }),
			"clocked":  changedRoot(t, s.TrustedRoot(), double),
			"timeless": changedRoot(t, s.TrustedRoot(), func(v map[string]any) { delete(v, "timestampAuthorities") }),
			"keyless": changedRoot(t, s.TrustedRoot(), func(v map[string]any) {
				v["tlogs"].([]any)[0].(map[string]any)["publicKey"].(map[string]any)["rawBytes"] = "AAAA"
			}),
		},
		Secrets: secrets{"cosign-system/bad": {"any": []byte("x")}}, Lookup: configMaps{"cosign-system/bad": {"k": "predicate: {"}},
	}
	keyless := func(rest string) string {
		return "{keyless: {identities: [{issuer: 'https://issuer.example', subject: ann@example.com}]}, " + rest + "}"
	}
	for _, c := range []struct{ reason, authority, want string }{
		{"a log", keyless("ctlog: {trustRootRef: good}"), "checks"},
		{"a timestamp authority", keyless("rfc3161timestamp: {trustRootRef: good}"), "checks"},
		{"no trusted root", keyless("ctlog: {trustRootRef: none}"), "error"},
		{"a log of a key", "{key: {data: $KEY}, ctlog: {trustRootRef: good}}", "checks"},
		{"no trusted root for a key", "{key: {data: $KEY}, ctlog: {trustRootRef: none}}", "error"},
		{"a root without a log", keyless("ctlog: {trustRootRef: logless}"), "error"},
		{"a root with a log without a key", keyless("ctlog: {trustRootRef: keyless}"), "error"},
		{"a root without timestamp authorities", keyless("rfc3161timestamp: {trustRootRef: timeless}"), "error"},
		{"a root with two of them", keyless("rfc3161timestamp: {trustRootRef: clocked}"), "checks"},
		{"a Secret without a key", "{key: {secretRef: {name: bad}}}", "error"},
		{"a Secret without a key, and a log", "{key: {secretRef: {name: bad}}, ctlog: {trustRootRef: good}}", "error"},
		{"a policy that does not compile", "{key: {data: $KEY}, attestations: [{name: a, predicateType: vuln, policy: {type: cue, configMapRef: {name: bad, key: k}}}]}", "error"},
	} {
		for _, over := range []string{"", "  policy: " + regoPolicy("true") + "\n"} {
			p := compile(t, options, head+over+"  authorities: ["+c.authority+"]\n")
			if got := outcome(plan(t, pod("prod"), "ghcr.io/org/app:v1", p)); got != c.want {
				t.Errorf("%s (%q): %s, want %s", c.reason, over, got, c.want)
			}
		}
	}
}

// TestRootsOfAuthorities: what an authority takes of a root that it names.
func TestRootsOfAuthorities(t *testing.T) {
	const public = "https://rekor.sigstore.dev"
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	options := sigstore.Options{TrustRoots: rootTexts{"corp": s.TrustedRoot()}}
	keyless := func(ref, rest string) string {
		return "{keyless: {" + ref + "identities: [{issuer: 'https://issuer.example', subject: ann@example.com}]}, " + rest + "}"
	}
	for _, c := range []struct {
		reason, authority string
		root, logs        bool
		url               string
	}{
		{"the gateway's own", keyless("", "ctlog: {url: '"+public+"'}"), false, false, ""},
		{"the gateway's own, and a log of it", keyless("", "ctlog: {url: 'https://log.example'}"), false, false, "https://log.example"},
		{"its own", keyless("trustRootRef: corp, ", "ctlog: {url: '"+public+"'}"), true, false, public},
		{"a log beside the gateway's own", keyless("", "ctlog: {trustRootRef: corp, url: '"+public+"'}"), false, true, public},
		{"a log of a key", "{key: {data: $KEY}, ctlog: {trustRootRef: corp}}", true, false, ""},
	} {
		a := authorityOf(t, options, "  authorities: ["+c.authority+"]\n")
		if (len(a.TrustedRoot) > 0) != c.root || (len(a.Log.Root) > 0) != c.logs || a.Log.URL != c.url {
			t.Errorf("%s: a root %t, logs %t, %q", c.reason, len(a.TrustedRoot) > 0, len(a.Log.Root) > 0, a.Log.URL)
		}
	}
	both := strings.ReplaceAll("  authorities: [{key: {data: $BOTH}}]\n", "$BOTH", quoted(t, append(newSignerPEM(t), newSignerPEM(t)...)))
	questions := only(t, compile(t, sigstore.Options{}, head+both)).Questions()
	if len(questions) != 2 || questions[0].Authority.Name == questions[1].Authority.Name {
		t.Errorf("two keys have one name: %+v", questions)
	}
}

func newSignerPEM(t *testing.T) []byte {
	t.Helper()
	return verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})).PublicPEM()
}

// TestTimedOut: a judge with an expired context returns indeterminate.
func TestTimedOut(t *testing.T) {
	check := only(t, compile(t, sigstore.Options{}, head+"  policy: "+regoPolicy("true")+"\n  authorities: [{static: {action: pass}}]\n"))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for ctx, want := range map[context.Context]policy.Result{t.Context(): policy.Pass, over: policy.Indeterminate} {
		if d := check.Judge.Judge(ctx, []policy.Given{{Check: check, Answers: answers()}}).Decisions[0]; d.Result != want {
			t.Errorf("%s %+v, want %s", d.Result, d.Reasons, want)
		}
	}
}
