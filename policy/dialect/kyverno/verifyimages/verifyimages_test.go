package verifyimages_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"sigs.k8s.io/yaml"
)

func compile(tb testing.TB, text string) (*verifyimages.Entry, error) {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	var raw any
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		tb.Fatal(err)
	}
	return verifyimages.Compile(verifyimages.Options{Engine: engine, SecretNamespace: "kyverno"}, raw, "spec.rules[0]", "verifyImages[0]")
}

const keyless = "attestors: [{entries: [{keyless: {issuer: 'https://issuer.example', subject: 'ann@example.com'}}]}]"

func TestEntry(t *testing.T) {
	for _, c := range []struct {
		text, ref string
		known     bool // the patterns are known beforehand
		checks    int
		reason    string
	}{
		{"{imageReferences: ['ghcr.io/org/*'], " + keyless + "}", "ghcr.io/org/app:v1", true, 1, "an image that is meant"},
		{"{imageReferences: ['ghcr.io/org/*'], " + keyless + "}", "quay.io/org/app:v1", true, 0, "another one"},
		{"{imageReferences: ['ghcr.io/{{request.namespace}}/*'], " + keyless + "}", "ghcr.io/prod/app:v1", false, 1, "a variable"},
		{"{imageReferences: ['ghcr.io/{{request.namespace}}/*'], " + keyless + "}", "ghcr.io/test/app:v1", false, 0, "a variable, and another image"},
	} {
		e, err := compile(t, c.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, known := e.Patterns(); known != c.known || e.Asks() == known {
			t.Errorf("%s: known %t, asks %t", c.reason, known, e.Asks())
		}
		data := func() (variable.Context, error) {
			return variable.Context{"request": map[string]any{"namespace": "prod"}}, nil
		}
		checks, err := e.Checks([]policy.Image{{Ref: image.MustParse(c.ref)}}, policy.Enforce, data)
		if err != nil || len(checks) != c.checks {
			t.Errorf("%s: %d checks, %v", c.reason, len(checks), err)
		}
		for i := range checks {
			if err := checks[i].Validate(); err != nil || checks[i].Action != policy.Enforce {
				t.Errorf("%s: %v", c.reason, err)
			}
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		text    string
		exempts bool
		good    bool
	}{
		{"ghcr.io/org/*", false, true}, {"https://ghcr.io/org/*", false, false}, {"", false, false},
		{"ghcr.io/org/app", false, true}, {"ghcr.io/org/app", true, false}, {"ghcr.io/org/app:*", true, true},
	} {
		if _, err := verifyimages.Pattern(c.text, "path", c.exempts); (err == nil) != c.good {
			t.Errorf("%q: %v", c.text, err)
		}
	}
	if _, err := compile(t, "{imageReferences: ['*'], imageReference: x, "+keyless+"}"); err == nil || !strings.Contains(err.Error(), "did you mean imageReferences?") {
		t.Error(err)
	}
}

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	entry, err := verifyimages.Compile(verifyimages.Options{Engine: engine}, map[string]any{
		"imageReferences": []any{"ghcr.io/org/*"},
		"attestors":       []any{map[string]any{"entries": []any{map[string]any{"keys": map[string]any{"kms": "awskms:///alias/release"}}}}},
	}, "spec.rules[0]", "verifyImages[0]")
	if err != nil {
		fmt.Println(err)
		return
	}
	checks, err := entry.Checks([]policy.Image{{Ref: image.MustParse("ghcr.io/org/app:v1")}}, policy.Enforce, nil)
	fmt.Println(len(checks), checks[0].Requirements[0].Members[0].Authority.Key.Ref, err)
	// Output: 1 awskms:///alias/release <nil>
}
