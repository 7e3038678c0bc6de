package gate_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/set"
)

// A gateway without policies and trust decides nothing.
func ExampleCurrent() {
	var state gate.Current
	fmt.Println(state.Ready())

	policies, _ := set.New()
	state.ReplacePolicies(policies)
	fmt.Println(state.Ready())

	state.ReplaceProver(prover{})
	fmt.Println(state.Ready())
	// Output:
	// neither the policies nor the trusted roots and keys are loaded yet; try again in a moment
	// the trusted roots and keys are not loaded yet; try again in a moment
	// <nil>
}
