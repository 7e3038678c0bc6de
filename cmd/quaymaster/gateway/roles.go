package gateway

import (
	"fmt"
	"slices"
	"strings"
)

// The roles of a process. One process may have all of them; docs/roles.md says what each
// needs of the cluster.
const (
	// RoleAdmission answers the API server and whoever else asks at a door, keeps the
	// webhook configurations, and tells the state of policies and mirrors.
	RoleAdmission = "admission"
	// RoleScan looks at what runs already.
	RoleScan = "scan"
	// RoleReport writes reports and serves the dashboard, of what the process itself
	// decides.
	RoleReport = "report"
	// RoleBackground brings about what rules about other objects want.
	RoleBackground = "background"
)

// Roles are all there are, in the order in which they are documented.
func Roles() []string { return []string{RoleAdmission, RoleScan, RoleReport, RoleBackground} }

// The Leases by which leaders are elected. Who has admission leads by the first,
// whatever else it does; so a process of today's configuration and one of all roles are
// rivals for the same. The others have Leases of their own, so that the leader of one
// Deployment never holds back the work of another.
const (
	leaderLease           = "quaymaster"
	scanLeaderLease       = "quaymaster-scan-leader"
	backgroundLeaderLease = "quaymaster-background-leader"
)

// ParseRoles reads the roles of a command line, as in "scan,report".
func ParseRoles(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	if text == "" {
		list = []string{}
	}
	return list, checkRoles(list)
}

// checkRoles refuses roles that are none, and those that would have nothing to do.
func checkRoles(list []string) error {
	all := strings.Join(Roles(), ",")
	if len(list) == 0 {
		return fmt.Errorf("roles: there are none: name some of %s, or leave roles out for all of them", all)
	}
	for i, role := range list {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("roles: %q is none: want some of %s, or leave roles out for all of them", role, all)
		}
		if slices.Contains(list[:i], role) {
			return fmt.Errorf("roles: %s is named twice: name it once", role)
		}
	}
	if slices.Contains(list, RoleReport) && !slices.Contains(list, RoleAdmission) && !slices.Contains(list, RoleScan) {
		return fmt.Errorf("roles: a process with %s reports what it decides itself, and this one would decide nothing: give it %s or %s as well", RoleReport, RoleScan, RoleAdmission)
	}
	return nil
}

// Assign gives a configuration other roles than it names. An error says why they do not
// go together with it.
func (c *Configuration) Assign(roles []string) error {
	c.Roles = roles
	return c.check()
}

// has reports whether the process has any of the roles; one that names none has all.
func (c *Configuration) has(roles ...string) bool {
	return c.Roles == nil || slices.ContainsFunc(roles, func(role string) bool { return slices.Contains(c.Roles, role) })
}

// checkRoles refuses what a configuration's roles contradict. Settings of roles that the
// process does not have are no contradiction: several Deployments may share a file.
func (c *Configuration) checkRoles(found *complaints) {
	if c.Roles == nil {
		return
	}
	if err := checkRoles(c.Roles); err != nil {
		*found = append(*found, err)
		return
	}
	found.refuse(c.Standalone && !c.has(RoleAdmission), "roles: standalone, there is no cluster to look at, and nothing to do without %s: add it, or leave roles out", RoleAdmission)
}

// lease is the Lease by which the leader among processes of the same roles is elected.
func (c *Configuration) lease() string {
	switch {
	case c.has(RoleAdmission):
		return leaderLease
	case c.has(RoleScan):
		return scanLeaderLease
	}
	return backgroundLeaderLease
}

// follows reports whether the scan follows changes: where nobody says, where what
// admission decides does not reach this process.
func (c *Configuration) follows() bool {
	if c.Scan.Follow != nil {
		return *c.Scan.Follow
	}
	return c.has(RoleScan) && !c.has(RoleAdmission)
}
