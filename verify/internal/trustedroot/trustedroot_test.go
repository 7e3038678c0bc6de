package trustedroot_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/verify/internal/trustedroot"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// relabelled returns a trusted root in which every log has a logId.
func relabelled(t *testing.T, root []byte, id func(list string, i int) string) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(root, &content); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"tlogs", "ctlogs"} {
		for i, each := range content[list].([]any) {
			if text := id(list, i); text != "" {
				each.(map[string]any)["logId"] = map[string]any{"keyId": base64.StdEncoding.EncodeToString([]byte(text))}
			}
		}
	}
	return verifytest.Must(json.Marshal(content))
}

// TestLogIdentifiers: a log is found by its key, whatever its logId is, and two logs are not
// taken for one.
func TestLogIdentifiers(t *testing.T) {
	one := verifytest.Must(verifytest.New(verifytest.Options{Name: "one"}))
	two := verifytest.Must(verifytest.New(verifytest.Options{Name: "two"}))
	count := func(root []byte) (logs, ctLogs int, err error) {
		material, err := trustedroot.Parse(root)
		if err != nil {
			return 0, 0, err
		}
		for _, own := range []*verifytest.Sigstore{one, two} {
			if material.RekorLogs()[own.Rekor.ID()] != nil {
				logs++
			}
			if material.RekorLogs()[own.Rekor2.ID()] != nil {
				logs++
			}
			if material.CTLogs()[own.CTLog.ID()] != nil {
				ctLogs++
			}
		}
		return logs, ctLogs, nil
	}
	for _, c := range []struct {
		reason string
		root   []byte
		logs   int
		ctLogs int
		fails  string
	}{
		{"as they are", one.TrustedRoot(two), 4, 2, ""},
		{"other identifiers", relabelled(t, one.TrustedRoot(two), func(list string, i int) string { return list + string(rune('a'+i)) }), 4, 2, ""},
		{"one is another", relabelled(t, one.TrustedRoot(), func(list string, i int) string { return map[bool]string{true: "x"}[list == "tlogs" && i == 1] }), 2, 1, ""},
		{"two logs of one identifier", relabelled(t, one.TrustedRoot(), func(list string, _ int) string { return map[bool]string{true: "x"}[list == "tlogs"] }), 0, 0, "tlogs[1]: its logId 78"},
		{"two certificate logs of one", relabelled(t, one.TrustedRoot(two), func(list string, _ int) string { return map[bool]string{true: "x"}[list == "ctlogs"] }), 0, 0, "ctlogs[1]: its logId 78"},
		{"other identifiers, and addresses that are none", bytes.ReplaceAll(relabelled(t, one.TrustedRoot(), func(list string, i int) string { return list + string(rune('a'+i)) }), []byte("https://"), []byte("https://%zz")), 1, 1, ""},
		{"no JSON", []byte("{"), 0, 0, "unexpected"},
		{"another media type", []byte(`{"mediaType": "none"}`), 0, 0, "none"},
		{"a log that is listed twice", one.TrustedRoot(one), 2, 1, ""},
	} {
		logs, ctLogs, err := count(c.root)
		switch {
		case (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails):
			t.Errorf("%s: %v, want %q", c.reason, err, c.fails)
		case err == nil && (logs != c.logs || ctLogs != c.ctLogs):
			t.Errorf("%s: %d logs and %d certificate logs, want %d and %d", c.reason, logs, ctLogs, c.logs, c.ctLogs)
		}
	}
}

// TestOnlyOwnKeys: a log has the identifiers of its own key alone, and its logId.
func TestOnlyOwnKeys(t *testing.T) {
	one := verifytest.Must(verifytest.New(verifytest.Options{Name: "one"}))
	genuine := verifytest.Must(trustedroot.Parse(one.TrustedRoot()))
	if len(genuine.RekorLogs()) != 2 || len(genuine.CTLogs()) != 1 {
		t.Errorf("%d logs and %d certificate logs under genuine identifiers, want 2 and 1", len(genuine.RekorLogs()), len(genuine.CTLogs()))
	}
	// The Rekor v2 log has the identifier of the v1 log, which is listed under another.
	swapped := relabelled(t, one.TrustedRoot(), func(list string, i int) string {
		switch {
		case list == "ctlogs":
			return ""
		case i == 0:
			return "x"
		}
		return string(verifytest.Must(hex.DecodeString(one.Rekor.ID())))
	})
	logs := verifytest.Must(trustedroot.Parse(swapped)).RekorLogs()
	if log := logs[one.Rekor.ID()]; log == nil || log.BaseURL != one.Rekor2.URL() {
		t.Errorf("under a logId that the document gives: %+v, want the log that has it there", log)
	}
	if log := logs["78"]; log == nil || log.BaseURL != one.Rekor.URL() {
		t.Errorf("under its own logId: %+v, want the Rekor v1 log", log)
	}
	if log := logs[one.Rekor2.ID()]; log == nil || log.BaseURL != one.Rekor2.URL() {
		t.Errorf("under the identifier of its key: %+v, want the Rekor v2 log", log)
	}
}
