package template_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/template"
)

func ExampleSplit() {
	parts, ok := template.Split(`\{{ no variable: {{ request.object.data.{{ request.namespace }} }}`)
	for _, p := range parts {
		fmt.Printf("%q %t\n", p.Text, p.Expression)
	}
	_, isOpen := template.Split("{{ request")
	fmt.Println(ok, isOpen)
	// Output:
	// "{{ no variable: " false
	// " request.object.data.{{ request.namespace }} " true
	// true false
}
