package trustedroot_test

import (
	"bytes"
	"crypto/x509"
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

// TestLongKeys: keys of authorities and logs are measured before a signature is verified with them, also where the
// document has them in an encoding of its own.
func TestLongKeys(t *testing.T) {
	one := verifytest.Must(verifytest.New(verifytest.Options{Name: "one"}))
	certificate := func(bits int) []byte { return verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits))).Raw }
	key := func(bits int) []byte { return verifytest.Must(x509.MarshalPKIXPublicKey(verifytest.LongKey(bits))) }
	for _, row := range []struct {
		list string
		in   []string // of the first entry
		of   func(bits int) []byte
	}{
		{"certificateAuthorities", []string{"certChain", "certificates"}, certificate},
		{"timestampAuthorities", []string{"certChain", "certificates"}, certificate},
		{"tlogs", []string{"publicKey"}, key},
		{"ctlogs", []string{"publicKey"}, key},
	} {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
			for bits, fails := range map[int]bool{8192: false, 8193: true} {
				var content map[string]any
				if err := json.Unmarshal(one.TrustedRoot(), &content); err != nil {
					t.Fatal(err)
				}
				entry := content[row.list].([]any)[0].(map[string]any)
				for _, name := range row.in {
					if list, is := entry[name].([]any); is {
						entry = list[len(list)-1].(map[string]any) // the root
						continue
					}
					entry = entry[name].(map[string]any)
				}
				entry["rawBytes"] = encoding.EncodeToString(row.of(bits))
				if row.list == "tlogs" || row.list == "ctlogs" {
					entry["keyDetails"] = "PKIX_RSA_PKCS1V15_4096_SHA256"
				}
				_, err := trustedroot.Parse(verifytest.Must(json.Marshal(content)))
				if (err != nil) != fails || err != nil && !strings.Contains(err.Error(), "the RSA key of 8193 bits is longer") {
					t.Errorf("%s of %d bits: %v", row.list, bits, err)
				}
			}
		}
	}
}

// TestValues: the number of values is bounded, because each takes much more memory than its text.
func TestValues(t *testing.T) {
	one := verifytest.Must(verifytest.New(verifytest.Options{Name: "one"}))
	for count, fails := range map[int]bool{1_000: false, 20_000: true} {
		text := bytes.Replace(one.TrustedRoot(), []byte("{"), []byte(`{"x":[`+strings.Repeat("1,", count)+"1],"), 1)
		_, err := trustedroot.Parse(text)
		if isMany := err != nil && strings.Contains(err.Error(), "more than 20000 values"); isMany != fails {
			t.Errorf("%d values: %v", count, err)
		}
	}
}
