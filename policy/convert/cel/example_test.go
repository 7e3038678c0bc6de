package cel_test

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/workload"
)

func ExampleConvert() {
	objects, err := workload.ReadDocuments(strings.NewReader(strings.Replace(readOnly, "Enforce", "Audit", 1)), "policy.yaml")
	if err != nil {
		panic(err)
	}
	result, err := cel.Convert(objects, cel.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(len(result.Policies), result.Policies[0].Name, len(result.Problems))
	// Output: 1 read-only 0
}
