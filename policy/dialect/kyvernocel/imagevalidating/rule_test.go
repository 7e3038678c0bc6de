package imagevalidating_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

func edit(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		changed := strings.Replace(text, pairs[i], pairs[i+1], 1)
		if changed == text {
			panic("nothing was changed: " + pairs[i])
		}
		text = changed
	}
	return text
}

func TestMatching(t *testing.T) {
	h := newEnv(t)
	bad := h.signed(t, "bad").Name
	spec := func(text string) string { return edit(with(allSigned), "spec:\n", "spec:\n"+text+"\n") }
	prod := object{images: []string{bad}, labels: map[string]string{"env": "prod"}}
	dev := object{images: []string{bad}, labels: map[string]string{"env": "dev"}}
	for _, c := range []struct {
		reason, text string
		object       object
		answer       gate.Result
		word         string
	}{
		{"everything", with(allSigned), prod, gate.Deny, "unsigned"},
		{"another image", edit(with(allSigned), "HOST/org/*", "other.example/*"), prod, gate.Unchecked, ""},
		{"an alternative", edit(with(allSigned), "glob: HOST/org/*", "glob: '{other.example,HOST}/**'"), prod, gate.Deny, "unsigned"},
		{"an expression", edit(with(allSigned), "glob: HOST/org/*", "expression: ref.endsWith(':1')"), prod, gate.Deny, "unsigned"},
		{"an expression that does not hold", edit(with(allSigned), "glob: HOST/org/*", "expression: ref.endsWith(':2')"), prod, gate.Unchecked, ""},
		{"an expression that fails", edit(with(allSigned), "glob: HOST/org/*", "expression: ref.split('#')[1] == ''"), prod, gate.Error, "index out of bounds"},
		{"a condition that holds", spec("  matchConditions: [{name: a, expression: object.metadata.labels.env == 'prod'}]"), prod, gate.Deny, "unsigned"},
		{"a condition that does not", spec("  matchConditions: [{name: a, expression: object.metadata.labels.env == 'prod'}]"), dev, gate.Unchecked, ""},
		{"a condition that fails", spec("  matchConditions: [{name: a, expression: object.metadata.labels.zone == 'a'}]"), dev, gate.Error, "no such key"},
		{"one that fails and one that does not hold", spec("  matchConditions: [{name: a, expression: object.metadata.labels.zone == 'a'}, {name: b, expression: object.metadata.labels.env == 'prod'}]"), dev, gate.Unchecked, ""},
		{"an object selector", edit(with(allSigned), "matchConstraints:\n", "matchConstraints:\n    objectSelector: {matchLabels: {env: prod}}\n"), prod, gate.Deny, "unsigned"},
		{"that selects another", edit(with(allSigned), "matchConstraints:\n", "matchConstraints:\n    objectSelector: {matchLabels: {env: prod}}\n"), dev, gate.Unchecked, ""},
		{"a namespace selector, and no namespace known", edit(with(allSigned), "matchConstraints:\n", "matchConstraints:\n    namespaceSelector: {matchLabels: {env: prod}}\n"), prod, gate.Error, "not known"},
		{"a name", edit(with(allSigned), "resources: [pods]", "resources: [pods], resourceNames: [test]"), prod, gate.Deny, "unsigned"},
		{"another name", edit(with(allSigned), "resources: [pods]", "resources: [pods], resourceNames: [other]"), prod, gate.Unchecked, ""},
		{"excluded", edit(with(allSigned), "matchConstraints:\n", "matchConstraints:\n    excludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], resourceNames: [test]}]\n"), prod, gate.Unchecked, ""},
		{"another operation", edit(with(allSigned), "operations: [CREATE, UPDATE]", "operations: [UPDATE]"), prod, gate.Unchecked, ""},
		{"audit", spec("  validationActions: [Audit]"), prod, gate.Allow, "unsigned"},
		{"warn", spec("  validationActions: [Warn, Audit]"), prod, gate.Allow, "unsigned"},
		{"deny beside audit", spec("  validationActions: [Audit, Deny]"), prod, gate.Deny, "unsigned"},
		{"not at admission, which this is not", spec("  evaluation: {admission: {enabled: false}}"), prod, gate.Deny, "unsigned"},
		{"documents of another kind", spec("  evaluation: {mode: JSON}"), prod, gate.Unchecked, "no Kubernetes objects"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, c.object.request(t), c.text), c.reason, c.answer, c.word)
		})
	}
	t.Run("at admission", func(t *testing.T) {
		request := prod.request(t)
		request.Subject.User.Name = "ann"
		expect(t, h.decide(t, request, spec("  evaluation: {admission: {enabled: false}}")), "asked at admission", gate.Unchecked, "not asked at admission")
		if p := h.policy(t, spec("  evaluation: {admission: {enabled: false}}")); len(p.Targets) > 0 {
			t.Errorf("the API server is to ask about %v", p.Targets)
		}
	})
}

