package config

import (
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// The modes.
const (
	ModeEnforce = "enforce"
	ModeShadow  = "shadow"
)

func (c *Configuration) checkMode(found *complaints) {
	found.refuse(c.Mode != ModeEnforce && c.Mode != ModeShadow, "mode: %q: want %s or %s", c.Mode, ModeEnforce, ModeShadow)
}

// Shadow reports whether nothing is denied or changed.
func (c *Configuration) Shadow() bool { return c.Mode == ModeShadow }

// CutsOver reports whether namespaces can be taken out of the shadow: a gateway that manages the
// webhook configurations selects the path for each namespace.
func (c *Configuration) CutsOver() bool { return !c.Standalone && !c.Webhooks.Disabled }

// Shadows reports whether nothing is refused at a path: neither by a verdict nor because
// the decision log cannot be written.
func (c *Configuration) Shadows(path string) bool {
	switch path {
	case configuration.ShadowPath, configuration.ShadowDocumentsPath:
		return true
	case configuration.MutatePath, configuration.ValidatePath, configuration.DocumentsPath:
		return c.Shadow() && !c.CutsOver()
	case ImageReviewPath, DataVerifyPath, DataMutatePath:
		return c.Shadow()
	}
	return false
}
