package imagevalidating_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/set"
)

const cert = "-----BEGIN PUBLIC KEY-----\\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8nXRh950IZbRj8Ra/N9sbqOPZrfM\\n5/KAQN0/KjHcorm/J5yctVd7iEcnessRQjU917hmKO6JWVGHpDguIyakZA==\\n-----END PUBLIC KEY-----\\n"

// minimal is a policy that loads; the tests put one thing wrong into it.
const minimal = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: minimal}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  attestors:
  - name: ours
    cosign: {key: {data: "` + cert + `"}}
  - name: keyless
    cosign: {keyless: {identities: [{issuer: https://issuer.example, subject: ann@example.com}]}}
  attestations:
  - {name: scan, intoto: {type: vuln}}
  - {name: sbom, referrer: {type: sbom/a}}
  validations:
  - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)
`

func compile(text string) (*policy.Policy, error) {
	return newCompiler().Compile([]byte(text), "test.yaml")
}

func TestMinimal(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		for _, kind := range []string{"ImageValidatingPolicy", "NamespacedImageValidatingPolicy"} {
			text := strings.NewReplacer("io/v1", "io/"+version, "kind: Image", "kind: "+strings.TrimSuffix(kind, "ValidatingPolicy")).Replace(minimal)
			text = strings.Replace(text, "kind: NamespacedImage", "kind: NamespacedImage", 1)
			p, err := compile(text)
			if err != nil {
				t.Fatalf("%s %s: %v", version, kind, err)
			}
			namespace := ""
			if kind != "ImageValidatingPolicy" {
				namespace = "default"
			}
			if p.Kind != kind || p.Namespace != namespace || p.FailOpen || p.AuditOnly || p.Broken != nil || len(p.Rules) != 3 {
				t.Errorf("%s %s: %+v", version, kind, p)
			}
			for _, of := range []string{"Pod", "Deployment", "CronJob"} {
				if !slices.ContainsFunc(p.Targets, func(target policy.Target) bool { return target.Kind == of }) {
					t.Errorf("%s %s: no target for a %s: %+v", version, kind, of, p.Targets)
				}
			}
			for _, target := range p.Targets {
				if want := namespace != ""; (len(target.Namespaces) == 1) != want {
					t.Errorf("%s %s: target %+v", version, kind, target)
				}
			}
		}
	}
	text := strings.Replace(minimal, "spec:\n", "spec:\n  failurePolicy: Ignore\n  webhookConfiguration: {timeoutSeconds: 7}\n  validationActions: [Audit, Warn]\n", 1)
	text = strings.Replace(text, "{name: minimal}", "{name: minimal, annotations: {policies.kyverno.io/title: A, policies.kyverno.io/category: B, policies.kyverno.io/severity: high}}", 1)
	p, err := compile(text + "status: {anything: goes}\n")
	if err != nil {
		t.Fatal(err)
	}
	if !p.FailOpen || !p.AuditOnly || p.Timeout != 7*time.Second || p.Title != "A" || p.Category != "B" || p.Severity != "high" {
		t.Errorf("%+v", p)
	}
}

func TestRefused(t *testing.T) {
	type row struct{ reason, old, text, path string }
	add := func(text string) row { return row{"", "spec:\n", "spec:\n" + text + "\n", ""} }
	rows := []row{}
	for _, r := range []struct{ reason, add, path string }{
		{"an unknown field", "  valdations: []", "spec.valdations"},
		{"another case", "  FailurePolicy: Fail", "spec.FailurePolicy"},
		{"an unknown field below", "  evaluation: {mod: JSON}", "spec.evaluation.mod"},
		{"a wrong failure policy", "  failurePolicy: ignore", "spec.failurePolicy"},
		{"a timeout that Kubernetes does not have", "  webhookConfiguration: {timeoutSeconds: 31}", "spec.webhookConfiguration.timeoutSeconds"},
		{"an unknown action", "  validationActions: [Enforce]", "spec.validationActions[0]"},
		{"an unknown mode", "  evaluation: {mode: Envoy}", "spec.evaluation.mode"},
		{"neither at admission nor in scans", "  evaluation: {admission: {enabled: false}, background: {enabled: false}}", "spec.evaluation.admission.enabled"},
		{"an unknown controller", "  autogen: {podControllers: {controllers: [deployment]}}", "spec.autogen.podControllers.controllers[0]"},
		{"an unknown provider", "  credentials: {providers: [gcr]}", "spec.credentials.providers[0]"},
		{"a glob and an expression", "  matchImageReferences: [{glob: a/*, expression: 'true'}]", "spec.matchImageReferences[0]"},
		{"neither", "  matchImageReferences: [{}]", "spec.matchImageReferences[0]"},
		{"a glob that matches nothing", "  matchImageReferences: [{glob: 'https://a.example/*'}]", "spec.matchImageReferences[0].glob"},
		{"a class in a glob", "  matchImageReferences: [{glob: 'a.example/[ab]'}]", "spec.matchImageReferences[0].glob"},
		{"a class before everything", "  matchImageReferences: [{glob: '[ab]*'}]", "spec.matchImageReferences[0].glob"},
		{"braces that do not fit", "  matchImageReferences: [{glob: 'a.example/{a'}]", "spec.matchImageReferences[0].glob"},
		{"braces of which the last do not fit", "  matchImageReferences: [{glob: 'a.example/{a}{b'}]", "spec.matchImageReferences[0].glob"},
		{"braces with an empty alternative", "  matchImageReferences: [{glob: '{a.example/*,}'}]", "spec.matchImageReferences[0].glob"},
		{"an expression that is no bool", "  matchImageReferences: [{expression: ref}]", "spec.matchImageReferences[0].expression"},
		{"a condition without a name", "  matchConditions: [{expression: 'true'}]", "spec.matchConditions[0].name"},
		{"a condition twice", "  matchConditions: [{name: a, expression: 'true'}, {name: a, expression: 'true'}]", "spec.matchConditions[1].name"},
		{"a condition on images", "  matchConditions: [{name: a, expression: images.containers.size() > 0}]", "spec.matchConditions[0].expression"},
		{"a condition that does not compile", "  matchConditions: [{name: a, expression: object.}]", "spec.matchConditions[0].expression"},
		{"a variable twice", "  variables: [{name: a, expression: '1'}, {name: a, expression: '1'}]", "spec.variables[1]"},
		{"a variable that does not compile", "  variables: [{name: a, expression: nothing}]", "spec.variables[0].expression"},
		{"images without a name", "  images: [{expression: '[object.spec.image]'}]", "spec.images[0].name"},
		{"images of a name that is taken", "  images: [{name: containers, expression: '[object.spec.image]'}]", "spec.images[0].name"},
		{"images that are no list", "  images: [{name: a, expression: '1'}]", "spec.images[0].expression"},
		{"an annotation twice", "  auditAnnotations: [{key: a, valueExpression: \"'a'\"}, {key: a, valueExpression: \"'a'\"}]", "spec.auditAnnotations[1].key"},
		{"an annotation that is no text", "  auditAnnotations: [{key: a, valueExpression: '1'}]", "spec.auditAnnotations[0].valueExpression"},
		{"a secret of another form", "  credentials: {secrets: [a/b/c]}", "spec.credentials.secrets[0]"},
		{"a secret without a name", "  credentials: {secrets: [a, '']}", "spec.credentials.secrets[1]"},
		{"a secret of no namespace", "  credentials: {secrets: [/a]}", "spec.credentials.secrets[0]"},
		{"a secret of a namespace without a name", "  credentials: {secrets: [a/]}", "spec.credentials.secrets[0]"},
		{"a condition that asks about signatures", "  matchConditions: [{name: a, expression: \"verifyImageSignatures('a', []) > 0\"}]", "spec.matchConditions[0].expression"},
		{"a variable that reads an undefined attestor", "  auditAnnotations: [{key: a, valueExpression: string(attestors.theirs)}]", "spec.auditAnnotations[0].valueExpression"},
		{"images that read an unknown member", "  images: [{name: a, expression: '[namespaceObject.status.phase]'}]", "spec.images[0].expression"},
	} {
		one := add(r.add)
		one.reason, one.path = r.reason, r.path
		rows = append(rows, one)
	}
	const call = "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
	for _, r := range []struct{ reason, old, text, path string }{
		{"no name", "{name: minimal}", "{}", "metadata.name"},
		{"no rules", "{resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}", "{}", "spec.matchConstraints.resourceRules"},
		{"a resource of no kind", "resources: [pods]", "resources: [podz]", "spec.matchConstraints.resourceRules[0].resources[0]"},
		{"a kind for a resource", "resources: [pods]", "resources: [Pod]", "spec.matchConstraints.resourceRules[0].resources[0]"},
		{"an unknown operation", "operations: [CREATE]", "operations: [create]", "spec.matchConstraints.resourceRules[0].operations[0]"},
		{"no operation", "operations: [CREATE]", "operations: []", "spec.matchConstraints.resourceRules[0].operations"},
		{"an attestor that is not defined", "attestors.ours]", "attestors.their]", "spec.validations[0].expression"},
		{"an attestation that is not defined", call, "images.containers.all(i, verifyAttestationSignatures(i, attestations.scn, [attestors.ours]) > 0)", "spec.validations[0].expression"},
		{"a literal attestation that is not defined", call, "images.containers.all(i, verifyAttestationSignatures(i, 'scn', [attestors.ours]) > 0)", "spec.validations[0].expression"},
		{"a literal payload that is not defined", call, "images.containers.all(i, verifyAttestationSignatures(i, 'scan', [attestors.ours]) > 0 && extractPayload(i, 'scn').a == 1)", "spec.validations[0].expression: names an attestation"},
		{"cosign for a referrer", call, "images.containers.all(i, verifyAttestationSignatures(i, attestations.sbom, [attestors.ours]) > 0)", "spec.validations[0].expression"},
		{"cosign for a referrer, by its name", call, "images.containers.all(i, verifyAttestationSignatures(i, 'sbom', [attestors.ours]) > 0)", "spec.validations[0].expression"},
		{"images that are not defined", "images.containers", "images.container", "spec.validations[0].expression"},
		{"an unknown member of the namespace", call, "namespaceObject.status.phase == 'Active'", "spec.validations[0].expression"},
		{"an expression that is no bool", call, "images", "spec.validations[0].expression"},
		{"an unknown function", call, "verify(images)", "spec.validations[0].expression"},
		{"an unknown reason", call, call + "\n    reason: Because", "spec.validations[0].reason"},
		{"a message that reads an undefined attestor", call, call + "\n    messageExpression: string(attestors.theirs)", "spec.validations[0].messageExpression"},
		{"a message that is no text", call, call + "\n    messageExpression: '1'", "spec.validations[0].messageExpression"},
		{"an attestor twice", "name: keyless", "name: ours", "spec.attestors[1].name"},
		{"another API", "policies.kyverno.io/v1", "policies.kyverno.io/v2", "is no ImageValidatingPolicy"},
		{"another kind", "kind: ImageValidatingPolicy", "kind: ValidatingPolicy", "is no ImageValidatingPolicy"},
	} {
		rows = append(rows, row{r.reason, r.old, r.text, r.path})
	}
	compiler := newCompiler()
	for _, c := range rows {
		text := strings.Replace(minimal, c.old, c.text, 1)
		if text == minimal {
			t.Fatalf("%s: nothing was changed", c.reason)
		}
		if _, err := compiler.Compile([]byte(text), "test.yaml"); err == nil || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v; want %s", c.reason, err, c.path)
		}
	}
}

func TestNothingToDo(t *testing.T) {
	empty := minimal[:strings.Index(minimal, "  validations:")] + "  validations: []\n"
	if _, err := compile(empty); err != nil {
		t.Errorf("a policy that requires and pins: %v", err)
	}
	for configured, does := range map[string]bool{
		"mutateDigest: true, verifyDigest: false, required: false": true, "mutateDigest: false, verifyDigest: true, required: false": true,
		"mutateDigest: false, verifyDigest: false, required: true": true, "mutateDigest: false, verifyDigest: false, required: false": false,
	} {
		if _, err := compile(empty + "  validationConfigurations: {" + configured + "}\n"); (err == nil) != does {
			t.Errorf("%s: %v", configured, err)
		}
	}
}

// TestOperations: at operations that bring no image nothing is evaluated, so that a policy of
// which a validation may fail there is refused.
func TestOperations(t *testing.T) {
	ofObject := edit(minimal, "  validations:\n", "  validations:\n  - expression: oldObject.metadata.name != 'a'\n")
	some := edit(minimal, "images.containers.all(", "images.containers.exists(")
	for _, c := range []struct{ reason, text, operations, want string }{
		{"images alone", minimal, "[CREATE, UPDATE]", ""},
		{"images alone, which hold without one", minimal, "[CREATE, UPDATE, DELETE, CONNECT]", ""},
		{"and by a pattern", minimal, "['*']", ""},
		{"the object", ofObject, "[CREATE, UPDATE]", ""},
		{"the object at a deletion", ofObject, "[CREATE, UPDATE, DELETE]", "spec.matchConstraints.resourceRules[0].operations[2]: DELETE"},
		{"the object at a connection", ofObject, "[CONNECT, CREATE]", "spec.matchConstraints.resourceRules[0].operations[0]: CONNECT"},
		{"the object, by a pattern", ofObject, "['*']", "spec.matchConstraints.resourceRules[0].operations[0]: *"},
		{"an image that must be there", some, "[UPDATE, DELETE]", "spec.matchConstraints.resourceRules[0].operations[1]: DELETE"},
		{"and its twin", some, "[UPDATE]", ""},
		{"deletions alone", minimal, "[DELETE]", "spec.matchConstraints.resourceRules: are about neither CREATE nor UPDATE"},
		{"connections alone", minimal, "[CONNECT, DELETE]", "spec.matchConstraints.resourceRules: are about neither CREATE nor UPDATE"},
	} {
		_, err := compile(edit(c.text, "operations: [CREATE]", "operations: "+c.operations))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestBounds: of each list as many as there may be, and one more.
func TestBounds(t *testing.T) {
	list := func(n int, entry func(i int) string) string {
		var all []string
		for i := range n {
			all = append(all, entry(i))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	same := func(text string) func(int) string { return func(int) string { return text } }
	validations := "\n  - expression: images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)\n"
	for _, c := range []struct {
		reason string
		most   int
		text   func(n int) string
		want   string
	}{
		{"secrets", 200, func(n int) string { return "  credentials: {secrets: " + list(n, same("a")) + "}" }, "spec.credentials: more than 200"},
		{"providers", 200, func(n int) string { return "  credentials: {providers: " + list(n, same("default")) + "}" }, "spec.credentials: more than 200"},
		{"images", 200, func(n int) string {
			return "  images: " + list(n, func(i int) string { return fmt.Sprintf("{name: a%d, expression: '[object.metadata.name]'}", i) })
		}, "spec.images: 201 are more than 200"},
		{"references", 200, func(n int) string { return "  matchImageReferences: " + list(n, same("{glob: 'a.example/*'}")) }, "spec.matchImageReferences: 201 are more than 200"},
		{"the length of a glob", 1024, func(n int) string {
			return "  matchImageReferences: [{glob: 'a.example/*" + strings.Repeat("a", n-11) + "'}]"
		}, "1025 bytes are more than 1024"},
		{"the alternatives of a glob", 64, func(n int) string {
			return "  matchImageReferences: [{glob: 'a.example/{a" + strings.Repeat(",a", n-1) + "}'}]"
		}, "more than 64 globs"},
		{"the alternatives of one of a glob's alternatives", 64, func(n int) string {
			return "  matchImageReferences: [{glob: 'a.example/{b}{a" + strings.Repeat(",a", n-1) + "}'}]"
		}, "more than 64 globs"},
	} {
		for _, n := range []int{c.most, c.most + 1} {
			_, err := compile(edit(minimal, "spec:\n", "spec:\n"+c.text(n)+"\n"))
			if n == c.most && err != nil || n > c.most && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %d: %.300v", c.reason, n, err)
			}
		}
	}
	for n, want := range map[int]string{200: "", 201: "spec.validations: 201 are more than 200"} {
		_, err := compile(edit(minimal, validations, "\n"+strings.Repeat("  - expression: images.containers.size() > 0\n", n)))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d validations: %.300v", n, err)
		}
	}
}

// TestRecognises: versions and kinds that are another dialect's are left to it.
func TestRecognises(t *testing.T) {
	for _, c := range []struct {
		version, kind     string
		policy, exception bool
	}{
		{"policies.kyverno.io/v1", "ImageValidatingPolicy", true, false},
		{"policies.kyverno.io/v1alpha1", "NamespacedImageValidatingPolicy", true, false},
		{"policies.kyverno.io/v1beta1", "PolicyException", false, true},
		{"policies.kyverno.io/v1", "ValidatingPolicy", false, false},
		{"kyverno.io/v1", "ImageValidatingPolicy", false, false},
		{"kyverno.io/v2", "PolicyException", false, false},
	} {
		policies, exceptions := &imagevalidating.Compiler{}, imagevalidating.Exceptions{}
		if policies.Recognises(c.version, c.kind) != c.policy {
			t.Errorf("%s %s: a policy", c.version, c.kind)
		}
		if imagevalidating.RecognisesException(c.version, c.kind) != c.exception || exceptions.Recognises(c.version, c.kind) != c.exception {
			t.Errorf("%s %s: an exception", c.version, c.kind)
		}
	}
}

func TestNamespacedReach(t *testing.T) {
	namespaced := strings.Replace(minimal, "kind: Image", "kind: NamespacedImage", 1)
	for _, change := range []func(string) string{
		func(text string) string {
			return edit(text, "spec:\n", "spec:\n  matchConditions: [{name: a, expression: \"http.Get('https://a.example').a == 1\"}]\n")
		},
		func(text string) string {
			return edit(text, "subject: ann@example.com", "subjectExpression: \"image + string(http.Get('https://a.example').a)\"")
		},
	} {
		if _, err := compile(change(minimal)); err != nil {
			t.Error(err)
		}
		if _, err := compile(change(namespaced)); err == nil || !strings.Contains(err.Error(), "'http'") {
			t.Errorf("a policy of a namespace reaches out: %v", err)
		}
	}
	for _, expression := range []string{`http.Get("https://a.example").a == 1`, `globalContext.Get("a", "") != null`} {
		change := func(text string) string {
			return strings.Replace(text, "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)", "'"+expression+"'", 1)
		}
		if _, err := compile(change(minimal)); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
		if _, err := compile(change(namespaced)); err == nil {
			t.Errorf("%s: a policy of a namespace reaches out", expression)
		}
	}
	if _, err := compile(strings.Replace(namespaced, "spec:\n", "spec:\n  credentials: {secrets: [other/a]}\n", 1)); err == nil {
		t.Error("a policy of a namespace reads another's secret")
	}
}

// TestErrorsHaveAPath: an error names the field.
func TestErrorsHaveAPath(t *testing.T) {
	_, err := compile(strings.Replace(minimal, "spec:\n", "spec:\n  failurePolicy: no\n", 1))
	field, ok := errors.AsType[*kyvernocel.FieldError](err)
	if !ok || field.Path != "spec.failurePolicy" || errors.Unwrap(field) == nil {
		t.Errorf("%v", err)
	}
}

func TestIgnoredIsDocumented(t *testing.T) {
	for _, f := range imagevalidating.Ignored() {
		if f.Path == "" || f.Reason == "" {
			t.Errorf("%+v", f)
		}
	}
	if !slices.ContainsFunc(imagevalidating.Ignored(), func(f kyvernocel.IgnoredField) bool { return f.Path == "status" }) {
		t.Error("status is ignored")
	}
}

// FuzzCompile: a document that compiles can be evaluated, and any other one is a broken
// policy or no document at all.
func FuzzCompile(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(strings.Replace(minimal, "spec:\n", "spec:\n  images: [{name: a, expression: 'object.spec.?b.orValue([]).map(c, c.image)'}]\n", 1)))
	f.Add([]byte("{"))
	dialect := newCompiler()
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := dialect.Compile(text, "fuzz")
		if err != nil {
			p = dialect.Broken(text, "fuzz", err)
			if p == nil {
				return
			}
		}
		set, err := set.New(p)
		if err != nil {
			return // without a name
		}
		subject := &policy.Subject{Object: policy.ContentOf(map[string]any{"spec": map[string]any{}}), Version: "v1", Kind: "Pod", Operation: "CREATE", Namespace: "default"}
		made := set.Plan(t.Context(), subject, func([]policy.Extractor) ([]policy.Image, error) { return nil, nil })
		for _, r := range made.Results {
			if r.Judge != nil {
				r.Judge.Judge(t.Context(), nil)
			}
		}
	})
}

func Example() {
	p, err := compile(minimal)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range p.Rules {
		fmt.Println(p.ID(), "rule", r.Name())
	}
	// Output:
	// ImageValidatingPolicy/minimal rule minimal
	// ImageValidatingPolicy/minimal rule autogen-minimal
	// ImageValidatingPolicy/minimal rule autogen-cronjobs-minimal
}

// TestUndefinedFields: a field that no matched kind has is refused with its path, wherever an
// expression reads it.
func TestUndefinedFields(t *testing.T) {
	const bad = "object.spec.hostNetwrk"
	for _, c := range []struct{ reason, text, want string }{
		{"a field", minimal + "  matchConditions: [{name: a, expression: object.spec.hostNetwork != true}]\n", ""},
		{"in a condition", minimal + "  matchConditions: [{name: a, expression: " + bad + " != true}]\n", "spec.matchConditions[0].expression"},
		{"in a variable", minimal + "  variables: [{name: a, expression: " + bad + "}]\n", "spec.variables[0].expression"},
		{"in a validation", minimal + "  - expression: " + bad + " != true\n", "spec.validations[1].expression"},
		{"in a message", minimal + "  - {expression: 'true', messageExpression: string(" + bad + ")}\n", "spec.validations[1].messageExpression"},
		{"in an annotation", minimal + "  auditAnnotations: [{key: a, valueExpression: string(" + bad + ")}]\n", "spec.auditAnnotations[0].valueExpression"},
		{"in an extractor", strings.Replace(minimal, "spec:\n", "spec:\n  images: [{name: a, expression: '[string("+bad+")]'}]\n", 1), "spec.images[0].expression"},
		{"in an extractor that takes it for empty", strings.Replace(minimal, "spec:\n", "spec:\n  images: [{name: a, expression: 'object.spec.?sidecars.orValue([]).map(c, c.image)'}]\n", 1), "spec.images[0].expression"},
		{"a field in an extractor", strings.Replace(minimal, "spec:\n", "spec:\n  images: [{name: a, expression: 'object.spec.?initContainers.orValue([]).map(c, c.image)'}]\n", 1), ""},
		{"of a namespace's policy", strings.Replace(minimal, "kind: Image", "kind: NamespacedImage", 1) + "  matchConditions: [{name: a, expression: " + bad + " != true}]\n", "spec.matchConditions[0].expression"},
		{"of documents", strings.Replace(minimal, "spec:\n", "spec:\n  evaluation: {mode: JSON}\n", 1) + "  variables: [{name: a, expression: " + bad + "}]\n", ""},
	} {
		_, err := compile(c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want+": undefined field")) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}
