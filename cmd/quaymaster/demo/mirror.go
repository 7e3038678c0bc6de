package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/report"
)

// startMirror starts a mirror of the demo's registry. It serves an identical copy of one of two
// signed images, and a different image in place of the second. startMirror writes mirrors.yaml, and
// the caller closes the server.
func startMirror(folder, registry string) (*registrytest.Server, error) {
	server, err := registrytest.Listen(registrytest.Options{})
	if err != nil {
		return nil, err
	}
	copies := gatetest.New(server, nil)
	copies.Build("copies/shop/web", "v1", "web")
	copies.Build("copies/shop/api", "v1", "api, as somebody changed it")
	mapping := fmt.Sprintf(`apiVersion: quaymaster.dev/v1alpha1
kind: RegistryMirror
metadata: {name: demo}
spec:
  mirrors:
    - sources: [%q]
      targets: [{location: %q}]
`, registry, server.Host()+"/copies")
	if err := os.WriteFile(filepath.Join(folder, "mirrors.yaml"), []byte(mapping), 0o600); err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}

// demoMirror prints the registry that each of the two images would be pulled from.
func demoMirror(ctx context.Context, t command.Terminal, folder, registry, mirror string) error {
	inputs := demoSetup(folder)
	inputs.Mirrors = []string{filepath.Join(folder, "mirrors.yaml")}
	requests := make([]gate.Request, 2)
	for i, name := range []string{"web", "api"} {
		var err error
		requests[i], err = gate.ForImage(registry+"/shop/"+name+":v1", "default")
		if err != nil {
			return err
		}
	}
	wired, err := inputs.NewEngine(ctx, t, &authority.Flags{}, requests)
	if err != nil {
		return err
	}
	outcomes := wired.Gate.DecideAll(ctx, requests, nil)
	fmt.Fprintf(t.Out, "\nA mirror on %s: it serves an identical copy of web, and a different image as api.\n\n", mirror)
	if err := report.Text(t.Out, outcomes, report.TextOptions{Color: t.Color()}); err != nil {
		return err
	}
	for i, redirected := range []bool{true, false} {
		if !outcomes[i].Result.Admits() || outcomes[i].Verdicts[0].Redirect == nil || outcomes[i].Verdicts[0].Redirect.Target.IsZero() == redirected {
			return fmt.Errorf("%s: redirected was to be %t", outcomes[i].Verdicts[0].Image.Ref, redirected)
		}
	}
	return nil
}
