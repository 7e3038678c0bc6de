package kyvernocel_test

import (
	"encoding/json"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// TestCreated: a trigger that came after its policy counts, although it was listed before it was watched.
func TestCreated(t *testing.T) {
	for text, want := range map[string]int64{`, "creationTimestamp": "2026-03-14T08:26:53Z"`: 1773476813, `, "creationTimestamp": null`: 0, "": 0} {
		data := []byte(`{"apiVersion": "policies.kyverno.io/v1", "kind": "GeneratingPolicy", "metadata": {"name": "a"` + text + `}}`)
		var head kyvernocel.Head
		if err := json.Unmarshal(data, &head); err != nil {
			t.Fatal(err)
		}
		made, err := head.NewPolicy(data, "GeneratingPolicy", "test")
		if err != nil || made.Created.IsZero() != (want == 0) || want != 0 && made.Created.Unix() != want {
			t.Errorf("%s: %v, %v", text, made, err)
		}
	}
}
