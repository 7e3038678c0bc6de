package supplychain

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

// allowed are the licences under which a module may be linked: none requires more of a
// distributor than to name its authors, or to offer the module's own source.
func allowed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-2-Clause-Views", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense"}
}

// apart are modules with terms that are not in a file of their own, with where they are.
func apart() map[string]string {
	return map[string]string{
		"github.com/openreports/reports-api": "Apache 2.0, by the head of each file",
	}
}

// covered is how much of a licence's file must be text of licences that are known, in
// percent; the rest is names and years.
const covered = 75

// linked is a module that is part of a program, and where its source is.
type linked struct{ path, version, folder string }

// modules returns all that is linked into the programs of a module.
func modules(t *testing.T, folder string, packages ...string) []linked {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{
		"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}",
	}, packages...)...)
	list.Dir, list.Stderr = folder, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("list linked modules: %v", err)
	}
	var found []linked
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if part := strings.Split(lines.Text(), "\t"); len(part) == 3 {
			found = append(found, linked{part[0], part[1], part[2]})
		}
	}
	slices.SortFunc(found, func(a, b linked) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(found)
}

// licences returns the licences of the texts in a module's folder; none are none, and
// an unknown text is quoted in place of its licence.
func licences(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		if filepath.Ext(name) == ".GO" || filepath.Ext(name) == ".DOCS" { // code about licences; files that are not linked
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		said := licensecheck.Scan(text)
		if said.Percent < covered {
			found = append(found, entry.Name()+", which is no known text")
		}
		for _, match := range said.Match {
			if match.ID != "" && !match.IsURL {
				found = append(found, match.ID)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// refused returns what of licences is not allowed; no licence is no right to ship.
func refused(found []string) []string {
	if len(found) == 0 {
		return []string{"no licence"}
	}
	return slices.DeleteFunc(slices.Clone(found), func(id string) bool { return slices.Contains(allowed(), id) })
}

// TestLicences: all that is linked may be shipped with a product under Apache 2.0.
func TestLicences(t *testing.T) {
	all := modules(t, "../..", "./cmd/...")
	if len(all) < 50 {
		t.Fatalf("%d modules are linked, which cannot be all", len(all))
	}
	counts := map[string]int{}
	for _, m := range all {
		if strings.HasPrefix(m.path, "github.com/quaymaster/") {
			continue
		}
		found, err := licences(m.folder)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := apart()[m.path]; ok && len(found) == 0 {
			continue
		}
		if bad := refused(found); len(bad) > 0 {
			t.Errorf("%s %s: %s", m.path, m.version, strings.Join(bad, "; "))
		}
		for _, id := range found {
			counts[id]++
		}
	}
	t.Logf("%d modules: %v", len(all), counts)
}

// TestLicencesAreRead: a text that is not allowed, none, and an unknown one are
// each found.
func TestLicencesAreRead(t *testing.T) {
	own, err := os.ReadFile("../../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	const mit = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the \"Software\"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:\n\nThe above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.\n\nTHE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.\n"
	const affero = "This program is free software: you can redistribute it and/or modify it under the terms of the GNU Affero General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.\n"
	for _, row := range []struct {
		reason, file, text string
		bad                string // part of the refused text; empty: none is
	}{
		{"the product's own", "LICENSE", string(own), ""},
		{"another that is allowed, by another name", "COPYING.txt", mit, ""},
		{"one that binds operators", "LICENSE", affero, "AGPL-3.0"},
		{"an allowed one with more terms", "LICENSE", mit + strings.Repeat("The software shall be used by nobody on a Friday, and by nobody else on other days. ", 20), "no known text"},
		{"a text that is no licence", "LICENSE", "All rights reserved.\n", "no known text"},
		{"a file of another name", "README", mit, "no licence"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, row.file), []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := licences(folder)
			if err != nil {
				t.Fatal(err)
			}
			bad := strings.Join(refused(found), "; ")
			if (row.bad == "") != (bad == "") || !strings.Contains(bad, row.bad) {
				t.Errorf("%v: refused for %q, want %q", found, bad, row.bad)
			}
		})
	}
}
