package mergekey

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestSchemaIsKubernetes compares the schema with the tags of Kubernetes' own types,
// in both directions.
func TestSchemaIsKubernetes(t *testing.T) {
	seen := map[string]bool{}
	for gvk, object := range scheme.Scheme.AllKnownTypes() {
		if object.Kind() != reflect.Struct || strings.HasSuffix(gvk.Kind, "List") || !isServed(gvk.Group, gvk.Kind) {
			continue
		}
		if _, ok := object.FieldByName("ObjectMeta"); !ok {
			continue
		}
		if gvk.Group == "flowcontrol.apiserver.k8s.io" && (gvk.Version == "v1beta1" || gvk.Version == "v1beta2") {
			continue // no cluster serves them any more
		}
		name := gvk.Group + "/" + gvk.Kind
		known, ok := kubernetes[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		seen[name] = true
		compare(t, name+" "+gvk.Version, known, object)
	}
	for name := range kubernetes {
		if !seen[name] && !strings.HasPrefix(name, "apiextensions.k8s.io/") && !strings.HasPrefix(name, "apiregistration.k8s.io/") {
			t.Errorf("%s is no type of Kubernetes", name)
		}
	}
}

// isServed leaves out kinds that are never an object of their own.
func isServed(group, kind string) bool {
	switch group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	}
	return group+kind != "policyEviction" && !slices.Contains([]string{"Binding", "PodStatusResult", "RangeAllocation", "Scale"}, kind)
}

// compare wants each list that merges in the schema, and no other. Newer versions of
// a kind have fields that older ones have not.
func compare(t *testing.T, at string, known Shape, object reflect.Type) {
	t.Helper()
	tagged := fields(object)
	for name, tag := range tagged {
		f := known[name]
		kind := tag.Type
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		isList := kind.Kind() == reflect.Slice
		if want := isList && slices.Contains(strings.Split(tag.Tag.Get("patchStrategy"), ","), "merge"); want != merges(f) {
			t.Errorf("%s.%s: merges %v", at, name, !want)
			continue
		}
		if key := tag.Tag.Get("patchMergeKey"); isList && merges(f) && (key == "") != f.Set || len(f.Keys) > 0 && f.Keys[0] != key {
			t.Errorf("%s.%s: keys %v, want %s", at, name, f.Keys, key)
		}
		if isList {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct && (!isList || merges(f)) && kind.PkgPath() != "k8s.io/apimachinery/pkg/apis/meta/v1" || kind.Name() == "ObjectMeta" {
			compare(t, at+"."+name, f.Shape, kind)
		}
	}
}

func merges(f Field) bool { return f.Set || len(f.Keys) > 0 }

func fields(object reflect.Type) map[string]reflect.StructField {
	result := map[string]reflect.StructField{}
	for i := range object.NumField() {
		f := object.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		for embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name != "" && name != "-":
			result[name] = f
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			for name, f := range fields(embedded) {
				result[name] = f
			}
		}
	}
	return result
}

// TestSchemaIsKyamls compares the second keys, which no tag has, and the rest again,
// with what Kyverno's library knows.
func TestSchemaIsKyamls(t *testing.T) {
	compared := 0
	for _, c := range []struct{ version, kind string }{
		{"v1", "Pod"}, {"v1", "Service"}, {"v1", "ServiceAccount"}, {"v1", "Node"}, {"v1", "Secret"}, {"v1", "PodTemplate"},
		{"apps/v1", "Deployment"}, {"apps/v1", "StatefulSet"}, {"apps/v1", "DaemonSet"}, {"batch/v1", "Job"}, {"batch/v1", "CronJob"},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"}, {"storage.k8s.io/v1", "CSINode"},
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition"}, {"apiregistration.k8s.io/v1", "APIService"},
	} {
		known := kubernetes.shapeOf(map[string]any{"apiVersion": c.version, "kind": c.kind})
		theirs := openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: c.version, Kind: c.kind})
		if known == nil || theirs == nil {
			t.Fatalf("%v is not known", c)
		}
		compared += compareKyaml(t, c.kind, known, theirs)
	}
	if compared < 100 {
		t.Errorf("only %d lists were compared", compared)
	}
}

func compareKyaml(t *testing.T, at string, known Shape, theirs *openapi.ResourceSchema) (compared int) {
	t.Helper()
	newer := []string{"schedulingGates", "resourceClaims", "resourceClaimStatuses", "hostIPs", "matchConditions"}
	for name, f := range known {
		field := theirs.Field(name)
		if field == nil || slices.Contains(newer, name) {
			continue
		}
		if name == "ports" && strings.HasSuffix(at, "ephemeralContainers") {
			continue // had no keys in Kubernetes 1.21
		}
		if merges(f) {
			compared++
			strategy, keys := field.PatchStrategyAndKeyList()
			if !strings.Contains(strategy, "merge") || !slices.Equal(keys, f.Keys) && len(keys)+len(f.Keys) > 0 {
				t.Errorf("%s.%s: keys %v, want %v %s", at, name, f.Keys, keys, strategy)
			}
			field = field.Elements()
		}
		if field != nil && f.Shape != nil {
			compared += compareKyaml(t, at+"."+name, f.Shape, field)
		}
	}
	return compared
}

func Example() {
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod"}
	spec := Of(pod)["spec"].Shape
	fmt.Println(spec["containers"].Keys, spec["containers"].Shape["ports"].Keys, spec["tolerations"].Keys)
	// Output: [name] [containerPort protocol] []
}
