package term_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

func ExampleList_Exists() {
	containers := term.ListOf(term.At("object.spec.containers", shape.OfList(shape.Unknown())), "container")
	fmt.Println(containers.Exists(true, func(container term.Term) (string, term.Rank) {
		return "container.image == 'web'", term.Relation
	}))
	fmt.Println(term.Literal([]any{"a", 1.0, 2.5, true, nil}))
	// Output:
	// object.spec.containers.exists(container, container.image == 'web')
	// ['a', 1, 2.5, true, null]
}
