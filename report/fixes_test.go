package report_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
)

// none is the fix of a code in favour of an image. The page of codes states it.
const none = ""

// fixes has for each code what its fix must name: a command, a flag, a setting, a field of a policy or
// of a manifest, or the action where nothing else is to be done than that.
func fixes() map[policy.Code][]string {
	return map[policy.Code][]string{
		"verified": {none}, "pinned": {none}, "skipped": {none}, "excepted": {none}, "override-allowed": {none}, "unchanged": {none}, "mirrored": {none}, "no-policy": {none},

		"unsigned":             {"quaymaster tree IMAGE"},
		"no-attestation":       {"quaymaster tree IMAGE"},
		"condition-failed":     {"cosign download attestation IMAGE@DIGEST"},
		"denied-by-condition":  {"cosign download attestation IMAGE@DIGEST"},
		"violated":             {"quaymaster apply POLICY -r FILE"},
		"missing-digest":       {"mutateDigest"},
		"not-pinned":           {"mutateDigest"},
		"unverified":           {"verifyImageSignatures", "validationConfigurations.required: false"},
		"too-few-signers":      {"cosign sign IMAGE@DIGEST"},
		"too-young":            {"wait until", "ImageOverride"},
		"wrong-builder":        {"declare it with its signer", "docs/slsa.md"},
		"low-build-level":      {"docs/slsa.md"},
		"wrong-source":         {"build from the repository"},
		"no-verified-time":     {"sign with a transparency log or a timestamp authority", "let a policy verify the image"},
		"image-not-found":      {"docker login", "imagePullSecrets"},
		"access-refused":       {"docker login", "imagePullSecrets"},
		"registry-unavailable": {"retry"}, // TestFixOfCause of cmd/quaymaster: the host and the step
		"bound-reached":        {"quaymaster tree IMAGE"},
		"contradiction":        {"push the image again", "quaymaster mirror IMAGE"},
		"policy-error":         {"correct the reported part of the policy"},
		"cannot-prove":         {"--trusted-root"},
		"timed-out":            {"--timeout"},
		"override-denied":      {"kubectl get imageoverrides"},
		"not-mirrored":         {"quaymaster mirror IMAGE"},
		"no-mirror":            {"otherwise: Source"},
		"mirror-differs":       {"name the image by digest"},
		"stale":                {"quaymaster.dev/stale-if-error"},
		"no-pull-secret":       {"pullSecrets"},
		"internal-error":       {"quaymaster explain"},
		"malformed-reference":  {"[registry/]repository[:tag][@digest]"},

		"wrong-key":           {"cosign sign --key", "change the policy"},
		"wrong-identity":      {"let the identity that the policy names sign", "change the policy"},
		"wrong-extension":     {"build from the source that the policy names"},
		"wrong-annotation":    {"cosign sign -a KEY=VALUE"},
		"wrong-digest":        {"cosign sign IMAGE@DIGEST"},
		"wrong-predicate":     {"cosign attest --type"},
		"wrong-format":        {"cosign", "notation"},
		"bad-signature":       {"sign again"},
		"malformed":           {"quaymaster tree IMAGE"},
		"untrusted-chain":     {"--trusted-root", "--certificate-chain"},
		"expired-certificate": {"sign again, with a timestamp or log entry"},
		"no-log-entry":        {"--insecure-ignore-tlog", "rekor.ignoreTlog"},
		"bad-log-entry":       {"--rekor-key", "rekor.pubkey"},
		"no-sct":              {"--insecure-ignore-sct", "ctlog.ignoreSCT"},
		"bad-sct":             {"ctlog.pubkey"},
		"no-timestamp":        {"sign with a timestamp authority or a transparency log"},
		"bad-timestamp":       {"ctlog.tsaCertChain"},
		"outside-validity":    {"trust.retiredKeys", "--retired-key", "--signed-not-after"},
		"expired":             {"sign the image again"},
		"too-old":             {"sign, scan or attest again"},
		"revoked":             {"sign again"},
	}
}

// other are commands of other programs, and of this one, in a hint: their flags are theirs.
var other = regexp.MustCompile(`(cosign|notation|kubectl|oras|quaymaster) [^,;:()]*`)

// flagInText is a flag of the command line.
var flagInText = regexp.MustCompile(`--[a-z]`)

// TestFixes: each code has a fix that names what is to be changed and by which means, or the page
// states that nothing is to be done. A denial by the gateway names no flag of the command line.
func TestFixes(t *testing.T) {
	documented, table, known := sections(read(t, codesDoc), "###"), fixes(), map[policy.Code]bool{}
	for _, dir := range []string{"../policy", "../verify"} {
		for name, value := range codes(t, dir) {
			code := policy.Code(value)
			known[code] = true
			parts, ok := table[code]
			fix := report.NewRecord(outcomeWith(policy.Reason{Code: code, Message: "for the test"})).Reasons[0].Hint
			switch {
			case !ok:
				t.Errorf("%s (%s): what its fix must name is missing here", value, name)
			case slices.Equal(parts, []string{none}):
				_, do, _ := strings.Cut(documented["`"+value+"`"], "**Do.** ")
				if fix != "" || !strings.HasPrefix(do, "No action needed.") && !strings.HasPrefix(do, "No immediate action needed.") && !strings.Contains(do, "If a policy was meant to match") {
					t.Errorf("%s: nothing is to be done, its fix is %q, the page has: %s", value, fix, do)
				}
			}
			for _, part := range parts {
				if !strings.Contains(fix, part) {
					t.Errorf("%s: the fix does not name %s: %s", value, part, fix)
				}
			}
			if text := hint.ForGateway(fix); flagInText.MatchString(other.ReplaceAllString(text, "")) {
				t.Errorf("%s: the gateway names a flag: %s", value, text)
			}
		}
	}
	if all := slices.Sorted(maps.Keys(known)); !slices.EqualFunc(all, hint.Codes(), func(a policy.Code, b string) bool { return string(a) == b }) {
		t.Errorf("hint.Codes returns %q, want %q", hint.Codes(), all)
	}
	for _, code := range slices.Sorted(maps.Keys(table)) {
		if !known[code] {
			t.Errorf("%s is no code", code)
		}
	}
}
