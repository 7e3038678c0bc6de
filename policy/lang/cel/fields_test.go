package cel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestCheckFields: a field that no matched kind has is refused, and whatever cannot be
// inferred is not.
func TestCheckFields(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: kyvernocel.OfObject()})
	if err != nil {
		t.Fatal(err)
	}
	finder := schema.NewFinder()
	kinds := func(names string) []cel.Schema {
		var list []schema.Kind
		for _, name := range strings.Fields(names) {
			list = append(list, schema.Kind{Group: "*", Version: "*", Kind: name})
		}
		return finder.Of(list).Schemas
	}
	for _, c := range []struct{ reason, kinds, expression, want string }{
		{"a field", "Deployment", "object.spec.replicas < 5", ""},
		{"none", "Deployment", "object.spec.replicasss < 5", `"object.spec.replicasss"`},
		{"of the type", "Deployment", "object.kind == 'Deployment' && object.apiVersion == 'apps/v1'", ""},
		{"of metadata", "Deployment", "object.metadata.namespace != 'a' && object.metadata.labels.any == 'b'", ""},
		{"none of metadata", "Deployment", "object.metadata.lables.any == 'b'", `"object.metadata.lables"`},
		{"of the old object", "Deployment", "oldObject.spec.replicasss < 5", `"oldObject.spec.replicasss"`},
		{"in has", "Deployment", "has(object.spec.replicasss)", `"object.spec.replicasss"`},
		{"as a key", "Deployment", "'replicas' in object.spec", ""},
		{"none, as a key", "Deployment", "!('replicasss' in object.spec)", `"object.spec.replicasss"`},
		{"none, as a key of elements", "Pod", "object.spec.containers.all(c, 'imagee' in c)", `"c.imagee"`},
		{"a key of labels", "Pod", "'any' in object.metadata.labels", ""},
		{"an element of a list", "Pod", "'any' in object.metadata.finalizers && 'web' in object.spec.containers.map(c, c.name)", ""},
		{"an element of a list that is none", "Pod", "'any' in object.metadata.finalisers", `"object.metadata.finalisers"`},
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
		{"of an optional, or another of its type", "Pod", "object.spec.?securityContext.or(object.spec.?securityContext).value().runAsNonRooot", "runAsNonRooot"},
		{"of an optional, or another", "Pod", "object.?spec.?securityContext.or(optional.of({'any': 1})).value().any == 1", ""},
		{"of an optional list, or another", "Pod", "object.spec.?initContainers.orValue([{'any': 1}]).all(c, c.any == 1)", ""},
		{"of an optional, or another kind of object", "Pod", "object.spec.?hostUsers.orValue(object.metadata.labels).any == 1", ""},
		{"of a choice between an object and its old version", "Pod", "(object != null ? object : oldObject).spec.hostNetwrk == true", "spec.hostNetwrk"},
		{"of a choice between types", "Pod", "(object.spec.hostNetwork ? object.spec : object.metadata).labels != null", ""},
		{"of keys", "Pod", "object.metadata.annotations.filter(k, k != 'a').map(k, {'any': k}).all(m, m.any != '')", ""},
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

		{"a number and a text", "Deployment", "object.spec.replicas != '3'", `object.spec.replicas is a number, and never equal to a text: compare it with a number`},
		{"the text on the left", "Deployment", "'3' == object.spec.replicas", "object.spec.replicas is a number"},
		{"a number and numbers", "Deployment", "object.spec.replicas != 3 && object.spec.replicas < 3.5 && object.spec.replicas in [1, 2]", ""},
		{"a number and texts", "Deployment", "!(object.spec.replicas in ['1', '2'])", "object.spec.replicas is a number"},
		{"an order", "Deployment", "object.metadata.name == '' || object.spec.replicas < '5'", "object.spec.replicas is a number"},
		{"a boolean and a text", "Pod", "!has(object.spec.hostNetwork) || object.spec.hostNetwork != 'true'", "object.spec.hostNetwork is a boolean"},
		{"a boolean and a boolean", "Pod", "!has(object.spec.hostNetwork) || object.spec.hostNetwork != true", ""},
		{"a text and a number", "Pod", "object.metadata.name != 3", "object.metadata.name is a text"},
		{"a label and a number", "Pod", "object.metadata.labels['a'] != 5", "object.metadata.labels[] is a text"},
		{"a label and a text", "Pod", "object.metadata.labels['a'] != '5'", ""},
		{"of elements", "Pod", "object.spec.containers.all(c, c.image != 5)", "c.image is a text"},
		{"an element and a text", "Pod", "!object.spec.containers.exists(c, c == 'x')", "c is an object, and never equal to a text"},
		{"a list and a text", "Pod", "object.spec.containers != 'x'", "object.spec.containers is a list"},
		{"a list and a list", "Pod", "object.spec.containers != []", ""},
		{"null", "Pod", "object.spec != null && object.spec.hostNetwork != null", ""},
		{"a member of a list of texts", "Pod", "!(5 in object.metadata.finalizers)", "object.metadata.finalizers is a text"},
		{"a text among them", "Pod", "!('5' in object.metadata.finalizers)", ""},
		{"a key of labels that is a number", "Pod", "!(5 in object.metadata.labels)", "object.metadata.labels.keys is a text"},
		{"presence is a boolean", "Deployment", "has(object.spec.replicas) == true", ""},
		{"presence is false", "Deployment", "has(object.spec.replicas) == false || object.spec.replicas > 1", ""},
		{"presence of fields of two kinds", "Deployment", "has(object.spec.replicas) != has(object.metadata.name)", ""},
		{"presence of an undefined field", "Deployment", "has(object.spec.replicasss) == true", "object.spec.replicasss"},
		{"one of values of another kind", "Deployment", "object.spec.replicas in ['1', '2']", "object.spec.replicas is a number, and never equal to a text"},
		{"two optionals, of which neither has a value", "Deployment", "object.?spec.?replicas == object.?metadata.?generateName", ""},
		{"the field of an optional", "Deployment", "object.?spec.replicas == object.?metadata.generateName", ""},
		{"the value of an optional", "Deployment", "object.?spec.?replicas.value() != object.metadata.name", "a number, and never equal to a text"},
		{"another value of an optional", "Deployment", "object.?spec.?replicas.orValue(1) != object.?metadata.?generation.orValue(1)", ""},
		{"two fields", "Deployment", "object.spec.replicas != object.metadata.name", "object.spec.replicas is a number, and never equal to a text"},
		{"two fields of one kind", "Deployment", "object.spec.replicas == object.metadata.generation && object.metadata.name != object.kind", ""},
		{"a field of the old object and of the new", "Deployment", "oldObject == null || oldObject.spec.replicas != string(object.spec.replicas)", "oldObject.spec.replicas is a number"},
		{"conversions", "Deployment", "string(object.spec.replicas) != '3' && int(object.metadata.name) != 3 && dyn(object.spec.replicas) != '3'", ""},
		{"a size", "Pod", "object.spec.containers.size() != 3 && size(object.spec.containers) < 3", ""},
		{"a variable and a text", "Pod", "variables.spec.priority != 'high'", "variables.spec.priority is a number"},
		{"kinds with different fields of one name", "Deployment Pod", "object.spec.replicas != '3'", "object.spec.replicas"},
		{"a member that is a map or a list", "Service NetworkPolicy ReplicationController", "object.spec.selector != {}", ""},
		{"an operation", "Pod", "request.operation == 'CREATE' || request.operation in ['UPDATE', 'DELETE']", ""},
		{"an operation that is none", "Pod", "request.operation != 'Delete'", `request.operation is never "Delete"`},
		{"operations of which one is none", "Pod", "request.operation in ['CREATE', 'EDIT']", `request.operation is never "EDIT"`},
		{"a name that hides the request", "Pod", "[{'operation': 'Delete'}].all(request, request.operation == 'Delete')", ""},
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
		err = errors.Join(p.Undefined([]string{"object", "oldObject"}, kinds(c.kinds)), p.CheckOperation())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), "a.expression") || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
	for _, c := range []struct {
		reason string
		kind   schema.Kind
		exact  bool
	}{
		{"a kind", schema.Kind{Version: "v1", Kind: "Pod"}, true},
		{"its status", schema.Kind{Version: "v1", Kind: "Pod", Subresource: "status"}, true},
		{"its added containers", schema.Kind{Version: "v1", Kind: "Pod", Subresource: "ephemeralcontainers"}, true},
		{"another kind's subresource", schema.Kind{Version: "v1", Kind: "Pod", Subresource: "exec"}, false},
		{"a custom kind", schema.Kind{Group: "example.com", Version: "v1", Kind: "Widget"}, false},
		{"a version that is not known", schema.Kind{Group: "apps", Version: "v1beta9", Kind: "Deployment"}, false},
		{"every kind", schema.Kind{Group: "*", Version: "*", Kind: "*"}, false},
		{"a kind without its group", schema.Kind{Group: "*", Version: "*", Kind: "Deployment"}, true},
		{"a kind of every group", schema.Kind{Group: "*", Version: "*", Kind: "Deployment", Named: true}, false},
		{"a name that other groups use, too", schema.Kind{Group: "*", Version: "*", Kind: "Service"}, false},
		{"with its group", schema.Kind{Group: "", Version: "*", Kind: "Service"}, true},
	} {
		if known := finder.Of([]schema.Kind{{Version: "v1", Kind: "Pod"}, c.kind}); known.Exact != c.exact || len(known.Schemas) < 2 {
			t.Errorf("%s: %+v", c.reason, known)
		}
	}
}
