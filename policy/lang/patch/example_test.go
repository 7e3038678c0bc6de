package patch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	// As in a policy: always pull images with the tag latest.
	merge, err := patch.CompileMerge(engine, map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"(image)": "*:latest", "imagePullPolicy": "{{ pull }}"},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{
		map[string]any{"name": "app", "image": "app:latest"},
	}}}
	patched, err := merge.Apply(variable.Context{"pull": "Always"}, pod)
	if err != nil {
		fmt.Println(err)
		return
	}
	operations, err := json.Marshal(patch.Diff(pod, patched))
	fmt.Println(string(operations), err)
	// Output: [{"op":"add","path":"/spec/containers/0/imagePullPolicy","value":"Always"}] <nil>
}
