package scan_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

// Manifests are scanned like a cluster: what would be denied now?
func Example() {
	env, err := gatetest.NewEnv()
	if err != nil {
		panic(err)
	}
	defer env.Close()
	wanted, err := env.Policy(labelPolicy("labels", "Pod", ""))
	if err != nil {
		panic(err)
	}
	set, err := set.New(wanted)
	if err != nil {
		panic(err)
	}
	object, err := workload.Parse([]byte(pod("shop", "app", "registry.example/app:v1")))
	if err != nil {
		panic(err)
	}
	view := scan.NewView(gate.Fixed{Policies: set, Prover: env.Prover})
	decider, err := gate.New(gate.Config{Registries: env, State: view})
	if err != nil {
		panic(err)
	}
	scanner, err := scan.New(scan.Options{
		Cluster: scan.NewFiles([]workload.Object{object}, nil), Decider: decider, State: view, Namespaces: labelled{}, Observer: &watching{},
	})
	if err != nil {
		panic(err)
	}
	summary, err := scanner.Round(context.Background())
	fmt.Println(summary.Objects, "objects,", summary.Denied, "denied,", err)
	// Output: 1 objects, 1 denied, <nil>
}
