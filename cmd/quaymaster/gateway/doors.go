package gateway

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// newDoors makes the endpoints of the API server's webhooks by their paths.
func newDoors(c config.Configuration, objects admission.Config, documents admission.PolicyConfig) (doors map[string]http.Handler, err error) {
	objects.Controllers, objects.OnlyPods = mutated(c.Webhooks.MutateControllers), c.Webhooks.OnlyPods
	var made endpoints.Modes
	for endpoint, handler := range map[admission.Endpoint]**admission.Handler{admission.Mutate: &made.Mutate, admission.Validate: &made.Validate} {
		objects.Endpoint = endpoint
		*handler, err = admission.New(objects)
		if err != nil {
			return nil, err
		}
	}
	made.Policies, err = admission.NewPolicies(documents)
	if err != nil {
		return nil, err
	}
	return made.ByPath(c.Shadow() && !c.CutsOver())
}

// reproduce returns the command that explains a denial to a user.
func (g *assembly) reproduce() admission.Reproduce {
	if g.configuration.Standalone {
		return engine.ExplainFromFolders(g.configuration.Policies.Folders)
	}
	return engine.ExplainFromCluster(g.documents.Policies.Resources)
}

// requireCertificates requires client certificates at the endpoints that the settings select.
func requireCertificates(l config.Listen, open []string, doors map[string]webhook.Endpoint) error {
	if l.ClientCA == "" {
		return nil
	}
	authorities, err := os.ReadFile(l.ClientCA)
	if err != nil {
		return fmt.Errorf("listen.clientCA: %w", err)
	}
	callers, err := webhook.NewCallers(authorities, l.ClientNames...)
	if err != nil {
		return fmt.Errorf("listen.clientCA %s: %w", l.ClientCA, err)
	}
	asking := l.ClientEndpoints
	if len(asking) == 0 {
		asking = open
	}
	for _, path := range asking {
		door, ok := doors[path]
		if !ok {
			return fmt.Errorf("listen.clientEndpoints: there is no door %s: want one of %s", path, strings.Join(open, ", "))
		}
		door.Callers = callers
		doors[path] = door
	}
	return nil
}

// mutated gives the kinds of the settings their groups.
func mutated(kinds []string) []admission.Kind {
	groups := config.Controllers()
	var list []admission.Kind
	for _, kind := range kinds {
		list = append(list, admission.Kind{Group: groups[kind], Kind: kind})
	}
	return list
}
