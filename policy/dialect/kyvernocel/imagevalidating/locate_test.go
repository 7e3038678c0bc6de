package imagevalidating_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/workload"
)

// params is a specification with named parameters, as a pipeline's.
func params(values ...any) map[string]any {
	var list []any
	for i := 0; i < len(values); i += 2 {
		list = append(list, map[string]any{"name": values[i], "value": values[i+1]})
	}
	return map[string]any{"params": list}
}

// bundled is a policy with the values of an expression as images.
func bundled(expression string) string {
	return edit(ofAnyFields(with("images.bundle.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)")), "spec:\n",
		"spec:\n  images: [{name: bundle, expression: \""+expression+"\"}]\n")
}

const (
	byFilter    = "object.spec.params.filter(p, p.name == 'bundle').map(p, p.value)"
	byCondition = "object.spec.params.map(p, p.name == 'bundle', p.value)"
)

// TestExtractedValues: the values that remain of an expression are the images, whatever
// else stands at the same places.
func TestExtractedValues(t *testing.T) {
	h := newEnv(t)
	signed := h.signed(t, "good", h.key)
	good, pinned, bad := signed.Name, signed.ByDigest(), h.signed(t, "bad").Name
	for _, c := range []struct {
		reason, expression string
		spec               map[string]any
		answer             gate.Result
		word               string
	}{
		{"the excluded value is no reference", byFilter, params("bundle", good, "kind", "Task"), gate.Allow, ""},
		{"and its twin", byFilter, params("bundle", bad, "kind", "Task"), gate.Deny, "unsigned"},
		{"by a condition of map", byCondition, params("bundle", good, "message", "Hello World"), gate.Allow, ""},
		{"and its twin", byCondition, params("bundle", bad, "message", "Hello World"), gate.Deny, "unsigned"},
		{"the excluded value is an image", byFilter, params("bundle", good, "base", bad), gate.Allow, ""},
		{"the excluded value is a number", byFilter, params("bundle", good, "replicas", 3), gate.Allow, ""},
		{"the excluded value is null", byFilter, params("bundle", good, "none", nil), gate.Allow, ""},
		{"the excluded value is the image, too", byFilter, params("bundle", bad, "base", bad), gate.Deny, "unsigned"},
		{"a number is named", byFilter, params("bundle", 3), gate.Error, "more than texts"},
		{"nothing is named", byFilter, params("bundle", nil), gate.Error, "more than texts"},
		{"text that is no reference is named", byFilter, params("bundle", "Hello World"), gate.Error, ""},
		{"one without the member that decides", byFilter, map[string]any{"params": []any{map[string]any{"value": bad}}}, gate.Error, "no such key"},
		{"of a form with an unknown place, by its digest", "[string(object.spec.params[0].value)]", params("bundle", pinned), gate.Allow, ""},
		{"and its twin", "[string(object.spec.params[0].value)]", params("bundle", bad), gate.Deny, "unsigned"},
		{"one element", "[object.spec.params[0].value]", params("bundle", good, "other", bad), gate.Allow, ""},
		{"and its twin", "[object.spec.params[0].value]", params("bundle", bad, "other", good), gate.Deny, "unsigned"},
		{"each once", "object.spec.params.map(p, p.value).distinct()", params("bundle", good, "other", bad), gate.Deny, "unsigned"},
		{"that is made and stands nowhere", "[object.spec.params[0].value + 'x']", params("bundle", good), gate.Error, "stands at no place"},
		{"two are named", byFilter, params("bundle", good, "bundle", bad), gate.Deny, "unsigned"},
		{"a choice", "[object.spec.debug ? object.spec.a : object.spec.b]", map[string]any{"debug": false, "a": bad, "b": good}, gate.Allow, ""},
		{"and its twin", "[object.spec.debug ? object.spec.a : object.spec.b]", map[string]any{"debug": true, "a": bad, "b": good}, gate.Deny, "unsigned"},
		{"lists in a list", "object.spec.steps.map(s, s.images).flatten()", map[string]any{"steps": []any{map[string]any{"images": []any{good, bad}}}}, gate.Deny, "unsigned"},
		{"by the value itself", "object.spec.params.map(p, p.value).filter(v, v.contains('/'))", params("a", good, "b", "text"), gate.Allow, ""},
		{"text that an expression makes, and that stands in the object", "object.spec.params.map(p, p.value + '')", params("bundle", pinned), gate.Allow, ""},
		{"and its twin", "object.spec.params.map(p, p.value + '')", params("bundle", bad), gate.Deny, "unsigned"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out := h.decide(t, object{spec: c.spec}.request(t), bundled(c.expression))
			expect(t, out, c.reason, c.answer, c.word)
			raw := testkit.Must(json.Marshal(out.Object.Content()))(t)
			document := edit(bundled(c.expression), "spec:\n", "spec:\n  evaluation: {mode: JSON}\n  validationConfigurations: {verifyDigest: false}\n")
			expect(t, h.decide(t, gate.ForDocument(testkit.Must(workload.ParseDocument(raw, "object.json"))(t)), document), c.reason+", in JSON mode", c.answer, c.word)
		})
	}
}

