// Command record evaluates a grid of conditions with Kyverno's own operators. It is no part of this module: in an empty
// folder with this file,
//
//	go mod init record
//	go get github.com/kyverno/kyverno/pkg/engine/variables/operator@v1.19.1
//	go run . <kyverno-1.19.1.json >recorded.json
//
// It reads the keys, the values and the operators of the file, and writes the file with the results anew: for each
// operator and key a text with a character for each value, 1 held, 0 not held, p a panic.
package main

import (
	"encoding/json"
	"os"

	"github.com/go-logr/logr"
	kyvernov1 "github.com/kyverno/kyverno/api/kyverno/v1"
	"github.com/kyverno/kyverno/pkg/engine/variables/operator"
)

type grid struct {
	Source    string              `json:"source"`
	Keys      []any               `json:"keys"`
	Values    []any               `json:"values"`
	Operators []string            `json:"operators"`
	Results   map[string][]string `json:"results"`
}

func main() {
	var g grid
	if err := json.NewDecoder(os.Stdin).Decode(&g); err != nil {
		panic(err)
	}
	g.Results = map[string][]string{}
	for _, name := range g.Operators {
		for _, key := range g.Keys {
			row := ""
			for _, value := range g.Values {
				row += evaluate(name, key, value)
			}
			g.Results[name] = append(g.Results[name], row)
		}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(g); err != nil {
		panic(err)
	}
}

func evaluate(name string, key, value any) (result string) {
	defer func() {
		if recover() != nil {
			result = "p"
		}
	}()
	if operator.CreateOperatorHandler(logr.Discard(), nil, kyvernov1.ConditionOperator(name)).Evaluate(key, value) {
		return "1"
	}
	return "0"
}
