package mutating_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
)

// TestUnserved: of targets and triggers that are not there none is changed, and the others
// are; they are there once their kind is known.
func TestUnserved(t *testing.T) {
	of := func(resources string) string {
		return existing("resourceRules: [{apiGroups: [apps, example.com], apiVersions: [v1], resources: [" + resources + "]}]")
	}
	itself := strings.Replace(head+about("configmaps", "  evaluation: {mutateExisting: {enabled: true}}\n"+merges("Object{}")), `[""]`, `["", example.com]`, 1)
	for _, c := range []struct{ reason, text, gone, unserved, there string }{
		{"targets", of("deployments, widgets"), "apps/v1 Deployment,", "spec.targetMatchConstraints.resourceRules[0].resourceRules[0].resources[1]", "apps/v1 Deployment,example.com/v1 Widget,"},
		{"all targets", of("widgets"), "", "spec.targetMatchConstraints.resourceRules[0].resourceRules[0].resources[0]", "example.com/v1 Widget,"},
		{"the objects that it matches", strings.Replace(itself, "[configmaps]", "[configmaps, widgets]", 1), "v1 ConfigMap,", "spec.matchConstraints.resourceRules[0].resources[1]", "v1 ConfigMap,example.com/v1 Widget,"},
		{"triggers beside", strings.Replace(strings.Replace(of("deployments"), `[""]`, `["", example.com]`, 1), "[configmaps]", "[configmaps, widgets]", 1), "apps/v1 Deployment,", "spec.matchConstraints.resourceRules[0].resources[1]", "apps/v1 Deployment,"},
	} {
		selected := func(kinds constraint.Resources) (string, []policy.Unserved) {
			p := compile(t, c.text, func(o *kyvernocel.Options) { o.Kinds = constraint.Later(kinds) })
			var text string
			for _, by := range alter(t, p, subject(t, trigger))[0].Selections {
				text += by.APIVersion + " " + by.Kind + ","
			}
			return text, p.Unserved
		}
		if got, unserved := selected(noKinds{}); got != c.gone || len(unserved) != 1 || !strings.HasPrefix(fmt.Sprint(unserved[0].Err), c.unserved+": ") || !unserved[0].MayCome {
			t.Errorf("%s: gone: %q, %v", c.reason, got, unserved)
		}
		if got, unserved := selected(widgets{}); got != c.there || len(unserved) != 0 {
			t.Errorf("%s: there: %q, %v", c.reason, got, unserved)
		}
		if _, err := mutating.New(kyvernocel.Options{Kinds: noKinds{}}).Compile([]byte(c.text), ""); (err == nil) != (c.reason == "triggers beside") {
			t.Errorf("%s: where kinds are guessed by their resources, which targets cannot be: %v", c.reason, err)
		}
	}
	for reason, text := range map[string]string{
		"no targets beside triggers that are not there": strings.Replace(strings.Replace(existing("resourceRules: []"), `[""]`, `["", example.com]`, 1), "[configmaps]", "[configmaps, widgets]", 1),
		"subresources of targets that are not there":    of("widgets/status"),
	} {
		if _, err := mutating.New(kyvernocel.Options{Kinds: constraint.Later(noKinds{})}).Compile([]byte(text), ""); err == nil {
			t.Errorf("%s: it compiles", reason)
		}
	}
}

// noKinds has no kind.
type noKinds struct{}

func (noKinds) Named(string, string) []constraint.Resource { return nil }
