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

// cutsOver reports whether namespaces can be taken out of the shadow: who keeps the
// webhook configurations says at which path is asked about them.
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

// modeDoors are the doors that the API server's webhooks lead to.
type modeDoors struct {
	mutate, validate *admission.Handler
	policies         *admission.PolicyHandler
}

// byPath returns the doors and their shadows. Both are there in either mode: while
// replicas of both serve, or the configurations wait to be written, it is the path alone
// that says what is meant, and so the API server's own selector.
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
	// Somebody else wrote these paths down, and no selector by the label with them.
	// What is asked at the second one is what both say.
	nobody, err := admission.NewShadow()
	doors[configuration.MutatePath], doors[configuration.ValidatePath], doors[configuration.DocumentsPath] = nobody, objects, policies
	return doors, err
}
