package cel_test

import (
	"context"
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

func Example() {
	text := celgo.StringType
	env, err := cel.NewEnv(cel.Options{
		Variables: []cel.Variable{{Name: "images", Type: celgo.ListType(text)}},
		Functions: []cel.Function{{
			Name:      "signatures",
			Overloads: []cel.Overload{{ID: "signatures_string", Arguments: []*celgo.Type{text}, Result: celgo.IntType}},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	scope, err := env.NewScope()
	if err != nil {
		fmt.Println(err)
		return
	}
	signed, err := scope.Compile("spec.validations[0].expression", "images.all(i, signatures(i) > 0)", celgo.BoolType)
	if err != nil {
		fmt.Println(err)
		return
	}
	signatures := func(_ context.Context, arguments []ref.Val) (any, error) {
		if arguments[0].Value() == "ghcr.io/app:2" {
			return cel.Count{Lower: 0, Upper: 1, Gaps: []error{errors.New("ghcr.io does not answer")}}, nil
		}
		return 1, nil
	}
	for _, images := range [][]any{{"ghcr.io/app:1"}, {"ghcr.io/app:1", "ghcr.io/app:2"}} {
		fmt.Println(signed.Bool(context.Background(), scope.NewActivation(cel.Inputs{
			Variables: map[string]any{"images": images},
			Functions: map[string]cel.Call{"signatures": signatures},
		})))
	}
	_, err = scope.Compile("spec.validations[1].expression", "images.all(i, signed(i))", celgo.BoolType)
	fmt.Println(err)
	// Output:
	// true <nil>
	// false spec.validations[0].expression: indeterminate: ghcr.io does not answer
	// spec.validations[1].expression: ERROR: <input>:1:21: undeclared reference to 'signed' (in container '')
	//  | images.all(i, signed(i))
	//  | ....................^
}
