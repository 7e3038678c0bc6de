package evaluation_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

func ExampleInNamespace() {
	pod, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(evaluation.InNamespace([]workload.Object{pod}, "shop", constraint.Known())[0])
	// Output: Pod shop/web
}

func TestInNoNamespace(t *testing.T) {
	t.Parallel()
	definition, err := workload.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"x"},
		"spec":{"group":"example.com","scope":"Cluster","names":{"kind":"Wide","plural":"wides"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	wide, ok := constraint.Defined(definition)
	if !ok {
		t.Fatal("a definition defines no kind")
	}
	kinds := append(constraint.Known(), wide)
	for _, c := range []struct {
		group, kind string
		want        bool
	}{
		{"", "Pod", false}, {"", "Namespace", true}, {"example.com", "Wide", true}, {"other.example", "Wide", false},
		{"kyverno.io", "ClusterPolicy", true}, {"kyverno.io", "Policy", false},
	} {
		if got := evaluation.InNoNamespace(kinds, c.group, c.kind); got != c.want {
			t.Errorf("%s/%s in no namespace: %t", c.group, c.kind, got)
		}
	}
	if _, ok := constraint.Defined(workload.Object{}); ok {
		t.Error("nothing defines a kind")
	}
}

func TestWorse(t *testing.T) {
	t.Parallel()
	for i, order := 0, []string{evaluation.Skip, evaluation.Pass, evaluation.Warn, evaluation.Error, evaluation.Fail}; i+1 < len(order); i++ {
		if !evaluation.Worse(order[i+1], order[i]) || evaluation.Worse(order[i], order[i+1]) || evaluation.Worse(order[i], order[i]) {
			t.Errorf("%s and %s", order[i], order[i+1])
		}
	}
}
