package gateway

import (
	"net/http"

	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// The modes.
const (
	modeEnforce = "enforce"
	modeShadow  = "shadow"
)

func (c *Configuration) checkMode(found *complaints) {
	found.refuse(c.Mode != modeEnforce && c.Mode != modeShadow, "mode: %q: want %s or %s", c.Mode, modeEnforce, modeShadow)
}

func (c *Configuration) shadow() bool { return c.Mode == modeShadow }

// cutsOver reports whether namespaces can be taken out of the shadow: a gateway that manages the
// webhook configurations selects the path for each namespace.
func (c *Configuration) cutsOver() bool { return !c.Standalone && !c.Webhooks.Disabled }

// shadows reports whether nothing is refused at a path: neither by a verdict nor because
// the decision log cannot be written.
func (c *Configuration) shadows(path string) bool {
	switch path {
	case configuration.ShadowPath, configuration.ShadowDocumentsPath:
		return true
	case configuration.MutatePath, configuration.ValidatePath, configuration.DocumentsPath:
		return c.shadow() && !c.cutsOver()
	case imageReviewPath, dataVerifyPath, dataMutatePath:
		return c.shadow()
	}
	return false
}

// modeDoors are the endpoints of the API server's webhooks.
type modeDoors struct {
	mutate, validate *admission.Handler
	policies         *admission.PolicyHandler
}

// byPath returns the endpoints and their shadows. Both exist in either mode. While replicas of
// both modes serve, or the configurations are not written yet, only the path, and so the API
// server's own selector, determines the mode.
func (d modeDoors) byPath(c Configuration) (map[string]http.Handler, error) {
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
	if !c.shadow() || c.cutsOver() {
		return doors, nil
	}
	// These paths are registered without a selector by the label, outside the gateway's control.
	// The second endpoint combines the results of both.
	nobody, err := admission.NewShadow()
	doors[configuration.MutatePath], doors[configuration.ValidatePath], doors[configuration.DocumentsPath] = nobody, objects, policies
	return doors, err
}
