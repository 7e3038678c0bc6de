package trust_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
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
	one, two := newSigstore("one"), newSigstore("two")
	keyless := verify.Authority{Name: "a", Keyless: &verify.Keyless{
		Identities: []verify.Identity{{Issuer: verify.Exactly("https://issuer.example"), Subject: verify.Exactly("ann@example.com")}},
	}}
	count := func(root []byte) (logs, ctLogs int, err error) {
		material, err := newStore(t, trust.Options{TrustedRoot: root}).Snapshot().Material(keyless)
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
