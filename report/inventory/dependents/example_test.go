package dependents_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/report/inventory/dependents"
)

func ExampleParseQuery() {
	for _, name := range []string{"policy:ClusterPolicy/signed", "release@shop.example"} {
		query, err := dependents.ParseQuery(name)
		if err != nil {
			panic(err)
		}
		fmt.Printf("policy %q, signer %q\n", query.Policy, query.Signer)
	}
	// Output:
	// policy "ClusterPolicy/signed", signer ""
	// policy "", signer "release@shop.example"
}
