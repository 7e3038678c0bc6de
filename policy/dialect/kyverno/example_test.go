package kyverno_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func ExampleCompiler_Compile() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		fmt.Println(err)
		return
	}
	compiled, err := compiler.Compile([]byte(minimal), "minimal.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	subject := &policy.Subject{Object: policy.ContentOf(map[string]any{}), Version: "v1", Kind: "Pod", Operation: "CREATE"}
	web := policy.Image{Container: "web", Role: "container", Ref: image.MustParse("ghcr.io/org/app:v1")}
	plan, err := compiled.Rules[0].Plan(context.Background(), subject, []policy.Image{web})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, member := range plan.Checks[0].Requirements[0].Members {
		fmt.Println(member.Authority.Name, member.Authority.Keyless.Identities[0])
	}
	// Output: attestors[0].entries[0].keyless ann@example.com (https://issuer.example)
}
