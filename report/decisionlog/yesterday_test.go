package decisionlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// TestYesterday: the log of the version before is read and verified. testdata/yesterday was
// written by that version, signed by a key that was thrown away.
func TestYesterday(t *testing.T) {
	const folder = "testdata/yesterday"
	public, err := os.ReadFile(filepath.Join(folder, "key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := decisionlog.ParsePublicKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	found, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{Keys: keys})
	if err != nil || found.Decisions != 2 || found.Checkpoints != 1 || !found.Closed || found.Unsigned != 0 || found.Replica != "before-0" {
		t.Errorf("%+v, %v", found, err)
	}
	var results []policy.Result
	var images []gate.Result
	for line, err := range decisionlog.Read(folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Decision != nil {
			results, images = append(results, line.Decision.Rules[0].Result), append(images, line.Decision.Result)
		}
	}
	if len(results) != 2 || results[0] != policy.Pass || results[1] != policy.Fail {
		t.Errorf("the results are %v", results)
	}
	if !slices.Equal(images, []gate.Result{gate.Allow, gate.Deny}) {
		t.Errorf("the images' results are %v", images)
	}

	text, err := os.ReadFile(filepath.Join(folder, decisionlog.SegmentName(1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ reason, before, after string }{
		{"an answer was turned round", `"answer":"deny"`, `"answer":"allow"`},
		{"a name was changed", `"name":"bare"`, `"name":"bore"`},
	} {
		changed := t.TempDir()
		other := bytes.Replace(text, []byte(c.before), []byte(c.after), 1)
		if bytes.Equal(other, text) {
			t.Fatalf("%s: there is no %s", c.reason, c.before)
		}
		if err := os.WriteFile(filepath.Join(changed, decisionlog.SegmentName(1)), other, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := decisionlog.Verify(changed, decisionlog.VerifyOptions{Keys: keys})
		if _, broken := errors.AsType[*decisionlog.BrokenError](err); !broken {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestFormerNames: results by the names of version 1. A denial that is not recognised would
// be shown as admitted.
func TestFormerNames(t *testing.T) {
	for _, c := range []struct {
		reason, decision string
		version          int
		want             gate.Result
		rule             policy.Result // of the first rule
	}{
		{"allow", `"answer":"allow","rules":[{"result":"pass"}]`, 1, gate.Allow, policy.Pass},
		{"deny", `"answer":"deny","rules":[{"result":"fail"}]`, 1, gate.Deny, policy.Fail},
		{"unable", `"answer":"unable","rules":[{"result":"undecided"}]`, 1, gate.Error, policy.Indeterminate},
		{"no policy", `"answer":"allow","reasons":[{"code":"no-policy"}]`, 1, gate.Unchecked, ""},
		{"a denial without a rule", `"answer":"deny","reasons":[{"code":"no-policy"}]`, 1, gate.Deny, ""},
		{"unchanged", `"answer":"allow","reasons":[{"code":"unchanged"}]`, 1, gate.Allow, ""},
		{"an override", `"answer":"allow","override":"ImageOverride/a","reasons":[{"code":"no-policy"}]`, 1, gate.Allow, ""},
		{"this version", `"result":"deny","answer":"allow","rules":[{"result":"indeterminate"}]`, 2, gate.Deny, policy.Indeterminate},
	} {
		line, err := decisionlog.ParseLine(fmt.Appendf(nil, `{"v":%d,"kind":"decision","decision":{%s}}`, c.version, c.decision))
		if err != nil || line.Decision.Result != c.want || len(line.Decision.Rules) > 0 && line.Decision.Rules[0].Result != c.rule {
			t.Errorf("%s: %+v, %v; want %s", c.reason, line.Decision, err, c.want)
		}
	}
	if _, err := decisionlog.ParseLine([]byte(`{"v":3,"kind":"open","open":{}}`)); err == nil {
		t.Error("a later version is read")
	}
	if _, err := decisionlog.ParseLine([]byte(`{"v":1,"kind":"decision","decision":{"answer":1}}`)); err == nil {
		t.Error("a result that is no text is read")
	}
}
