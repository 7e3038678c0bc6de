package config

import (
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
)

// Requirement is an entry of requirements (docs/requirements.md). At least one of the ages is set.
type Requirement struct {
	// Patterns of images, as in policies: registry.example/shop/*, or * for every image.
	Images []string `json:"images"`
	// Patterns of namespaces. Default: all objects.
	Namespaces []string `json:"namespaces,omitempty"`
	// Deny an image until its first verified signature or attestation is this old (cool-down). The
	// time is a transparency log's or a timestamp authority's; an image with neither is denied, and so
	// is one that no policy verifies.
	MinimumAge Duration `json:"minimumAge,omitempty"`
	// Count no signature and no attestation that is older (freshness), by the same clocks.
	MaximumAge Duration `json:"maximumAge,omitempty"`
}

// Required compiles the requirements into a policy; nil for none.
func (c *Configuration) Required() (*policy.Policy, error) {
	var list []requirements.Requirement
	for i, r := range c.Requirements {
		list = append(list, requirements.Requirement{
			Path: fmt.Sprintf("requirements[%d]", i), Images: r.Images, Namespaces: r.Namespaces,
			MinimumAge: time.Duration(r.MinimumAge), MaximumAge: time.Duration(r.MaximumAge),
		})
	}
	return requirements.Compile("Settings", "the setting requirements", list)
}
