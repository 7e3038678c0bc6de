package gate_test

import (
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/workload"
)

func TestForImages(t *testing.T) {
	for _, c := range []struct{ namespace, account, wantAccount, reason string }{
		{"shop", "builder", "builder", "all that may be known"},
		{"shop", "", "default", "the namespace's own account"},
		{"", "", "default", "no namespace"},
	} {
		request, err := gate.ForImages(c.namespace, c.account, []string{"nginx", "::", "nginx"})
		if err != nil {
			t.Fatal(err)
		}
		uses, err := workload.Extract(request.Object)
		if err != nil {
			t.Fatal(err)
		}
		var names, texts []string
		for _, use := range uses {
			names, texts = append(names, use.Container), append(texts, use.Text)
		}
		if !slices.Equal(names, []string{"0", "1", "2"}) || !slices.Equal(texts, []string{"nginx", "::", "nginx"}) {
			t.Errorf("%s: %v runs %v", c.reason, names, texts)
		}
		if id := workload.IdentityOf(request.Object); id.Namespace != c.namespace || id.ServiceAccount != c.wantAccount || !request.Subject.Bare {
			t.Errorf("%s: %+v, bare %t", c.reason, id, request.Subject.Bare)
		}
	}
	if request, err := gate.ForImage("nginx", "shop"); err != nil || request.Subject.Bare {
		t.Errorf("the command line's own object is whole: %+v, %v", request.Subject, err)
	}
}
