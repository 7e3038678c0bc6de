package config

import (
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/required"
	"github.com/quaymaster/quaymaster/policy"
)

// Required compiles the requirements into a policy; nil for none.
func (c *Configuration) Required() (*policy.Policy, error) {
	return required.Policy(c.Requirements, c.Trust.Builders)
}
