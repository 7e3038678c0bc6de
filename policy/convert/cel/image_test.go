package cel_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/workload"
)

// TestImageData: an entry that reads a registry is a variable, and one of elements stands where it is used. Both forms
// decide the same; one with another operator does not.
func TestImageData(t *testing.T) {
	const head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec: {rules: [{name: a, match: {any: [{resources: {kinds: [%KIND]}}]}, "
	for _, c := range []struct{ reason, kind, rule, has, refused string }{
		{
			"of a rule", "Service", `context: [{name: data, imageRegistry: {reference: "registry.example/{{ request.object.metadata.name }}:v1"}}],
  validate: {failureAction: Enforce, allowExistingViolations: false, message: m, deny: {conditions: {any: [{key: "{{ data.configData.os }}", operator: NotEquals, value: linux}]}}}}]}`,
			"expression: image.GetMetadata('registry.example/' + variables.resource.metadata.name + ':v1')", "",
		},
		{
			"of elements", "Pod", `validate: {failureAction: Enforce, allowExistingViolations: false, message: m, foreach: [{list: request.object.spec.containers,
  context: [{name: os, imageRegistry: {reference: "{{ element.image }}", jmesPath: configData.os}}], deny: {conditions: {any: [{key: "{{ os }}", operator: NotEquals, value: linux}]}}}]}}]}`,
			"string(image.GetMetadata(container.image).configData.os) == 'linux'", "",
		},
		{
			"with credentials", "Service", `context: [{name: data, imageRegistry: {reference: a, imageRegistryCredentials: {allowInsecureRegistry: true}}}],
  validate: {message: m, deny: {conditions: {any: [{key: "{{ data.registry }}", operator: Equals, value: a}]}}}}]}`,
			"", "spec.rules[0].context[0].imageRegistry.imageRegistryCredentials",
		},
	} {
		source := strings.Replace(head, "%KIND", c.kind, 1) + c.rule
		result := convertText(t, source, cel.Options{})
		if c.refused != "" {
			if len(result.Problems) != 1 || !strings.HasSuffix(result.Problems[0].Path, c.refused) {
				t.Errorf("%s: %v", c.reason, result.Problems)
			}
			continue
		}
		text, err := cel.YAML(result.Policies)
		if err != nil || len(result.Problems) > 0 || !strings.Contains(string(text), c.has) {
			t.Fatalf("%s: %v %v\n%s", c.reason, err, result.Problems, text)
		}
		for operator, isEqual := range map[string]bool{" == 'linux'": true, " != 'linux'": false} {
			read := func(text string) []workload.Object {
				objects, err := workload.Read(strings.NewReader(text), "test.yaml")
				if err != nil {
					t.Fatal(err)
				}
				return objects
			}
			changed := strings.Replace(string(text), " == 'linux'", operator, 1)
			report, err := equality.Check(t.Context(), equality.Options{Source: read(source), Result: read(changed), Objects: 500})
			if err != nil || report.Equal() != isEqual {
				t.Errorf("%s, %s: %+v, %v", c.reason, operator, report, err)
			}
		}
	}
}
