package bill_test

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/deploy/image/bill"
)

const digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

// tool builds the command of this module, and returns a document about it.
func tool(t *testing.T) (bill.Document, *buildinfo.BuildInfo) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", file, "..")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bill.Document{
		Name: "image", Version: "v1.2.3", Source: "https://quay.test/quaymaster", Licence: "Apache-2.0", Digest: digest,
		Created: time.Unix(0, 0), Binaries: []bill.Binary{{Platform: runtime.GOOS + "/" + runtime.GOARCH, File: file}},
	}, info
}

// TestWrite wants every module that the toolchain linked, with its sum, each once.
func TestWrite(t *testing.T) {
	document, info := tool(t)
	content, err := bill.Write(document)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Version   string   `json:"spdxVersion"`
		Describes []string `json:"documentDescribes"`
		Packages  []struct {
			ID        string `json:"SPDXID"`
			Name      string `json:"name"`
			Version   string `json:"versionInfo"`
			Checksums []struct {
				Value string `json:"checksumValue"`
			} `json:"checksums"`
		} `json:"packages"`
		Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string } `json:"relationships"`
	}
	if err := json.Unmarshal(content, &read); err != nil {
		t.Fatal(err)
	}
	if read.Version != "SPDX-2.3" || len(read.Describes) != 1 {
		t.Errorf("document %+v", read)
	}
	ids, modules := map[string]bool{}, map[string]int{}
	for _, p := range read.Packages {
		if ids[p.ID] || strings.Trim(p.ID, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != "" {
			t.Errorf("identifier %q is there twice, or none", p.ID)
		}
		ids[p.ID] = true
		if len(p.Checksums) == 1 && len(p.Checksums[0].Value) == 64 {
			modules[p.Name+"@"+p.Version]++
		}
	}
	if len(info.Deps) == 0 {
		t.Fatal("this test has no module to look for")
	}
	for _, m := range info.Deps {
		if modules[m.Path+"@"+m.Version] != 1 {
			t.Errorf("%s@%s is there %d times", m.Path, m.Version, modules[m.Path+"@"+m.Version])
		}
	}
	for _, r := range read.Relationships {
		if !ids[r.RelatedSpdxElement] {
			t.Errorf("%+v has an unknown element", r)
		}
	}
	again, err := bill.Write(document)
	if err != nil || string(again) != string(content) {
		t.Errorf("written again it differs (%v)", err)
	}
}

func TestRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	given, _ := tool(t)
	for _, row := range []struct {
		reason string
		change func(*bill.Document)
		says   string
	}{
		{"no name", func(d *bill.Document) { d.Name = "" }, "needs a name"},
		{"no digest", func(d *bill.Document) { d.Digest = "" }, "needs a name"},
		{"nothing in it", func(d *bill.Document) { d.Binaries = nil }, "needs a name"},
		{"no program", func(d *bill.Document) { d.Binaries[0].File = text }, "toolchain"},
		{"no file", func(d *bill.Document) { d.Binaries[0].File = text + "s" }, "no such file"},
		{"another platform", func(d *bill.Document) { d.Binaries[0].Platform = "plan9/mips" }, "plan9/mips"},
		{"another program", func(d *bill.Document) { d.Name = "quaymaster" }, "should be quaymaster"},
	} {
		document := given
		document.Binaries = slices.Clone(given.Binaries)
		row.change(&document)
		if _, err := bill.Write(document); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		}
	}
}

func ExampleWrite() {
	_, err := bill.Write(bill.Document{Name: "quaymaster"})
	fmt.Println(err)
	// Output: a bill of materials needs a name, a digest and programs
}
