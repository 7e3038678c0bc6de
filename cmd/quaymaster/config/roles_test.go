package config

import (
	"slices"
	"strings"
	"testing"
)

// TestRoles: valid combinations of roles, the Lease of each, and the roles that follow changes.
func TestRoles(t *testing.T) {
	for _, row := range []struct {
		reason, text, lease string
		follows             bool
		refused             string
	}{
		{"all", "admission,scan,report,background", LeaderLease, false, ""},
		{"admission alone", "admission", LeaderLease, false, ""},
		{"the others", "scan,report,background", ScanLeaderLease, true, ""},
		{"spaces, in any order", "report, scan", ScanLeaderLease, true, ""},
		{"a scan for the decision log", "scan", ScanLeaderLease, true, ""},
		{"rules about other objects", "background", BackgroundLeaderLease, false, ""},
		{"both of them without a report", "background,scan", ScanLeaderLease, true, ""},
		{"reports of admission", "admission,report", LeaderLease, false, ""},
		{"reports without a source", "report", "", false, "would decide nothing"},
		{"nor of rules about other objects", "report,background", "", false, "give it scan or admission as well"},
		{"one that is none", "admission,webhook", "", false, `unknown role "webhook": want some of admission,scan,report,background`},
		{"in another case", "Admission", "", false, `unknown role "Admission"`},
		{"twice", "scan,report,scan", "", false, "scan is named twice: name it once"},
		{"none", "", "", false, "roles is empty: name some of"},
		{"a comma too many", "scan,", "", false, `unknown role ""`},
	} {
		list, err := ParseRoles(row.text)
		written, inFile := Parse([]byte(head + "roles: [" + row.text + "]\n"))
		if row.refused != "" {
			if err == nil || !strings.Contains(err.Error(), row.refused) {
				t.Errorf("%s: %v, want a word of %s", row.reason, err, row.refused)
			}
			if inFile == nil && row.reason != "a comma too many" { // which YAML allows
				t.Errorf("%s: the file is not refused", row.reason)
			}
			continue
		}
		if err != nil || inFile != nil {
			t.Errorf("%s: %v, in a file %v", row.reason, err, inFile)
			continue
		}
		c, err := Load("")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Assign(list); err != nil || !slices.Equal(c.Roles, written.Roles) {
			t.Errorf("%s: %v and in a file %v, %v", row.reason, c.Roles, written.Roles, err)
		}
		if c.Lease() != row.lease || c.Follows() != row.follows {
			t.Errorf("%s: leads by %s and follows %t", row.reason, c.Lease(), c.Follows())
		}
	}
}

// TestRolesOfConfigurations: without roles a process has all, a flag wins, and what
// cannot be done without a cluster is refused.
func TestRolesOfConfigurations(t *testing.T) {
	c, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range Roles() {
		if !c.Has(role) {
			t.Errorf("a configuration without roles lacks %s", role)
		}
	}
	if c.Follows() || c.Lease() != LeaderLease {
		t.Error("one process with all roles has another lease, or follows changes")
	}
	c, err = Parse([]byte(head + "roles: [scan]\nscan: {follow: false}\n"))
	if err != nil || c.Follows() || c.Has(RoleAdmission, RoleReport) {
		t.Errorf("a scan that is not to follow: follows %t, %v", c.Follows(), err)
	}
	if err := c.Assign([]string{RoleAdmission}); err != nil || c.Has(RoleScan) || !c.Has(RoleScan, RoleAdmission) {
		t.Errorf("the flag does not win: %v, %v", c.Roles, err)
	}
	c, err = Parse([]byte(head + "scan: {follow: true}\n"))
	if err != nil || !c.Follows() {
		t.Errorf("one process that is to follow: %v", err)
	}
	if _, err := Parse([]byte(head + "scan: {follow: true, disabled: true}\n")); err == nil || !strings.Contains(err.Error(), "nothing is followed") {
		t.Errorf("a scan that follows and does not run: %v", err)
	}
	const alone = "standalone: true\npolicies: {folders: [p]}\n"
	if _, err := Parse([]byte(head + alone + "roles: [admission, report]\n")); err != nil {
		t.Errorf("standalone, the endpoints and the dashboard: %v", err)
	}
	if _, err := Parse([]byte(head + alone + "roles: [scan, report]\n")); err == nil || !strings.Contains(err.Error(), "no cluster to look at") {
		t.Errorf("standalone, a scan: %v", err)
	}
}
