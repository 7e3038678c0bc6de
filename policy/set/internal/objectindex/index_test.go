package objectindex_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set/internal/objectindex"
)

// about is a rule about objects of a kind.
type about string

func (a about) Name() string { return "about-" + string(a) }

func (a about) Targets() []policy.Target { return []policy.Target{{Version: "*", Kind: string(a)}} }

func Example() {
	var index objectindex.Index[about]
	index.Add(&policy.Policy{Kind: "Test", Name: "a"}, []about{"Pod", "Secret", "*"})
	index.Add(&policy.Policy{Kind: "Test", Name: "b", Namespace: "shop"}, []about{"Pod"})
	for _, namespace := range []string{"shop", "blog"} {
		fmt.Println(index.Of(&policy.Subject{Version: "v1", Kind: "Pod", Namespace: namespace, Operation: "CREATE"}))
	}
	// Output:
	// [0 2 3]
	// [0 2]
}
