package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TestAuditAnnotations: the API server drops an annotation unless its key is a
// qualified name without a slash.
func TestAuditAnnotations(t *testing.T) {
	long := strings.Repeat("long-", 30)
	for _, c := range []struct{ reason, key, want string }{
		{"a policy of the cluster", "ImageValidatingPolicy/signed/who", "ImageValidatingPolicy.signed.who"},
		{"a policy of a namespace", "NamespacedImageValidatingPolicy/shop/p/who", "NamespacedImageValidatingPolicy.shop.p.who"},
		{"a key that ends badly", "P/p/who-", "P.p.who"},
		{"a key of odd letters", "P/p/größe", "P.p.gr..e"},
		{"one that is too long", "P/p/" + long, "P.p.long-long-long-long-long-long-long-long-long-long-"},
		{"one that is nothing but odd letters", "///", "policy-"},
	} {
		notes := audit{answer: "allow", annotations: map[string]string{c.key: "value"}}
		var got struct {
			AuditAnnotations map[string]string `json:"auditAnnotations"`
		}
		if err := json.Unmarshal([]byte(`{"a":0`+string(notes.append(nil))+"}"), &got); err != nil || len(got.AuditAnnotations) != 2 {
			t.Errorf("%s: %v, %v", c.reason, got, err)
		}
		for key := range got.AuditAnnotations {
			if key != "result" && (!strings.HasPrefix(key, c.want) || strings.Contains(key, "/") || len(validation.IsQualifiedName(key)) > 0) {
				t.Errorf("%s: the key is %q, want %q", c.reason, key, c.want)
			}
		}
	}
	if annotationKey("P/p/"+long) == annotationKey("P/p/"+long+"x") {
		t.Error("two long keys are one")
	}
}

func TestAuditAnnotationsAreBounded(t *testing.T) {
	annotations := map[string]string{}
	for i := range 3 * maxAnnotations {
		annotations[fmt.Sprintf("P/p/key%02d", i)] = strings.Repeat("ä", maxAnnotation)
	}
	var got struct {
		AuditAnnotations map[string]string `json:"auditAnnotations"`
	}
	if err := json.Unmarshal([]byte(`{"a":0`+string(audit{answer: "deny", codes: "unsigned", annotations: annotations}.append(nil))+"}"), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.AuditAnnotations) != maxAnnotations+2 || got.AuditAnnotations["codes"] != "unsigned" {
		t.Errorf("%d annotations", len(got.AuditAnnotations))
	}
	if n := len(got.AuditAnnotations["P.p.key00"]); n == 0 || n > maxAnnotation+len("…") {
		t.Errorf("a value of %d bytes", n)
	}
}
