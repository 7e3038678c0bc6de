package config

import (
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
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
		{"all", "admission,scan,report,background,cleanup", election.Leader, false, ""},
		{"admission alone", "admission", election.Leader, false, ""},
		{"the others", "scan,report,background", election.Scan, true, ""},
		{"spaces, in any order", "report, scan", election.Scan, true, ""},
		{"a scan for the decision log", "scan", election.Scan, true, ""},
		{"rules about other objects", "background", election.Background, false, ""},
		{"both of them without a report", "background,scan", election.Scan, true, ""},
		{"the cleanup alone", "cleanup", election.Cleanup, false, ""},
		{"the cleanup next to others", "background,cleanup", election.Background, false, ""},
		{"the cleanup has no report", "report,cleanup", "", false, "give it scan or admission as well"},
		{"reports of admission", "admission,report", election.Leader, false, ""},
		{"reports without a source", "report", "", false, "would decide nothing"},
		{"nor of rules about other objects", "report,background", "", false, "give it scan or admission as well"},
		{"one that is none", "admission,webhook", "", false, `unknown role "webhook": want some of admission,scan,report,background,cleanup`},
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
		if c.Has(role) != (role != RoleNative) {
			t.Errorf("a configuration without roles has %s: %t", role, c.Has(role))
		}
	}
	if c.Follows() || c.Lease() != election.Leader {
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
	c, err = Parse([]byte(head + "roles: [native]\npolicies: {nativePolicies: auto}\n"))
	if err != nil || c.Lease() != election.Native || c.Has(RoleAdmission) || !c.Has(RoleNative) {
		t.Errorf("the writer of native policies: %v, %v", c.Roles, err)
	}
	for _, row := range []struct{ text, want, reason string }{
		{"roles: [admission, native]\n", "no other account", "two accounts would share permissions"},
		{"policies: {nativePolicies: always}\n", "want off, requested or auto", "an unknown word"},
		{"policies: {nativePolicies: auto}\nwebhooks: {disabled: true}\n", "needs the webhook configurations", "nothing would be left out"},
	} {
		if _, err := Parse([]byte(head + row.text)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
	const alone = "standalone: true\npolicies: {folders: [p]}\n"
	if _, err := Parse([]byte(head + alone + "roles: [admission, report]\n")); err != nil {
		t.Errorf("standalone, the endpoints and the dashboard: %v", err)
	}
	if _, err := Parse([]byte(head + alone + "roles: [scan, report]\n")); err == nil || !strings.Contains(err.Error(), "no cluster to look at") {
		t.Errorf("standalone, a scan: %v", err)
	}
}
