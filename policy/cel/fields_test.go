package cel_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/cel"
	"github.com/quaymaster/quaymaster/policy/internal/celpolicy"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
)

// TestCheckFields: a field that no matched kind has is refused, and whatever cannot be
// inferred is not.
func TestCheckFields(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: celpolicy.OfObject()})
	if err != nil {
		t.Fatal(err)
	}
	finder := schema.NewFinder()
	kinds := func(names string) []cel.Schema {
		var list []schema.Kind
		for _, name := range strings.Fields(names) {
			list = append(list, schema.Kind{Group: "*", Version: "*", Kind: name})
		}
		schemas, _ := finder.Join(list)
		return schemas
	}
	for _, c := range []struct{ reason, kinds, expression, want string }{
		{"a field", "Deployment", "object.spec.replicas < 5", ""},
		{"none", "Deployment", "object.spec.replicasss < 5", `"object.spec.replicasss"`},
		{"of the type", "Deployment", "object.kind == 'Deployment' && object.apiVersion == 'apps/v1'", ""},
		{"of metadata", "Deployment", "object.metadata.namespace != 'a' && object.metadata.labels.any == 'b'", ""},
		{"none of metadata", "Deployment", "object.metadata.lables.any == 'b'", `"object.metadata.lables"`},
		{"of the old object", "Deployment", "oldObject.spec.replicasss < 5", `"oldObject.spec.replicasss"`},
		{"in has", "Deployment", "has(object.spec.replicasss)", `"object.spec.replicasss"`},
		{"optional", "Deployment", "object.?spec.?replicas.orValue(1) < 5", ""},
		{"none, optional", "Deployment", "object.?spec.?replicasss.orValue(1) < 5", "object.spec.replicasss"},
		{"after an optional", "Deployment", "object.?spec.replicasss.orValue(1) < 5", "object.spec.replicasss"},
		{"by an index", "Deployment", "object['spec']['replicas'] < 5", ""},
		{"none by an index", "Deployment", "object['spec']['replicasss'] < 5", "replicasss"},
		{"of elements", "Pod", "object.spec.containers.all(c, c.image != '' && has(c.securityContext) && c.securityContext.privileged != true)", ""},
		{"none of elements", "Pod", "object.spec.containers.all(c, c.imagee != '')", `"c.imagee"`},
		{"of one element", "Pod", "object.spec.containers[0].imagee != ''", `"object.spec.containers[].imagee"`},
		{"of filtered elements", "Pod", "object.spec.containers.filter(c, c.name != 'a').all(c, c.imagee != '')", `"c.imagee"`},
		{"of an optional list", "Pod", "object.spec.?initContainers.orValue([]).all(c, c.imagee != '')", `"c.imagee"`},
		{"of two lists", "Pod", "(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.imagee != '')", ""},
		{"of mapped elements", "Pod", "object.spec.containers.map(c, {'a': c.image}).all(m, m.a != '')", ""},
		{"keys of labels", "Pod", "object.metadata.labels.all(key, key.startsWith('a'))", ""},
		{"keys and values", "Pod", "object.metadata.labels.all(key, value, value != key)", ""},
		{"a name that hides the object", "Pod", "[{'any': 1}].all(object, object.any == 1)", ""},
		{"a quantity", "Pod", "object.spec.containers.all(c, c.resources.limits.cpu != '1')", ""},
		{"a number or text", "Service", "object.spec.ports.all(p, p.targetPort == 80)", ""},
		{"dyn", "Pod", "dyn(object).anything == 1", ""},
		{"a variable", "Pod", "variables.spec.hostNetwork == true", ""},
		{"none of a variable", "Pod", "variables.spec.hostNetwrk == true", `"variables.spec.hostNetwrk"`},
		{"a choice between kinds", "Pod Deployment", "has(object.spec.template) ? object.spec.template.spec.containers.size() > 0 : object.spec.containers.size() > 0", ""},
		{"what no kind has", "Pod Deployment", "object.spec.containerss.size() > 0", `"object.spec.containerss"`},
		{"two versions of a kind", "HorizontalPodAutoscaler", "object.spec.metrics.size() > 0 || object.spec.targetCPUUtilizationPercentage > 0", ""},
		{"a bound name", "Pod", "cel.bind(s, object.spec, s.hostNetwrk == true)", `"s.hostNetwrk"`},
		{"an optional map", "Pod", "object.spec.?securityContext.optMap(s, s.runAsNonRoot).orValue(false)", ""},
		{"bytes and times", "Secret", "object.data.key == 'YQ==' && object.metadata.creationTimestamp != ''", ""},
	} {
		scope, err := env.NewScope()
		if err != nil {
			t.Fatal(err)
		}
		if err := scope.Declare("variables", "spec", "object.spec"); err != nil {
			t.Fatal(err)
		}
		p, err := scope.Compile("a.expression", c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		err = p.CheckFields([]string{"object", "oldObject"}, kinds(c.kinds))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "a.expression") || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
	for reason, k := range map[string]schema.Kind{
		"a custom kind": {Group: "example.com", Version: "v1", Kind: "Widget"}, "a version that is not known": {Group: "apps", Version: "v1beta9", Kind: "Deployment"},
		"another kind's subresource": {Group: "", Version: "v1", Kind: "Pod", Subresource: "exec"}, "every kind": {Group: "*", Version: "*", Kind: "*"},
	} {
		if _, known := finder.Join([]schema.Kind{{Version: "v1", Kind: "Pod"}, k}); known {
			t.Errorf("%s has a schema", reason)
		}
	}
	for _, subresource := range []string{"", "status", "ephemeralcontainers"} {
		if _, known := finder.Join([]schema.Kind{{Version: "v1", Kind: "Pod", Subresource: subresource}}); !known {
			t.Errorf("pods and their %q have no schema", subresource)
		}
	}
}
