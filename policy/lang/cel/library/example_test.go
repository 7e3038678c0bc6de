package library_test

import (
	"fmt"

	"github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

func Example() {
	env, err := cel.NewEnv(library.Functions()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	ast, issues := env.Compile("image('nginx:1.27').registry() + ' ' + hash.sha1('abc')")
	if issues.Err() != nil {
		fmt.Println(issues.Err())
		return
	}
	program, err := env.Program(ast)
	if err != nil {
		fmt.Println(err)
		return
	}
	value, _, err := program.Eval(map[string]any{"json": library.JSON(), "yaml": library.YAML()})
	fmt.Println(value, err)
	// Output: index.docker.io a9993e364706816aba3e25717850c26c9cd0d89d <nil>
}
