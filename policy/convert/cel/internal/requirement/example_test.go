package requirement_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
)

func ExampleOf() {
	deny := map[string]any{"all": []any{map[string]any{"key": "{{ request.object.metadata.labels.team || '' }}", "operator": "Equals", "value": ""}}}
	made, err := requirement.Of(requirement.Rule{Message: "{{ request.object.kind }} without a team", Deny: &requirement.Deny{Conditions: deny}},
		jmespath.Scope{Operations: []string{"CREATE", "UPDATE"}})
	if err != nil {
		panic(err)
	}
	fmt.Println(made.Validation.Expression)
	fmt.Println(made.Validation.MessageExpression)
	// Output:
	// object.metadata.?labels.?team.orValue('') != ''
	// object.kind + ' without a team'
}
