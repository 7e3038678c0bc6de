package hint

import (
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
)

// TestCodes: the hint of a code that does not exist any more is dropped. Package report holds that
// each code has a hint and a section of the page.
func TestCodes(t *testing.T) {
	page := string(testkit.Must(os.ReadFile("../../docs/reason-codes.md"))(t))
	for code, text := range byCode {
		if !strings.Contains(page, "\n### `"+code+"`\n") {
			t.Errorf("%s: the page of codes has no such section", code)
		}
		if text == "" || strings.HasSuffix(text, ".") || Of(code) != text {
			t.Errorf("%s: %q", code, text)
		}
	}
	for code, reason := range map[string]string{"verified": "in favour of an image", "": "no code", "no-such-code": "not a code"} {
		if text := Of(code); text != "" {
			t.Errorf("%s (%s): %q", code, reason, text)
		}
	}
}

// TestForGateway: the gateway names its settings and the fields of policies, where the command line
// names flags.
func TestForGateway(t *testing.T) {
	for text, want := range map[string]string{
		"it has no TLS: if that is meant, set --plain-http registry.example:5000": "it has no TLS: if that is meant, set registries.hosts[registry.example:5000].plainHTTP in the gateway's settings",
		"trust its certificate authority with --registry-ca":                      "trust its certificate authority with registries.caFile in the gateway's settings",
		FewerImages:                "retry, name fewer images together, or allow more time (timeoutSeconds of the policy or the webhook)",
		byCode["untrusted-chain"]:  "give the certificate authority that issued the signer's certificate (trust.trustedRoot in the gateway's settings, or in the policy), or sign with one that is trusted",
		byCode["cannot-prove"]:     "check the keys and trusted roots that the policy or trust.trustedRoot in the gateway's settings names",
		byCode["no-log-entry"]:     "sign with a transparency log (cosign's default), or ask for none: rekor.ignoreTlog in the policy",
		byCode["outside-validity"]: "sign again with an authority that is valid now; this one was retired (trust.retiredKeys in the gateway's settings)",
		byCode["wrong-predicate"]:  byCode["wrong-predicate"], // a flag of cosign
		byCode["unsigned"]:         byCode["unsigned"],
	} {
		if got := ForGateway(text); got != want {
			t.Errorf("%s:\n%s, want\n%s", text, got, want)
		}
	}
}
