package generate

import (
	"reflect"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestToTexts: text where the API server takes nothing else, and the value's type elsewhere.
func TestToTexts(t *testing.T) {
	type object = map[string]any
	configMap, deployment := policy.ObjectKind{APIVersion: "v1", Kind: "ConfigMap"}, policy.ObjectKind{APIVersion: "apps/v1", Kind: "Deployment"}
	for _, row := range []struct {
		reason       string
		kind         policy.ObjectKind
		before, want object
	}{
		{"a label", configMap, object{"metadata": object{"labels": object{"index": float64(3)}}}, object{"metadata": object{"labels": object{"index": "3"}}}},
		{"an annotation", configMap, object{"metadata": object{"annotations": object{"a": true}}}, object{"metadata": object{"annotations": object{"a": "true"}}}},
		{"the data of a ConfigMap", configMap, object{"data": object{"a": 1.5, "b": "c"}}, object{"data": object{"a": "1.5", "b": "c"}}},
		{"the data of a Secret", policy.ObjectKind{APIVersion: "v1", Kind: "Secret"}, object{"stringData": object{"a": false}}, object{"stringData": object{"a": "false"}}},
		{
			"a template, and numbers next to it", deployment,
			object{"spec": object{"replicas": float64(2), "selector": object{"matchLabels": object{"a": float64(1)}}, "template": object{"metadata": object{"labels": object{"a": float64(1)}}}}},
			object{"spec": object{"replicas": float64(2), "selector": object{"matchLabels": object{"a": "1"}}, "template": object{"metadata": object{"labels": object{"a": "1"}}}}},
		},
		{"a list of objects", deployment, object{"items": []any{object{"nodeSelector": object{"a": float64(0)}}}}, object{"items": []any{object{"nodeSelector": object{"a": "0"}}}}},
		{"data of another kind", deployment, object{"data": object{"a": float64(1)}}, object{"data": object{"a": float64(1)}}},
		{"a kind of that name in another group", policy.ObjectKind{APIVersion: "example.com/v1", Kind: "ConfigMap"}, object{"data": object{"a": float64(1)}}, object{"data": object{"a": float64(1)}}},
		{"what no text can be", configMap, object{"metadata": object{"labels": object{"a": object{}}}, "data": []any{float64(1)}}, object{"metadata": object{"labels": object{"a": object{}}}, "data": []any{float64(1)}}},
	} {
		toTexts(row.before, row.kind)
		if !reflect.DeepEqual(row.before, row.want) {
			t.Errorf("%s: %v", row.reason, row.before)
		}
	}
}
