package naming_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/configuration/naming"
)

var usual = naming.Usual{Objects: 10, Records: 3, Shadow: 4}

func TestName(t *testing.T) {
	for _, row := range []struct {
		reason string
		class  naming.Class
		shadow bool
		want   string
	}{
		{"workloads", naming.Class{Closed: true, Seconds: 10, Spec: true}, false, "images"},
		{"workloads that are admitted without an answer", naming.Class{Seconds: 10, Spec: true}, false, "images-ignore"},
		{"objects", naming.Class{Closed: true, Seconds: 10}, false, "fail"},
		{"objects that are admitted without an answer", naming.Class{Seconds: 10}, false, "ignore"},
		{"Namespaces", naming.Class{Closed: true, Seconds: 10, Itself: true}, false, "namespaces"},
		{"Namespaces that are admitted without an answer", naming.Class{Seconds: 10, Itself: true}, false, "namespaces-ignore"},
		{"policies", naming.Class{Seconds: 10, Others: true}, false, "documents"},
		{"Events", naming.Class{Seconds: 3, Others: true, Record: true}, false, "records"},
		{"Events, with a shorter timeout", naming.Class{Seconds: 2, Others: true, Record: true}, false, "records-2s"},
		{"another timeout", naming.Class{Closed: true, Seconds: 30, Spec: true}, false, "images-30s"},
		{"a label", naming.Class{Closed: true, Seconds: 10, Spec: true, Labelled: true}, false, "images-labelled"},
		{"both", naming.Class{Closed: true, Seconds: 30, Spec: true, Labelled: true}, false, "images-30s-labelled"},
		{"a shadow of workloads never fails", naming.Class{Seconds: 4, Spec: true}, true, "images"},
		{"a shadow of objects", naming.Class{Seconds: 4}, true, "objects"},
		{"a shadow of Namespaces", naming.Class{Seconds: 4, Itself: true}, true, "namespaces"},
		{"a shadow of policies", naming.Class{Seconds: 4, Others: true}, true, "documents"},
		{"a shadow with the timeout of enforcement", naming.Class{Seconds: 10}, true, "objects-10s"},
	} {
		if got := row.class.Name(row.shadow, usual); got != row.want {
			t.Errorf("%s: %s, want %s", row.reason, got, row.want)
		}
	}
}

// TestApart: two webhooks never share a name, also if their sums begin alike.
func TestApart(t *testing.T) {
	brief := naming.Apart("images-own", "pods", nil)
	if again := naming.Apart("images-own", "pods", nil); again != brief {
		t.Errorf("the name changes from %s to %s", brief, again)
	}
	long := naming.Apart("images-own", "pods", map[string]bool{brief: true})
	if other := naming.Apart("images-own", "jobs", nil); long == brief || other == brief || len(brief) >= len(long) {
		t.Errorf("%s, %s and %s", brief, long, other)
	}
}

func ExampleClass_Name() {
	pods := naming.Class{Closed: true, Seconds: 10, Spec: true}
	fmt.Println(pods.Name(false, naming.Usual{Objects: 10, Records: 3, Shadow: 3}) + ".validate.quaymaster.dev")
	// Output: images.validate.quaymaster.dev
}
