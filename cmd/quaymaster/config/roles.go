package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
)

// The roles of a process; docs/roles.md lists the permissions that each needs in the cluster.
const (
	// RoleAdmission serves the API server and other clients, maintains the webhook
	// configurations, and reports the state of policies and mirrors.
	RoleAdmission = "admission"
	// RoleScan scans running workloads.
	RoleScan = "scan"
	// RoleReport writes reports and serves the dashboard, about the process's own decisions.
	RoleReport = "report"
	// RoleBackground runs rules about other objects.
	RoleBackground = "background"
	// RoleCleanup deletes objects by policies with a schedule, and at the end of their lifetime.
	RoleCleanup = "cleanup"
	// RoleNative writes the policies that the API server evaluates itself. No process has another role as well.
	RoleNative = "native"
)

// Roles are all there are, in the order in which they are documented.
func Roles() []string {
	return []string{RoleAdmission, RoleScan, RoleReport, RoleBackground, RoleCleanup, RoleNative}
}

// ParseRoles parses the roles of a command line, as in "scan,report".
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

// checkRoles refuses unknown roles, and roles without work.
func checkRoles(list []string) error {
	all := strings.Join(Roles(), ",")
	if len(list) == 0 {
		return fmt.Errorf("roles is empty: name some of %s, or leave roles out for all of them", all)
	}
	for i, role := range list {
		if !slices.Contains(Roles(), role) {
			return fmt.Errorf("roles: unknown role %q: want some of %s, or leave roles out for all of them", role, all)
		}
		if slices.Contains(list[:i], role) {
			return fmt.Errorf("roles: %s is named twice: name it once", role)
		}
	}
	if slices.Contains(list, RoleNative) && len(list) > 1 {
		return fmt.Errorf("roles: %s is a process of its own, so that no other account has its permissions: give it no other role", RoleNative)
	}
	if slices.Contains(list, RoleReport) && !slices.Contains(list, RoleAdmission) && !slices.Contains(list, RoleScan) {
		return fmt.Errorf("roles: a process with %s reports what it decides itself, and this one would decide nothing: give it %s or %s as well", RoleReport, RoleScan, RoleAdmission)
	}
	return nil
}

// Assign replaces the roles of a configuration. It returns an error if the configuration contradicts them.
func (c *Configuration) Assign(roles []string) error {
	c.Roles = roles
	return c.check()
}

// Has reports whether the process has any of the roles; a configuration without roles has all but RoleNative.
func (c *Configuration) Has(roles ...string) bool {
	return slices.ContainsFunc(roles, func(role string) bool {
		return c.Roles == nil && role != RoleNative || slices.Contains(c.Roles, role)
	})
}

// checkRoles refuses settings that contradict a configuration's roles. Settings of other roles
// are no contradiction: several Deployments may share a file.
func (c *Configuration) checkRoles(found *complaints) {
	if c.Roles == nil {
		return
	}
	if err := checkRoles(c.Roles); err != nil {
		*found = append(*found, err)
		return
	}
	found.refuse(c.Standalone && !c.Has(RoleAdmission), "roles: standalone, there is no cluster to look at, and nothing to do without %s: add it, or leave roles out", RoleAdmission)
}

// Lease is the Lease for the leader election among processes of the same roles.
func (c *Configuration) Lease() string {
	switch {
	case c.Has(RoleAdmission):
		return election.Leader
	case c.Has(RoleScan):
		return election.Scan
	case c.Has(RoleBackground):
		return election.Background
	case c.Has(RoleNative):
		return election.Native
	}
	return election.Cleanup
}

// Follows reports whether the scan follows changes. The default is true where this process does
// not receive the decisions of admission.
func (c *Configuration) Follows() bool {
	if c.Scan.Follow != nil {
		return *c.Scan.Follow
	}
	return c.Has(RoleScan) && !c.Has(RoleAdmission)
}
