package generate_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func Example() {
	var rule struct {
		Match    match.Document `json:"match"`
		Generate any            `json:"generate"`
	}
	err := yaml.Unmarshal([]byte(`
match: {any: [{resources: {kinds: [Namespace]}}]}
generate:
  apiVersion: v1
  kind: ConfigMap
  name: about
  namespace: "{{request.object.metadata.name}}"
  data: {data: {team: "{{request.object.metadata.name}}"}}
`), &rule)
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := generate.CompileGenerate(rulecontext.Options{Engine: engine}, generate.Settings{},
		generate.Rule{Name: "about", Path: "spec.rules[0]", Match: rule.Match}, rule.Generate)
	if err != nil {
		fmt.Println(err)
		return
	}
	made := g.Generate(context.Background(), policy.Case{Subject: &policy.Subject{
		Object:  policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}}),
		Version: "v1", Kind: "Namespace", Name: "shop", Operation: "CREATE",
	}})
	fmt.Println(made.Result, made.Objects[0].Object["data"])
	// Output: pass map[team:shop]
}
