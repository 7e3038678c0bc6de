package predicate_test

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/predicate"
)

func ExampleParseProvenance() {
	provenance, err := predicate.ParseProvenance(attest.Statement{
		PredicateType: attest.PredicateSLSAv1,
		Predicate: json.RawMessage(`{
			"buildDefinition": {
				"buildType": "https://actions.github.io/buildtypes/workflow/v1",
				"resolvedDependencies": [{"uri": "git+https://github.com/example/app@refs/heads/main"}]
			},
			"runDetails": {"builder": {"id": "https://github.com/actions/runner/github-hosted"}}
		}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("built by", provenance.BuilderID)
	fmt.Println("from", provenance.Source().URI)
	// Output:
	// built by https://github.com/actions/runner/github-hosted
	// from git+https://github.com/example/app@refs/heads/main
}
