package gateway

import (
	"net/http"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// modeDoors are the endpoints of the API server's webhooks.
type modeDoors struct {
	mutate, validate *admission.Handler
	policies         *admission.PolicyHandler
}

// byPath returns the endpoints and their shadows. Both exist in either mode. While replicas of
// both modes serve, or the configurations are not written yet, only the path, and so the API
// server's own selector, determines the mode.
func (d modeDoors) byPath(c config.Configuration) (map[string]http.Handler, error) {
	objects, err := admission.NewShadow(d.mutate, d.validate)
	if err != nil {
		return nil, err
	}
	policies, err := admission.NewPolicyShadow(d.policies)
	if err != nil {
		return nil, err
	}
	doors := map[string]http.Handler{
		configuration.MutatePath: d.mutate, configuration.ValidatePath: d.validate, configuration.DocumentsPath: d.policies,
		configuration.ShadowPath: objects, configuration.ShadowDocumentsPath: policies,
	}
	if !c.Shadow() || c.CutsOver() {
		return doors, nil
	}
	// These paths are registered without a selector by the label, outside the gateway's control.
	// The second endpoint combines the results of both.
	nobody, err := admission.NewShadow()
	doors[configuration.MutatePath], doors[configuration.ValidatePath], doors[configuration.DocumentsPath] = nobody, objects, policies
	return doors, err
}
