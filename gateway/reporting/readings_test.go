package reporting

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// other is a rule about other objects, for triggers of a kind under one operation.
type other struct {
	policy.Generation
	policy.Alteration
	name, kind, subresource, operation string
}

func (o other) Name() string { return o.name }

func (o other) Targets() []policy.Target {
	return []policy.Target{{Group: "*", Version: "*", Kind: o.kind}}
}

func (o other) Selects(s *policy.Subject) bool {
	return s.Kind+"/"+s.Subresource == o.kind+"/"+o.subresource && s.Operation == o.operation
}

func (o other) NeedsRequester() bool { return false }

// TestAboutOthers: the rules about other objects that may have a result for an object.
func TestAboutOthers(t *testing.T) {
	active, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{
		Generations: []policy.Generation{other{name: "created", kind: "Pod", operation: "CREATE"}, other{name: "updated", kind: "Pod", operation: "UPDATE"},
			other{name: "bound", kind: "Pod", subresource: "binding", operation: "CREATE"}, other{name: "scaled", kind: "Pod", subresource: "scale", operation: "UPDATE"}},
		Alterations: []policy.Alteration{other{name: "altered", kind: "ConfigMap", operation: "CREATE"}},
	}}, &policy.Policy{Kind: "ClusterPolicy", Name: "q"})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"Pod": "created updated bound altered", "Secret": "altered"} {
		var got []string
		for _, r := range AboutOthers(func() *set.Set { return active })(&policy.Subject{Version: "v1", Kind: kind}) {
			got = append(got, r.Rule)
			if r.Policy.Kind != "ClusterPolicy" || r.Policy.Name != "p" {
				t.Errorf("%s: of %+v", kind, r.Policy)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", kind, got, want)
		}
	}
	if list := AboutOthers(func() *set.Set { return nil })(&policy.Subject{Kind: "Pod"}); len(list) != 0 {
		t.Errorf("before the policies are loaded: %v", list)
	}
}