// TestPinnedValues: a value is pinned where its place is certain; else its tag is refused.
func TestPinnedValues(t *testing.T) {
	h := newEnv(t)
	good, other := h.signed(t, "good", h.key), h.signed(t, "other", h.key)
	pinned := good.Name + "@" + good.Manifest.Digest
	for _, c := range []struct {
		reason, expression string
		spec               map[string]any
		answer             gate.Result
		patched            []string
	}{
		{"one value", byFilter, params("base", other.Name, "bundle", good.Name), gate.Allow, []string{"/spec/params/1/value"}},
		{"the same twice, both named", byFilter, params("bundle", good.Name, "bundle", good.Name), gate.Allow, []string{"/spec/params/0/value", "/spec/params/1/value"}},
		{"the same twice, one named", byFilter, params("base", good.Name, "bundle", good.Name), gate.Deny, nil},
		{"the same twice, one named, by digest", byFilter, params("base", pinned, "bundle", pinned), gate.Allow, nil},
		{"one of an unknown place", "[string(object.spec.a)]", map[string]any{"a": good.Name}, gate.Deny, nil},
		{"by digest", "[string(object.spec.a)]", map[string]any{"a": pinned}, gate.Allow, nil},
		{"one place named twice", "[object.spec.a, object.spec.a]", map[string]any{"a": good.Name}, gate.Allow, []string{"/spec/a"}},
	} {
		out := h.decide(t, object{spec: c.spec}.request(t), bundled(c.expression))
		var patched []string
		for _, o := range out.Patch {
			if o.Op == "replace" {
				patched = append(patched, o.Path)
			}
		}
		if out.Result != c.answer || !slices.Equal(patched, c.patched) {
			t.Errorf("%s: %s with %v, want %s with %v: %s", c.reason, out.Result, patched, c.answer, c.patched, words(out))
		}
		if c.answer == gate.Deny && !slices.Contains(codes(out), "missing-digest") {
			t.Errorf("%s: %v", c.reason, codes(out))
		}
	}
}

// TestUpdatedValues: a value that was no image before an update is verified, though the
// same text stood at its place.
func TestUpdatedValues(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	nameless := params("bundle", bad)
	nameless["params"] = append(nameless["params"].([]any), map[string]any{"value": "x"})
	for _, c := range []struct {
		reason   string
		old, now map[string]any
		answer   gate.Result
		word     string
	}{
		{"it was the image before", params("bundle", bad, "x", "1"), params("bundle", bad, "x", "2"), gate.Allow, ""},
		{"it was left out before", params("base", bad), params("bundle", bad), gate.Deny, "unsigned"},
		{"it was left out, and is signed", params("base", good), params("bundle", good), gate.Allow, ""},
		{"it is another", params("bundle", good), params("bundle", bad), gate.Deny, "unsigned"},
		{"it is left out now", params("bundle", good), params("base", bad), gate.Unchecked, ""},
		{"it was left out, and the expression fails now", params("base", bad, "y", "x"), nameless, gate.Error, "no such key"},
		{"the expression failed before", nameless, params("bundle", bad, "y", "x"), gate.Deny, "unsigned"},
	} {
		request := object{spec: c.now}.request(t)
		request.Old, request.Subject.Operation = object{spec: c.old}.request(t).Object, "UPDATE"
		expect(t, h.decide(t, request, bundled(byFilter)), c.reason, c.answer, c.word)
	}
}

// described answers for images that the gate does not look at.
type described struct{ asked *[]string }

func (d described) ImageData(_ context.Context, reference string, _ policy.Credentials) (map[string]any, error) {
	*d.asked = append(*d.asked, reference)
	architecture := "amd64"
	if strings.Contains(reference, "arm") {
		architecture = "arm64"
	}
	if strings.Contains(reference, "gone") {
		return nil, fmt.Errorf("%s: not found", reference)
	}
	return map[string]any{"config": map[string]any{"architecture": architecture}}, nil
}

// TestMetadataOfOtherImages: the metadata of each image is known, and read once.
func TestMetadataOfOtherImages(t *testing.T) {
	h := newEnv(t)
	for _, c := range []struct {
		reason, image string
		answer        gate.Result
		word          string
	}{
		{"an image that is not matched", "other.example/amd:1", gate.Allow, ""},
		{"and its twin", "other.example/arm:1", gate.Deny, "the message"},
		{"one that is not there", "other.example/gone:1", gate.Error, "not found"},
	} {
		var asked []string
		h.compiler = imagevalidating.New(imagevalidating.Options{Images: described{&asked}})
		text := edit(with("variables.image.config.architecture == 'amd64' && variables.again.config.architecture == 'amd64'"), "spec:\n", "spec:\n"+
			"  validationConfigurations: {required: false}\n"+
			"  variables: [{name: image, expression: 'image.GetMetadata(object.spec.containers[0].image)'}, {name: again, expression: 'image.GetMetadata(object.spec.containers[0].image)'}]\n")
		expect(t, h.decide(t, pod(t, c.image), text), c.reason, c.answer, c.word)
		if len(asked) != 1 {
			t.Errorf("%s: asked for %v", c.reason, asked)
		}
	}
}

