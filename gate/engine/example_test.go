package engine_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
)

const documents = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  validationFailureAction: Enforce
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: "label the Pod with its team"
      pattern: {metadata: {labels: {team: "?*"}}}
`

const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: web, image: nginx:1.27}]}
`

// A program evaluates the policies of files as the command line does.
func Example() {
	policies, err := workload.Read(strings.NewReader(documents), "policies.yaml")
	if err != nil {
		panic(err)
	}
	resources := engine.NewResources()
	compiled, err := engine.CompileDocuments(policies, resources, true, time.Now)
	if err != nil {
		panic(err)
	}
	set, err := compiled.Set()
	if err != nil {
		panic(err)
	}
	store, err := trust.New(trust.Options{Secrets: resources})
	if err != nil {
		panic(err)
	}
	prover, err := engine.NewProver(store.Snapshot())
	if err != nil {
		panic(err)
	}
	client, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	registries := engine.NewClientRegistries(client, resources, func(string) string { return "" })
	g, err := gate.New(gate.Config{Registries: registries, State: gate.Fixed{Policies: set, Prover: prover}})
	if err != nil {
		panic(err)
	}
	objects, err := workload.Read(strings.NewReader(pod), "pod.yaml")
	if err != nil {
		panic(err)
	}
	fmt.Println(g.Decide(context.Background(), gate.Request{Object: objects[0]}).Result)
	// Output: deny
}