func TestControllers(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	labelled := edit(with(allSigned), "spec:\n", "spec:\n  matchConditions: [{name: prod, expression: has(object.metadata.labels) && object.metadata.labels.env == 'prod'}]\n")
	some := edit(labelled, "spec:\n", "spec:\n  autogen: {podControllers: {controllers: [deployments]}}\n")
	none := edit(labelled, "spec:\n", "spec:\n  autogen: {podControllers: {controllers: []}}\n")
	prod := map[string]string{"env": "prod"}
	for _, c := range []struct {
		reason, text string
		object       object
		answer       gate.Result
	}{
		{"a signed deployment", labelled, object{kind: "Deployment", images: []string{good}, labels: prod}, gate.Allow},
		{"an unsigned deployment", labelled, object{kind: "Deployment", images: []string{bad}, labels: prod}, gate.Deny},
		{"a template with another label", labelled, object{kind: "Deployment", images: []string{bad}, labels: map[string]string{"env": "dev"}}, gate.Unchecked},
		{"a signed cron job", labelled, object{kind: "CronJob", images: []string{good}, labels: prod}, gate.Allow},
		{"an unsigned cron job", labelled, object{kind: "CronJob", images: []string{bad}, labels: prod}, gate.Deny},
		{"a stateful set that is not named", some, object{kind: "StatefulSet", images: []string{bad}, labels: prod}, gate.Unchecked},
		{"a deployment that is", some, object{kind: "Deployment", images: []string{bad}, labels: prod}, gate.Deny},
		{"an unsigned deployment, with ephemeral containers", edit(labelled, "[pods]", "[pods, pods/ephemeralcontainers]"), object{kind: "Deployment", images: []string{bad}, labels: prod}, gate.Unchecked},
		{"a pod of it, with ephemeral containers", edit(labelled, "[pods]", "[pods, pods/ephemeralcontainers]"), object{kind: "Pod", images: []string{bad}, labels: prod}, gate.Deny},
		{"a signed pod, with ephemeral containers", edit(labelled, "[pods]", "[pods, pods/ephemeralcontainers]"), object{kind: "Pod", images: []string{good}, labels: prod}, gate.Allow},
		{"an unsigned deployment, with another subresource", edit(labelled, "[pods]", "[pods, pods/exec]"), object{kind: "Deployment", images: []string{bad}, labels: prod}, gate.Unchecked},
		{"no controllers", none, object{kind: "Deployment", images: []string{bad}, labels: prod}, gate.Unchecked},
		{"and its pod", none, object{images: []string{bad}, labels: prod}, gate.Deny},
		{"a selector keeps from generating", edit(with(allSigned), "matchConstraints:\n", "matchConstraints:\n    objectSelector: {matchLabels: {env: prod}}\n"), object{kind: "Deployment", images: []string{bad}, labels: prod}, gate.Unchecked},
		{"the object's own text", with("object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)"), object{kind: "Deployment", images: []string{good}}, gate.Allow},
		{"and its twin", with("object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)"), object{kind: "Deployment", images: []string{bad}}, gate.Deny},
		{"name and namespace are the object's", with("object.metadata.name == 'test' && object.metadata.namespace == 'default' && " + allSigned), object{kind: "CronJob", images: []string{good}}, gate.Allow},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, c.object.request(t), c.text), c.reason, c.answer, "")
		})
	}
}

