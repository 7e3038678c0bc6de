package condition_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
)

func ExampleCompileDeny() {
	admits, _, err := condition.CompileDeny(map[string]any{"any": []any{
		map[string]any{"key": "{{ request.object.metadata.labels.team || '' }}", "operator": "Equals", "value": ""},
	}}, jmespath.Scope{})
	if err != nil {
		panic(err)
	}
	fmt.Println(admits.Text)
	// Output: object.metadata.?labels.?team.orValue('') != ''
}
