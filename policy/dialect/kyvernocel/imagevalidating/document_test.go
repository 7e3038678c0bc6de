package imagevalidating_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// jsonMode is a policy for documents, with images named by an expression.
func jsonMode(images, validation string) string {
	return edit(with(validation), "spec:\n", "spec:\n  evaluation: {mode: JSON}\n  images: [{name: bases, expression: '"+images+"'}]\n")
}

const (
	stages = "object.stages.map(s, s.from)"
	bases  = "images.bases.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"
)

func document(t testing.TB, text string) gate.Request {
	t.Helper()
	return gate.ForDocument(testkit.Must(workload.ParseDocument([]byte(text), "build.json"))(t))
}

// dockerfile is the parse of one, with a stage for each image.
func dockerfile(images ...string) string {
	list := make([]map[string]string, len(images))
	for i, image := range images {
		list[i] = map[string]string{"from": image}
	}
	text, _ := json.Marshal(map[string]any{"stages": list})
	return string(text)
}

// TestDocuments: a policy in JSON mode judges documents that are no Kubernetes
// objects.
func TestDocuments(t *testing.T) {
	h := newEnv(t)
	good, bad, foreign := h.signed(t, "good", h.key), h.signed(t, "bad"), h.signed(t, "foreign", h.stranger)
	text := jsonMode(stages, bases)
	free := edit(text, "spec:\n", "spec:\n  validationConfigurations: {verifyDigest: false}\n")
	ours := jsonMode("object.stages.map(s, s.from).filter(f, !f.contains(\"/bad\"))", bases)
	digest := func(i gatetest.Image) string { return i.ByDigest() }
	for _, c := range []struct {
		reason, text, document string
		answer                 gate.Result
		word                   string
	}{
		{"signed", text, dockerfile(digest(good)), gate.Allow, ""},
		{"not signed", text, dockerfile(digest(bad)), gate.Deny, "unsigned"},
		{"signed by another identity", text, dockerfile(digest(foreign)), gate.Deny, "wrong-key"},
		{"one of two is not signed", text, dockerfile(digest(good), digest(bad)), gate.Deny, "unsigned"},
		{"a tag that is not pinned", text, dockerfile(good.Name), gate.Deny, "missing-digest"},
		{"a tag that need not be pinned", free, dockerfile(good.Name), gate.Allow, ""},
		{"and its twin", free, dockerfile(bad.Name), gate.Deny, "unsigned"},
		{"no image that is meant", text, dockerfile("other.example/a:1"), gate.Unchecked, "names none"},
		{"no image", text, dockerfile(), gate.Unchecked, "names none"},
		{"a member that is not there", text, `{"stagez": []}`, gate.Error, "no such key"},
		{"a member of another type", text, `{"stages": "` + digest(good) + `"}`, gate.Error, ""},
		{"an image that is a number", text, `{"stages": [{"from": 1}]}`, gate.Error, "more than texts"},
		{"an image that is none", text, dockerfile("::"), gate.Error, ""},
		{"an optional member", jsonMode("object.?stages.orValue([]).map(s, s.from)", bases), `{"stagez": []}`, gate.Unchecked, "names none"},
		{"an image that the expression leaves out", ours, dockerfile(digest(good), digest(bad)), gate.Allow, ""},
		{"and its twin", ours, dockerfile(digest(good), digest(foreign)), gate.Deny, "wrong-key"},
		{"an expression about the document", jsonMode(stages, "object.stages.size() > 0"), dockerfile(), gate.Deny, "the message"},
		{"and its twin", jsonMode(stages, "object.stages.size() > 0"), dockerfile("other.example/a:1"), gate.Allow, ""},
		{"an object as a document", jsonMode("object.spec.containers.map(c, c.image)", bases), podText(digest(good)), gate.Allow, ""},
		{"and its twin", jsonMode("object.spec.containers.map(c, c.image)", bases), podText(digest(bad)), gate.Deny, "unsigned"},
		{"a policy that names no image", edit(with(allSigned), "spec:\n", "spec:\n  evaluation: {mode: JSON}\n"), dockerfile(digest(bad)), gate.Unchecked, "names none"},
		{"a policy for objects", with(allSigned), podText(digest(bad)), gate.Unchecked, "about Kubernetes objects"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out := h.decide(t, document(t, c.document), c.text)
			expect(t, out, c.reason, c.answer, c.word)
			if len(out.Patch) > 0 || out.Subject.Kind+out.Subject.Namespace+out.Subject.Name != "" {
				t.Errorf("%+v, %v", out.Subject, out.Patch)
			}
		})
	}
}

