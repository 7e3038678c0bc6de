package admissionrequest_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
)

// FuzzOf reads foreign requests. A member that is taken away from a partial request is
// unknown or follows from the subject: it has the value that it has where nothing came, and
// no other member changes.
func FuzzOf(f *testing.F) {
	f.Add(`{"operation": "CREATE", "userInfo": {"username": "ann", "extra": {"a": ["b"]}}, "kind": {"kind": "Pod"}}`, "userInfo", false)
	f.Add(`{"resource": {"resource": "pods"}, "options": null, "roles": ["a"], "object": {"a": "b"}, "dryRun": true}`, "options", true)
	f.Add(`{"requestResource": 1, "userInfo": ["x"], "resource": {"resource": null}, "": {}}`, "", false)
	f.Add(`[]`, "uid", true)
	f.Fuzz(func(t *testing.T, text, name string, bare bool) {
		whole := policy.Subject{Kind: "Pod", Version: "v1", Operation: "UPDATE", Shape: policy.Shape{Bare: bare}, Request: policy.RequestFrom([]byte(text))}
		came, err := admissionrequest.Of(&whole)
		if err == nil && came.Unknown([]string{name}) != nil && name != "roles" && name != "clusterRoles" {
			t.Errorf("%s of a whole request is unknown", name)
		}
		came.Members()
		var members map[string]any
		if json.Unmarshal([]byte(text), &members) != nil {
			return
		}
		less := maps.Clone(members)
		delete(less, name)
		with, without, none := partial(t, whole, members), partial(t, whole, less), partial(t, whole, nil)
		for other := range with.Members() {
			got, known := without.Member(other)
			from := with
			if other == name {
				from = none
			}
			if want, is := from.Member(other); known != is || !reflect.DeepEqual(got, want) {
				t.Errorf("without %s, %s is %v, %t, want %v, %t", name, other, got, known, want, is)
			}
			if !known && without.Unknown([]string{other}) == nil && with.Unknown([]string{other}) != nil {
				t.Errorf("without %s, %s is no longer unknown", name, other)
			}
		}
		if without.Unknown(nil) == nil {
			t.Error("all of a partial request is known")
		}
	})
}

func partial(t *testing.T, s policy.Subject, members map[string]any) admissionrequest.Variable {
	t.Helper()
	s.Request = policy.RequestOf(members)
	known, err := admissionrequest.Of(&s)
	if err != nil {
		t.Fatal(err)
	}
	return known
}
