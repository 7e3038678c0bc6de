package record_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// The API servers evaluate one version of a policy; the next one has its webhook until they evaluate that.
func ExampleStates_Enforces() {
	states, err := record.DecodeStates(map[string]string{
		record.Key: `{"ValidatingPolicy/no-host-paths": {"hash": "ab12", "native": true, "objects": "ef56"}}`,
	})
	fmt.Println(err, states.Enforces("ValidatingPolicy/no-host-paths", "ab12"), states.Enforces("ValidatingPolicy/no-host-paths", "cd34"))
	// Output: <nil> true false
}