// TestWarnings: a policy that cannot admit any object has a warning.
func TestWarnings(t *testing.T) {
	h := newEnv(t)
	const required = "required is true"
	for _, c := range []struct{ reason, text, want string }{
		{"nothing is verified, and it is required", with("object.metadata.name != ''"), required},
		{"it is verified", with(allSigned), ""},
		{"it is not required", edit(with("object.metadata.name != ''"), "spec:\n", "spec:\n  validationConfigurations: {required: false}\n"), ""},
		{"a variable that nothing reads verifies", edit(with("object.metadata.name != ''"), "spec:\n", "spec:\n  variables: [{name: v, expression: \"verifyImageSignatures('a', [attestors.ours])\"}]\n"), required},
		{"images at no place", edit(with("images.bundle.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"), "spec:\n", "spec:\n  images: [{name: bundle, expression: \"object.spec.containers.map(p, p.image + '')\"}]\n"), "names no place"},
		{"images at places", edit(with("images.bundle.all(i, verifyImageSignatures(i, [attestors.ours]) > 0)"), "spec:\n", "spec:\n  images: [{name: bundle, expression: \"object.spec.containers.filter(p, p.name == 'a').map(p, p.image)\"}]\n"), ""},
		{"fields of another version", bundled(byFilter), "undefined field"},
	} {
		got := strings.Join(h.policy(t, c.text).Warnings, " ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: warned %q, want %q", c.reason, got, c.want)
		}
	}
	out := h.decide(t, pod(t, h.signed(t, "good", h.key).Name), with("has(object.metadata.labels)"))
	expect(t, out, "the author's own words", gate.Deny, "the message")
	if out.Verdicts[0].Reasons[0].Message != "the message" {
		t.Errorf("the author's words are not the first: %+v", out.Verdicts[0].Reasons)
	}
}

// TestPinsNamed: a policy that names controllers pins in them, and one that follows from pods
// does so only if it may leave out the pods that a controller creates.
func TestPinsNamed(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good", h.key).Name, h.signed(t, "bad").Name
	named := edit(with(allSigned), `apiGroups: [""]`, "apiGroups: [apps]", "resources: [pods]", "resources: [deployments]")
	updates := edit(with(allSigned), "operations: [CREATE, UPDATE]", "operations: [UPDATE]")
	condition := func(text string) string {
		return edit(with(allSigned), "spec:\n", "spec:\n  matchConditions: [{name: one, expression: '"+text+"'}]\n")
	}
	users, owners := condition(`!request.userInfo.username.startsWith("system:")`), condition(`!has(object.metadata.ownerReferences)`)
	mixed := with("has(object.metadata.ownerReferences) || " + allSigned)
	keeps := func(text string) string {
		return edit(text, "spec:\n", "spec:\n  validationConfigurations: {mutateDigest: false, verifyDigest: false}\n")
	}
	for _, c := range []struct {
		reason, text, image string
		operation           string
		pinning             gate.Pinning
		answer              gate.Result
		word                string
		pins                bool
	}{
		{"it is named", named, good, "CREATE", gate.PinNamed, gate.Allow, "", true},
		{"it is named, and not signed", named, bad, "CREATE", gate.PinNamed, gate.Deny, "unsigned", false},
		{"it is named, and was not pinned", named, good, "CREATE", gate.PinLater, gate.Deny, "missing-digest", false},
		{"it is named, and may not be changed", named, good, "CREATE", gate.PinKept, gate.Deny, "missing-digest", false},
		{"it is named, and the policy does not pin", keeps(named), good, "CREATE", gate.PinNamed, gate.Allow, "", false},
		{"it follows", with(allSigned), good, "CREATE", gate.PinNamed, gate.Allow, "", false},
		{"it follows, and its pods are pinned", with(allSigned), good, "CREATE", gate.PinLater, gate.Allow, "", false},
		{"it follows, and may not be changed", with(allSigned), good, "CREATE", gate.PinKept, gate.Allow, "", false},
		{"it follows from a condition on the user", users, good, "CREATE", gate.PinNamed, gate.Allow, "", true},
		{"it follows from a condition on the user, and was not pinned", users, good, "CREATE", gate.PinLater, gate.Deny, "missing-digest", false},
		{"it follows from a condition on owners", owners, good, "CREATE", gate.PinNamed, gate.Allow, "", true},
		{"it follows from a validation that reads owners", mixed, good, "CREATE", gate.PinNamed, gate.Allow, "", true},
		{"it follows from updates, and its pods are created", updates, good, "UPDATE", gate.PinNamed, gate.Allow, "", true},
	} {
		request := object{kind: "Deployment", images: []string{c.image}}.request(t)
		request.Pinning, request.Subject.Operation = c.pinning, c.operation
		request.Subject.User = policy.User{Name: "jane"}
		out := h.decide(t, request, c.text)
		expect(t, out, c.reason, c.answer, c.word)
		if (len(out.Patch) > 0) != c.pins {
			t.Errorf("%s: patch %v", c.reason, out.Patch)
		}
	}
}