func TestExtractors(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	steps := func(images ...string) map[string]any {
		var list []any
		for _, name := range images {
			list = append(list, map[string]any{"name": "s", "image": name})
		}
		return map[string]any{"steps": list}
	}
	const wants = "images.steps.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
	extract := func(expression string) string {
		return edit(ofAnyFields(with(wants)), "spec:\n", "spec:\n  images: [{name: steps, expression: '"+expression+"'}]\n")
	}
	for _, c := range []struct {
		reason, text string
		object       object
		answer       gate.Result
		word         string
	}{
		{"a list of objects", extract("object.spec.?steps.orValue([]).map(s, s.image)"), object{spec: steps(good)}, gate.Allow, ""},
		{"not signed", extract("object.spec.?steps.orValue([]).map(s, s.image)"), object{spec: steps(good, bad)}, gate.Deny, "unsigned"},
		{"not there", extract("object.spec.?steps.orValue([]).map(s, s.image)"), object{images: []string{good}}, gate.Deny, "unverified"},
		{"containers beside them", extract("object.spec.?steps.orValue([]).map(s, s.image)"), object{images: []string{bad}, spec: steps(good)}, gate.Deny, "unverified"},
		{"one text", extract("[object.spec.tool]"), object{spec: map[string]any{"tool": good}}, gate.Allow, ""},
		{"and its twin", extract("[object.spec.tool]"), object{spec: map[string]any{"tool": bad}}, gate.Deny, "unsigned"},
		{"containers by another name", extract("object.spec.containers.map(c, c.image)"), object{images: []string{good}}, gate.Allow, ""},
		{"and their twin", extract("object.spec.containers.map(c, c.image)"), object{images: []string{bad}}, gate.Deny, "unsigned"},
		{"made up", extract("object.spec.containers.map(c, c.image + \"-debug\")"), object{images: []string{good}}, gate.Error, "no place"},
		{"that fails", extract("object.spec.missing.map(c, c.image)"), object{images: []string{good}}, gate.Error, "no such key"},
		{"in a template", edit(extract("object.spec.?initContainers.orValue([]).map(s, s.image)"), "[v1, v9]", "[v1]"), object{kind: "Deployment", spec: map[string]any{"initContainers": steps(bad)["steps"]}}, gate.Deny, "unsigned"},
		{"in a template, and signed", edit(extract("object.spec.?initContainers.orValue([]).map(s, s.image)"), "[v1, v9]", "[v1]"), object{kind: "Deployment", spec: map[string]any{"initContainers": steps(good)["steps"]}}, gate.Allow, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, c.object.request(t), c.text), c.reason, c.answer, c.word)
		})
	}
}

const exception = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: leave, namespace: default}
spec:
  policyRefs: [{name: signed, kind: ImageValidatingPolicy}]
