package attestor_test

import (
	"encoding/json"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// q writes a text for YAML.
func q(text []byte) string {
	quoted, _ := json.Marshal(string(text))
	return string(quoted)
}

// parse reads one attestor, of which the name may be left out.
func parse(t testing.TB, text string) v1alpha1.Attestor {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var a v1alpha1.Attestor
	strict, err := kjson.UnmarshalStrict(data, &a)
	if err != nil || len(strict) > 0 {
		t.Fatalf("%s: %v %v", text, err, strict)
	}
	if a.Name == "" {
		a.Name = "who"
	}
	return a
}

// language is a document's scopes.
type language struct{ document, image *cel.Scope }

func newLanguage(t testing.TB) language {
	t.Helper()
	scope := func(o cel.Options) *cel.Scope {
		return verifytest.Must(verifytest.Must(cel.NewEnv(o)).NewScope())
	}
	object := cel.Variable{Name: "object", Type: celgo.DynType}
	return language{
		document: scope(cel.Options{Variables: []cel.Variable{object}}),
		image:    scope(cel.Options{Variables: []cel.Variable{object, {Name: "image", Type: celgo.StringType}}}),
	}
}

func (l language) options() attestor.Options {
	return attestor.Options{Scope: l.document, Images: l.image}
}

// about evaluates for an object and an image.
func (l language) about(object map[string]any, image string) attestor.Activations {
	return attestor.Activations{
		Object: l.document.NewActivation(cel.Inputs{Variables: map[string]any{"object": object}}),
		Image:  l.image.NewActivation(cel.Inputs{Variables: map[string]any{"object": object, "image": image}}),
	}
}

// compile compiles one attestor that is right.
func compile(t testing.TB, text string, o attestor.Options) *attestor.Attestor {
	t.Helper()
	list, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, text)}, o)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return list[0]
}

func says(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
