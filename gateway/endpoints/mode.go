package endpoints

import (
	"net/http"

	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// Modes are the endpoints of the API server's webhooks.
type Modes struct {
	Mutate, Validate *admission.Handler
	Policies         *admission.PolicyHandler
}

// NewModes makes the endpoints.
func NewModes(objects admission.Config, documents admission.PolicyConfig) (made Modes, err error) {
	for endpoint, handler := range map[admission.Endpoint]**admission.Handler{admission.Mutate: &made.Mutate, admission.Validate: &made.Validate} {
		objects.Endpoint = endpoint
		*handler, err = admission.New(objects)
		if err != nil {
			return made, err
		}
	}
	made.Policies, err = admission.NewPolicies(documents)
	return made, err
}

// ByPath returns the endpoints and their shadows. Both exist in either mode. While replicas of
// both modes serve, or the configurations are not written yet, only the path, and so the API
// server's own selector, determines the mode.
func (d Modes) ByPath(onlyShadow bool) (map[string]http.Handler, error) {
	objects, err := admission.NewShadow(d.Mutate, d.Validate)
	if err != nil {
		return nil, err
	}
	policies, err := admission.NewPolicyShadow(d.Policies)
	if err != nil {
		return nil, err
	}
	handlers := map[string]http.Handler{
		configuration.MutatePath: d.Mutate, configuration.ValidatePath: d.Validate, configuration.DocumentsPath: d.Policies,
		configuration.ShadowPath: objects, configuration.ShadowDocumentsPath: policies,
	}
	if !onlyShadow {
		return handlers, nil
	}
	// These paths are registered without a selector by the label, outside the gateway's control.
	// The second endpoint combines the results of both.
	admitsAll, err := admission.NewShadow()
	handlers[configuration.MutatePath], handlers[configuration.ValidatePath], handlers[configuration.DocumentsPath] = admitsAll, objects, policies
	return handlers, err
}