`

func TestExceptions(t *testing.T) {
	h := newEnv(t)
	good, bad, worse := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name, h.signed(t, "worse").Name
	text := with(allSigned)
	for _, c := range []struct {
		reason, exception string
		images            []string
		answer            gate.Result
	}{
		{"the whole object", exception, []string{bad}, gate.Allow},
		{"another policy", edit(exception, "name: signed", "name: other"), []string{bad}, gate.Deny},
		{"another kind of policy of the same name", edit(exception, "kind: ImageV", "kind: V"), []string{bad}, gate.Deny},
		{"its image", exception + "  images: [HOST/org/bad:1]\n", []string{bad, good}, gate.Allow},
		{"another image", exception + "  images: [HOST/org/bad:1]\n", []string{bad, worse}, gate.Deny},
		{"its images", exception + "  images: ['HOST/org/*']\n", []string{bad, worse}, gate.Allow},
		{"a condition that holds", exception + "  matchConditions: [{name: a, expression: object.metadata.name == 'test'}]\n", []string{bad}, gate.Allow},
		{"a condition that does not", exception + "  matchConditions: [{name: a, expression: object.metadata.name == 'other'}]\n", []string{bad}, gate.Deny},
		{"a condition that fails", exception + "  matchConditions: [{name: a, expression: object.metadata.missing == 'other'}]\n", []string{bad}, gate.Deny},
		{"ended", exception + "  expiresAt: '2020-01-01T00:00:00Z'\n", []string{bad}, gate.Deny},
		{"not ended", exception + "  expiresAt: '" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + "'\n", []string{bad}, gate.Allow},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, pod(t, c.images...), text, c.exception), c.reason, c.answer, "")
		})
	}
	t.Run("controllers too", func(t *testing.T) {
		expect(t, h.decide(t, object{kind: "Deployment", images: []string{bad}}.request(t), text, exception), "follows", gate.Allow, "")
	})
	namespaced := edit(text, "kind: Image", "kind: NamespacedImage", "{name: signed}", "{name: signed, namespace: default}")
	t.Run("a policy of its namespace", func(t *testing.T) {
		expect(t, h.decide(t, pod(t, bad), namespaced, edit(exception, "kind: Image", "kind: NamespacedImage")), "excepted", gate.Allow, "")
		expect(t, h.decide(t, pod(t, bad), namespaced, edit(exception, "kind: Image", "kind: NamespacedImage", "namespace: default", "namespace: other")), "of another namespace", gate.Deny, "")
		expect(t, h.decide(t, pod(t, bad), namespaced, exception), "the kind of the cluster", gate.Deny, "")
	})
}

func TestExceptionsRefused(t *testing.T) {
	for reason, c := range map[string]struct{ text, path string }{
		"an unknown field":          {exception + "  image: [a]\n", "spec.image"},
		"no policy":                 {edit(exception, "[{name: signed, kind: ImageValidatingPolicy}]", "[]"), "spec.policyRefs"},
		"no name":                   {edit(exception, "name: signed, ", ""), "spec.policyRefs[0].name"},
		"an unknown kind":           {edit(exception, "kind: Image", "kind: Img"), "spec.policyRefs[0].kind"},
		"a pattern":                 {edit(exception, "name: signed", "name: '*'"), "spec.policyRefs[0].name"},
		"values that are not read":  {exception + "  allowedValues: [a]\n", "spec.allowedValues"},
		"values beside images":      {edit(exception, "Policy}]", "Policy}, {name: a, kind: ValidatingPolicy}]") + "  allowedValues: [a]\n", "spec.allowedValues"},
		"images of both":            {edit(exception, "Policy}]", "Policy}, {name: a, kind: ValidatingPolicy}]") + "  images: ['nginx:*']\n", "spec.images[0]"},
		"another mode":              {exception + "  evaluationMode: Envoy\n", "spec.evaluationMode"},
		"an unknown result":         {exception + "  reportResult: fail\n", "spec.reportResult"},
		"an image without registry": {exception + "  images: ['nginx:*']\n", "spec.images[0]"},
		"an image without tag":      {exception + "  images: ['a.example/b?c']\n", ""},
		"a time that is none":       {exception + "  expiresAt: soon\n", "expiresAt"},
		"images that are none":      {exception + "  images: []\n", "spec.images: is empty"},
		"images that are null":      {exception + "  images:\n", "spec.images: is empty"},
		"values that are none":      {edit(exception, "kind: ImageV", "kind: V") + "  allowedValues: []\n", "spec.allowedValues: is empty"},
		"conditions that are none":  {exception + "  matchConditions: []\n", "spec.matchConditions: is empty"},
		"conditions that are null":  {exception + "  matchConditions:\n", "spec.matchConditions: is empty"},
		"a condition on images":     {exception + "  matchConditions: [{name: a, expression: images.containers.size() > 0}]\n", "spec.matchConditions[0].expression"},
	} {
		_, err := newCompiler().CompileException([]byte(c.text), "test.yaml")
		if c.path != "" && (err == nil || !strings.Contains(err.Error(), c.path)) {
			t.Errorf("%s: %v; want %s", reason, err, c.path)
		}
	}
	e, err := newCompiler().CompileException([]byte(edit(exception, "kind: ImageV", "kind: V")+"  allowedValues: [a]\n  images: ['nginx:*']\n"), "test.yaml")
	if err != nil || len(e.PodSecurity) != 1 || e.PodSecurity[0].Images[0] != "nginx:*" || e.PodSecurity[0].Values[0] != "a" {
		t.Errorf("the exception for expressions of another kind of policy: %+v, %v", e, err)
	}
	for result, asPass := range map[string]bool{"pass": true, "skip": false, "''": false} {
		e, err := newCompiler().CompileException([]byte(exception+"  reportResult: "+result+"\n  properties: {reason: a}\n"), "test.yaml")
		if err != nil || e.AsPass != asPass {
			t.Errorf("reportResult %s: %+v, %v", result, e, err)
		}
	}
}

func TestBroken(t *testing.T) {
	h := newEnv(t)
	good := h.signed(t, "good", h.key).Name
	dialect := newCompiler()
	broken := func(text string) *policy.Policy {
		_, err := dialect.Compile([]byte(h.fill(text)), "test.yaml")
		if err == nil {
			t.Fatal("it compiles")
		}
		return dialect.Broken([]byte(h.fill(text)), "test.yaml", err)
	}
	ask := func(p *policy.Policy, o object) gate.Outcome {
		return h.gate(t, testkit.Must(set.New(p))(t)).Decide(t.Context(), o.request(t))
	}
	misspelt := edit(with(allSigned), "  validations:", "  valdations:")
	for _, c := range []struct {
		reason, text string
		object       object
		answer       gate.Result
	}{
		{"a kind that it matches", misspelt, object{images: []string{good}}, gate.Error},
		{"and its controllers", misspelt, object{kind: "Deployment", images: []string{good}}, gate.Error},
		{"and nothing else", edit(misspelt, "[pods]", "[pods, nothings]"), object{kind: "Deployment", images: []string{good}}, gate.Unchecked},
		{"a match that cannot be read", edit(misspelt, "matchConstraints:", "matchConstraint:"), object{kind: "CronJob", images: []string{good}}, gate.Error},
		{"audit", edit(misspelt, "spec:\n", "spec:\n  validationActions: [Audit]\n"), object{images: []string{good}}, gate.Allow},
		{"one action that is not known", edit(misspelt, "spec:\n", "spec:\n  validationActions: [Audit, Dny]\n"), object{images: []string{good}}, gate.Error},
		{"of another mode", edit(misspelt, "spec:\n", "spec:\n  evaluation: {mode: JSON}\n"), object{images: []string{good}}, gate.Unchecked},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if out := ask(broken(c.text), c.object); out.Result != c.answer {
				t.Errorf("%s, want %s: %s", out.Result, c.answer, words(out))
			}
		})
	}
	if dialect.Broken([]byte(":"), "test", errors.New("x")) != nil && dialect.Broken([]byte("{"), "test", errors.New("x")) != nil {
		t.Error("no document")
	}
	p := broken(edit(misspelt, "kind: Image", "kind: NamespacedImage"))
	if p.Namespace != "default" || p.Broken == nil {
		t.Errorf("%+v", p)
	}
	rule := broken(edit(misspelt, "operations: [CREATE, UPDATE]", "operations: ['*']")).Rules[0].(policy.Selective)
	if patterns, known := rule.ImagePatterns(); known {
		t.Errorf("which images are meant is known: %v", patterns)
	}
	for operation, want := range map[string]bool{"UPDATE": true, "DELETE": false} {
		s := &policy.Subject{Version: "v1", Kind: "Pod", Operation: operation, Namespace: "default"}
		if plan, err := rule.Plan(t.Context(), s, nil); (err != nil) != want || (plan.Skip == "nothing will run after a deletion") == want {
			t.Errorf("%s: %+v, %v", operation, plan, err)
		}
	}
}

func TestBare(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	for _, c := range []struct {
		reason, text, image, namespace string
		answer                         gate.Result
		word                           string
	}{
		{"images are enough", with(allSigned), good, "default", gate.Allow, ""},
		{"and its twin", with(allSigned), bad, "default", gate.Deny, "unsigned"},
		{"the object is read", with("object.metadata.name == 'test' && " + allSigned), good, "default", gate.Error, "only images"},
		{"in a condition", edit(with(allSigned), "spec:\n", "spec:\n  matchConditions: [{name: a, expression: object.metadata.name == 'test'}]\n"), good, "default", gate.Error, "only images"},
		{"the namespace is known", with("request.namespace == 'default' && " + allSigned), good, "default", gate.Allow, ""},
		{"the namespace is not", with("request.namespace == 'default' && " + allSigned), good, "", gate.Error, "only images"},
		{"the requester is not", with("request.userInfo.username == 'ann' || " + allSigned), good, "default", gate.Error, "only images"},
		{"a name is asked for", edit(with(allSigned), "resources: [pods]", "resources: [pods], resourceNames: [test]"), good, "default", gate.Error, "only images"},
		{"a policy of the namespace", edit(with(allSigned), "kind: Image", "kind: NamespacedImage"), bad, "default", gate.Deny, "unsigned"},
		{"of another namespace", edit(with(allSigned), "kind: Image", "kind: NamespacedImage"), bad, "other", gate.Unchecked, ""},
		{"and of an unknown one", edit(with(allSigned), "kind: Image", "kind: NamespacedImage"), bad, "", gate.Error, "only images"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			request := testkit.Must(gate.ForImages(c.namespace, "", []string{c.image}))(t)
			expect(t, h.decide(t, request, c.text), c.reason, c.answer, c.word)
		})
	}
}

func TestObject(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	labelled := edit(with(allSigned), "spec:\n", "spec:\n  variables: [{name: env, expression: 'string(object.metadata.?labels.env.orValue(\"none\"))'}]\n"+
		"  auditAnnotations: [{key: env, valueExpression: variables.env}, {key: none, valueExpression: \"''\"}]\n") +
		"  - expression: variables.env == 'prod'\n    messageExpression: \"'want prod and found ' + variables.env\"\n"
	prod := map[string]string{"env": "prod"}
	expect(t, h.decide(t, object{images: []string{good}, labels: prod}.request(t), labelled), "both hold", gate.Allow, "")
	expect(t, h.decide(t, pod(t, good), labelled), "the object lacks a label", gate.Deny, "want prod and found none")
	expect(t, h.decide(t, object{images: []string{bad}, labels: prod}.request(t), labelled), "the image lacks a signature", gate.Deny, "unsigned")
	expect(t, h.decide(t, pod(t, "other.example/a:1"), labelled), "an object without an image that is meant", gate.Deny, "want prod and found none")
	out := h.decide(t, object{images: []string{good}, labels: prod}.request(t), labelled)
	if len(out.AuditAnnotations) != 1 || out.AuditAnnotations["ImageValidatingPolicy/signed/env"] != "prod" {
		t.Errorf("audit annotations: %v", out.AuditAnnotations)
	}
	silent := edit(with(allSigned), "spec:\n", "spec:\n  auditAnnotations: [{key: env, valueExpression: string(object.metadata.labels.env)}]\n")
	expect(t, h.decide(t, object{images: []string{good}, labels: prod}.request(t), silent), "an annotation", gate.Allow, "")
	expect(t, h.decide(t, pod(t, good), silent), "an annotation that cannot be evaluated", gate.Error, "spec.auditAnnotations[0].valueExpression")
	faulty := edit(labelled, "\"'want prod and found ' + variables.env\"", "string(dyn(object).missing)")
	expect(t, h.decide(t, pod(t, good), faulty), "a message that fails", gate.Deny, "the validation does not hold")
}

// TestCounting: a policy that counts its images cannot be evaded by images that it
// does not mean.
func TestCounting(t *testing.T) {
	h := newEnv(t)
	good := h.signed(t, "good", h.key).Name
	text := with("images.containers.size() == object.spec.containers.size() && " + allSigned)
	expect(t, h.decide(t, pod(t, good), text), "all from here", gate.Allow, "")
	expect(t, h.decide(t, pod(t, "other.example/a:1"), text), "none from here", gate.Deny, "the message")
	expect(t, h.decide(t, pod(t, good, "other.example/a:1"), text), "one from elsewhere", gate.Deny, "the message")
}

// endless answers nothing before its context ends.
func TestEndless(t *testing.T) {
	h := newEnv(t)
	good := h.signed(t, "good", h.key).Name
	deep := "range.all(a, range.all(b, range.all(c, range.all(d, range.all(e, range.all(f, range.all(g, a + b + c + d + e + f + g >= 0)))))))"
	text := with(strings.ReplaceAll(deep, "range", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]") + " && " + allSigned)
	expect(t, h.decide(t, pod(t, good), text), "it costs too much", gate.Error, "bound")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rule := h.policy(t, with(allSigned)).Rules[0]
	ref := image.MustParse(good)
	plan := testkit.Must(rule.Plan(t.Context(), &policy.Subject{Object: policy.ContentOf(map[string]any{}), Kind: "Pod", Version: "v1", Operation: "CREATE"}, []policy.Image{{Role: "container", Ref: ref}}))(t)
	judged := plan.Judge.Judge(ctx, []policy.Given{{Check: &plan.Checks[0], Answers: func(policy.Question) policy.Answer { return policy.Answer{} }}})
	if judged.Decisions[0].Result != policy.Indeterminate {
		t.Errorf("out of time: %+v", judged.Decisions[0])
	}
}

// TestUnresolved: a digest that could not be resolved is not reported as missing.
func TestUnresolved(t *testing.T) {
	h := newEnv(t)
	down := &image.Error{Kind: image.Unavailable, Op: "resolve", On: "a", Err: errors.New("down")}
	for _, c := range []struct {
		reason, expression string
		want               policy.Result
	}{
		{"a digest", "images.containers.all(i, i.contains('@sha256:'))", policy.Indeterminate},
		{"a digest in the object", "object.spec.containers.all(c, c.image.contains('@sha256:'))", policy.Indeterminate},
		{"what no digest changes", "images.containers.all(i, i.startsWith('other.example/'))", policy.Fail},
		{"and what holds", "images.containers.all(i, i.startsWith('127.0.0.1'))", policy.Pass},
	} {
		rule := h.policy(t, with(c.expression)).Rules[0]
		name := h.Registry.Host() + "/org/a:1"
		object := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"image": name}}}}
		subject := &policy.Subject{Object: policy.ContentOf(object), Kind: "Pod", Version: "v1", Operation: "CREATE"}
		found := policy.Image{Role: "container", Pointer: "/spec/containers/0/image", Ref: image.MustParse(name)}
		plan := testkit.Must(rule.Plan(t.Context(), subject, []policy.Image{found}))(t)
		judged := plan.Judge.Judge(t.Context(), []policy.Given{{Check: &plan.Checks[0], Err: down, DataErr: down, Answers: func(policy.Question) policy.Answer {
			return policy.Answer{Gaps: []error{down}}
		}}})
		got := judged.Decisions[0].Result
		if !judged.Object.Passes() {
			got = judged.Object.Result
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %+v", c.reason, got, c.want, judged)
		}
	}
}

// TestGaps: a claim that could not be verified is indeterminate, unless the result does not
// depend on it.
func TestGaps(t *testing.T) {
	h := newEnv(t)
	names := []string{"org/a:1", "org/b:1"}
	fact := policy.Answer{Facts: factsOf("x")}
	gap := policy.Answer{Gaps: []error{&image.Error{Kind: image.Unavailable, Op: "ask", On: "a", Err: errors.New("down")}}}
	for _, c := range []struct {
		reason, expression string
		ours, theirs       policy.Answer
		want               policy.Result
	}{
		{"no response", allSigned, gap, gap, policy.Indeterminate},
		{"one attestor signed, and more may", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) > 0)", fact, gap, policy.Pass},
		{"two are wanted", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) == 2)", fact, gap, policy.Indeterminate},
		{"three are wanted of two", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) == 3)", fact, gap, policy.Fail},
		{"a denial that a gap might meet", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours]) == 0)", gap, gap, policy.Indeterminate},
		{"no attestor signed", allSigned, policy.Answer{}, gap, policy.Fail},
		{"a payload that may be there", "images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.ours]) >= 0 && extractPayload(i, attestations.scan).predicate.level == 'low')", gap, gap, policy.Indeterminate},
		{"one signature for two attestors", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) == 2)", fact, policy.Answer{Facts: factsOf("x")}, policy.Fail},
		{"and one each", "images.containers.all(i, verifyImageSignatures(i, [attestors.ours, attestors.theirs]) == 2)", fact, policy.Answer{Facts: factsOf("y")}, policy.Pass},
	} {
		rule := h.policy(t, with(c.expression)).Rules[0]
		subject := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Kind: "Pod", Version: "v1", Operation: "CREATE"}
		var images []policy.Image
		for i, name := range names {
			images = append(images, policy.Image{Role: "container", Pointer: "/spec/" + string(rune('0'+i)), Ref: image.MustParse(h.Registry.Host() + "/" + name)})
		}
		plan := testkit.Must(rule.Plan(t.Context(), subject, images))(t)
		given := make([]policy.Given, len(plan.Checks))
		for i := range plan.Checks {
			given[i] = policy.Given{Check: &plan.Checks[i], Answers: func(q policy.Question) policy.Answer {
				if q.Authority.Name == "attestors.ours" {
					return c.ours
				}
				return c.theirs
			}}
		}
		forward := plan.Judge.Judge(t.Context(), given)
		slices.Reverse(given)
		backward := plan.Judge.Judge(t.Context(), given)
		for i, d := range forward.Decisions {
			if d.Result != c.want || len(d.Reasons) == 0 {
				t.Errorf("%s: image %d: %s, want %s: %+v", c.reason, i, d.Result, c.want, d.Reasons)
			}
			if other := backward.Decisions[len(backward.Decisions)-1-i]; other.Result != d.Result {
				t.Errorf("%s: the order matters: %s and %s", c.reason, d.Result, other.Result)
			}
		}
	}
}

// TestUpdates: the images of the old object are not verified again, and do not count for
// new ones. A validation that reads the object concerns all of its images.
func TestUpdates(t *testing.T) {
	h := newEnv(t)
	good, bad, old := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name, h.signed(t, "old").Name
	update := func(after ...string) gate.Request {
		request := pod(t, after...)
		request.Old = pod(t, old, old).Object
		request.Subject.Operation = "UPDATE"
		return request
	}
	const some = "object.spec.containers.exists(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)"
	unrequired := func(text string) string {
		return edit(text, "spec:\n", "spec:\n  validationConfigurations: {required: false}\n")
	}
	for _, c := range []struct {
		reason, text string
		after        []string
		answer       gate.Result
		word         string
	}{
		{"a signed image is new", with(allSigned), []string{old, good}, gate.Allow, ""},
		{"an unsigned one is", with(allSigned), []string{old, bad}, gate.Deny, "unsigned"},
		{"nothing is", with(allSigned), []string{old, old}, gate.Allow, ""},
		{"the object's text is asked about", with("object.spec.containers.all(c, verifyImageSignatures(c.image, [attestors.ours]) > 0)"), []string{old, good}, gate.Deny, "unsigned"},
		{"one of them is signed", unrequired(with(some)), []string{old, good}, gate.Allow, ""},
		{"an old image does not stand in", unrequired(with(some)), []string{old, bad}, gate.Deny, "unsigned"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			expect(t, h.decide(t, update(c.after...), c.text), c.reason, c.answer, c.word)
		})
	}
}
