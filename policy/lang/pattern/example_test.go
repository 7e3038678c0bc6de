package pattern_test

import (
	"bytes"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func ExamplePattern_Match() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := pattern.Compile(engine, map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"(image)": "{{ registry }}/* | quay.io/*", "resources": map[string]any{"limits": map[string]any{"memory": "<=1Gi"}}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	container := func(image, memory string) any {
		return map[string]any{"image": image, "resources": map[string]any{"limits": map[string]any{"memory": memory}}}
	}
	r := p.Match(variable.Context{"registry": "ghcr.io"}, map[string]any{"spec": map[string]any{"containers": []any{
		container("docker.io/library/nginx", "8Gi"), container("ghcr.io/example/app", "2Gi"),
	}}})
	fmt.Println(r.Held, r.Path, r.Why)
	// Output: false /spec/containers/1/resources/limits/memory/ expected "<=1Gi", found "2Gi"
}