// TestDocumentsRefused: of a document there is nothing but itself to be read.
func TestDocumentsRefused(t *testing.T) {
	text := edit(minimal, "spec:\n", "spec:\n  evaluation: {mode: JSON}\n")
	expression := func(text string) string {
		return edit(text, "images.containers.all(", "object.a == 1 && images.containers.all(")
	}
	subject := edit(text, "subject: ann@example.com", "subjectExpression: string(object.who)")
	for _, c := range []struct{ reason, text, want string }{
		{"nothing", text, ""},
		{"the document", expression(text), ""},
		{"a request", edit(expression(text), "object.a == 1", "request.name == 'a'"), "'request'"},
		{"another document", edit(expression(text), "object.a == 1", "http.Get('https://a.example').a == 1"), "'http'"},
		{"the document, for a subject", subject, ""},
		{"an image, for a subject", edit(subject, "string(object.who)", "image"), "spec.attestors[1]"},
		{"a request, for a subject", edit(subject, "string(object.who)", "image + string(request.name)"), "spec.attestors[1]"},
		{"a condition", edit(text, "spec:\n", "spec:\n  matchConditions: [{name: a, expression: object.a == 1}]\n"), "spec.matchConditions"},
	} {
		if _, err := compile(c.text); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

// TestDocumentExceptions: an exception leaves out a document, or images of one.
func TestDocumentExceptions(t *testing.T) {
	h := newEnv(t)
	bad := document(t, dockerfile(h.signed(t, "bad").ByDigest()))
	text := jsonMode(stages, bases)
	for _, c := range []struct {
		reason, exception string
		answer            gate.Result
	}{
		{"the whole document", exception, gate.Allow},
		{"another policy", edit(exception, "name: signed", "name: other"), gate.Deny},
		{"a condition that holds", exception + "  matchConditions: [{name: a, expression: object.stages.size() == 1}]\n", gate.Allow},
		{"a condition that does not", exception + "  matchConditions: [{name: a, expression: object.stages.size() == 2}]\n", gate.Deny},
		{"another image", exception + "  images: [HOST/org/good:1]\n", gate.Deny},
	} {
		expect(t, h.decide(t, bad, text, c.exception), c.reason, c.answer, "")
	}
	out := h.decide(t, bad, text, exception)
	if !out.Matched() {
		t.Error("a policy matches it, and reports no match")
	}
}

func podText(image string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"},"spec":{"containers":[{"name":"c","image":%q}]}}`, image)
}

// TestDocumentsAtAdmission: a policy in JSON mode has no targets at the API server, matches
// no objects, and keeps no other policy from failing open, broken or not.
func TestDocumentsAtAdmission(t *testing.T) {
	h := newEnv(t)
	bad := h.signed(t, "bad").Name
	whole := h.policy(t, jsonMode(stages, bases))
	broken := newCompiler().Broken([]byte(h.fill(edit(jsonMode(stages, bases), "validations:", "valdations:"))), "test.yaml", errors.New("misspelt"))
	open := h.policy(t, edit(with(allSigned), "name: signed", "name: open", "spec:\n", "spec:\n  failurePolicy: Ignore\n"))
	closed := h.policy(t, edit(with(allSigned), "name: signed", "name: closed"))
	pods := &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "default"}
	for _, p := range []*policy.Policy{whole, broken} {
		if len(p.Targets) > 0 {
			t.Errorf("it asks for %v", p.Targets)
		}
		expect(t, h.gate(t, testkit.Must(set.New(p))(t)).Decide(t.Context(), pod(t, bad)), "a pod", gate.Unchecked, "skip")
		if !(gate.Snapshot{Policies: testkit.Must(set.New(p, open))(t)}).FailOpen(pods) {
			t.Error("the other policy does not fail open")
		}
		if (gate.Snapshot{Policies: testkit.Must(set.New(p, closed))(t)}).FailOpen(pods) {
			t.Error("a policy that fails closed is forgotten")
		}
	}
	out := h.gate(t, testkit.Must(set.New(broken))(t)).Decide(t.Context(), document(t, dockerfile(bad)))
	expect(t, out, "a document, and the policy is broken", gate.Error, "misspelt")
}
