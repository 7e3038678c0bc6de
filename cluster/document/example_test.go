package document_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/cluster/document"
)

func ExampleKey() {
	fmt.Println(document.Key{Group: "kyverno.io", Resource: "policies", Namespace: "shop", Name: "signed"})
	fmt.Println(document.Key{Group: "kyverno.io", Resource: "clusterpolicies", Name: "signed"})
	// Output:
	// policies.kyverno.io shop/signed
	// clusterpolicies.kyverno.io signed
}
