package podsecurity

import "testing"

// TestQuantitiesAreNotRead: an exponent takes minutes to be parsed. The sorts of the volumes stay.
func TestQuantitiesAreNotRead(t *testing.T) {
	const endless = "1e-99999999"
	list := map[string]any{"cpu": endless}
	claim := map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": list}}}
	items := []any{map[string]any{"path": "a", "resourceFieldRef": map[string]any{"resource": "limits.cpu", "divisor": endless}}}
	spec := map[string]any{
		"overhead": list, "resources": map[string]any{"limits": list},
		"containers": []any{map[string]any{"name": "a", "resources": map[string]any{"limits": list}}},
		"volumes": []any{
			map[string]any{"name": "a", "emptyDir": map[string]any{"sizeLimit": endless}},
			map[string]any{"name": "b", "ephemeral": map[string]any{"volumeClaimTemplate": claim}},
			map[string]any{"name": "c", "downwardAPI": map[string]any{"items": items}},
			map[string]any{"name": "d", "projected": map[string]any{"sources": []any{map[string]any{"downwardAPI": map[string]any{"items": items}}}}},
			map[string]any{"name": "e", "hostPath": map[string]any{"path": "/"}},
		},
	}
	read, err := NewPod(nil, spec, "").decode()
	if err != nil {
		t.Fatal(err)
	}
	v := read.spec.Volumes
	if len(v) != 5 || v[0].EmptyDir == nil || v[1].Ephemeral == nil || v[2].DownwardAPI == nil || v[3].Projected == nil || v[4].HostPath == nil {
		t.Errorf("%+v", v)
	}
	if _, kept := spec["volumes"].([]any)[0].(map[string]any)["emptyDir"].(map[string]any)["sizeLimit"]; !kept {
		t.Error("the pod was changed")
	}
}
