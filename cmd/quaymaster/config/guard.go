package config

import (
	"slices"
)

// GuardEnabled and GuardDisabled are the values of the setting guard.
const (
	GuardEnabled  = "enabled"
	GuardDisabled = "disabled"
)

// The sources in policies.audit, in addition to paths.
const (
	AuditCluster = "cluster"
	AuditFolders = "folders"
)

// Guards reports whether policies are checked before they deny.
func (c *Configuration) Guards() bool { return c.Guard == GuardEnabled }

func (c *Configuration) checkGuard(found *complaints) {
	found.refuse(!slices.Contains([]string{"", GuardEnabled, GuardDisabled}, c.Guard), "guard: %q: want enabled or disabled", c.Guard)
	found.refuse(c.Guards() && c.Standalone, "guard: without a cluster nothing runs that a policy could be tried against")
	for _, source := range c.Policies.Audit {
		named := source == AuditCluster || source == AuditFolders || slices.Contains(c.Policies.Folders, source)
		found.refuse(!named, "policies.audit: %q: want cluster, folders, or one of policies.folders", source)
		found.refuse(source == AuditCluster && c.Standalone, "policies.audit: cluster: running standalone, there is none")
	}
}
