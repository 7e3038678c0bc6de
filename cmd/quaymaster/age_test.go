package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestAge: an image is as old as its first signature by the clock of a log or a timestamp authority, and
// each signature that counts as old as its own. Without such a time nothing is decided.
func TestAge(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	young, twice, untimed, stamped := h.Build("young", "v1", "1"), h.Build("twice", "v1", "2"), h.Build("untimed", "v1", "3"), h.Build("stamped", "v1", "4")
	ok(t, h.SignLegacy(young, verifytest.Claim{Signer: h.key, Time: ago(5 * time.Hour)}, nil))
	ok(t, h.SignLegacy(twice, verifytest.Claim{Signer: h.key, Time: ago(time.Hour)}, nil))
	ok(t, h.SignLegacy(twice, verifytest.Claim{Signer: h.key, Time: ago(100 * time.Hour)}, nil))
	ok(t, h.SignLegacy(untimed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	ok(t, h.SignLegacy(stamped, verifytest.Claim{Signer: h.key, NoLog: true, Stamps: []verifytest.Stamp{{Time: ago(100 * time.Hour)}}}, nil))
	policies := h.file(t, "policy.yaml", `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: by-key
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*young*", "*twice*"]
      attestors: [{entries: [{keys: {publicKeys: "`+strings.ReplaceAll(string(h.key.PublicPEM()), "\n", `\n`)+`"}}]}]
`)
	expressions := h.file(t, "expressions.yaml", `
apiVersion: policies.kyverno.io/v1beta1
kind: ImageValidatingPolicy
metadata: {name: signed}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchImageReferences: [{glob: "*"}]
  attestors: [{name: key, cosign: {key: {data: "`+strings.ReplaceAll(string(h.key.PublicPEM()), "\n", `\n`)+`"}}}]
  validations: [{expression: "images.containers.map(image, verifyImageSignatures(image, [attestors.key])).all(n, n > 0)", message: not signed}]
`)
	trusted := []string{"--trusted-root", h.path("trusted_root.json")}
	key := append([]string{"--key", h.path("key.pub")}, trusted...)
	noLog := append([]string{"--insecure-ignore-tlog"}, key...)
	policy := append([]string{"--policy", policies}, trusted...)
	cel := append([]string{"--policy", expressions}, trusted...)
	for _, c := range []struct {
		reason, image string
		args          []string
		flags         string
		code          int
		says          string
	}{
		{"old enough", young.Name, key, "--minimum-age 4h", command.ExitAllowed, "1 allowed"},
		{"too young", young.Name, key, "--minimum-age 72h", command.ExitDenied, "[too-young]"},
		{"too young, with the age", young.Name, key, "--minimum-age 72h", command.ExitDenied, "5h"},
		{"too young, with the source", young.Name, key, "--minimum-age 72h", command.ExitDenied, "by the clock of a transparency log"},
		{"fresh enough", young.Name, key, "--maximum-age 6h", command.ExitAllowed, "1 allowed"},
		{"too old", young.Name, key, "--maximum-age 4h", command.ExitDenied, "[too-old]"},
		{"both bounds", young.Name, key, "--minimum-age 4h --maximum-age 6h", command.ExitAllowed, "1 allowed"},
		{"signed again, the first counts", twice.Name, key, "--minimum-age 72h", command.ExitAllowed, "1 allowed"},
		{"signed again, the last is fresh", twice.Name, key, "--maximum-age 2h", command.ExitAllowed, "1 allowed"},
		{"signed again, not even the last is fresh", twice.Name, key, "--maximum-age 30m", command.ExitDenied, "[too-old]"},
		{"no time, for a minimum", untimed.Name, noLog, "--minimum-age 1s", command.ExitError, "[no-verified-time]"},
		{"no time, for a maximum", untimed.Name, noLog, "--maximum-age 87600h", command.ExitError, "[no-verified-time]"},
		{"no time, without a bound", untimed.Name, noLog, "", command.ExitAllowed, "1 allowed"},
		{"a log entry that is not verified", young.Name, noLog, "--minimum-age 1h", command.ExitError, "[no-verified-time]"},
		{"a timestamp that the terms do not read", stamped.Name, noLog, "--minimum-age 72h", command.ExitError, "[no-verified-time]"},
		{"a timestamp, old enough", stamped.Name, noLog, "--signed-not-before 2020-01-01T00:00:00Z --minimum-age 72h", command.ExitAllowed, "1 allowed"},
		{"a timestamp, too young", stamped.Name, noLog, "--signed-not-before 2020-01-01T00:00:00Z --minimum-age 101h", command.ExitDenied, "by the clock of a timestamp authority"},
		{"of a policy, old enough", young.Name, policy, "--minimum-age 4h", command.ExitAllowed, "1 allowed"},
		{"of a policy, too young", young.Name, policy, "--minimum-age 6h", command.ExitDenied, "[too-young]"},
		{"of a policy, too old", young.Name, policy, "--maximum-age 4h", command.ExitDenied, "[too-old]"},
		{"of expressions, old enough", twice.Name, cel, "--minimum-age 72h", command.ExitAllowed, "1 allowed"},
		{"of expressions, too young", young.Name, cel, "--minimum-age 6h", command.ExitDenied, "[too-young]"},
		{"of expressions, fresh", twice.Name, cel, "--maximum-age 2h", command.ExitAllowed, "1 allowed"},
		{"of expressions, too old", young.Name, cel, "--maximum-age 4h", command.ExitDenied, "[too-old]"},
		{"an image that no policy verifies", stamped.Name, policy, "--minimum-age 1h", command.ExitError, "no policy verified"},
		{"no age", young.Name, key, "--minimum-age 0s", command.ExitUsage, "want a positive time"},
		{"an age in the future", young.Name, key, "--maximum-age=-1h", command.ExitUsage, "want a positive time"},
		{"no signer", young.Name, trusted, "--minimum-age 1h", command.ExitUsage, "no policy or signer"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, append(append([]string{"verify", c.image}, c.args...), strings.Fields(c.flags)...)...)
			if code != c.code || !strings.Contains(unwrapped(out+errs), c.says) {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

// unwrapped joins the lines of a report.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestScanAge: a scan lists pods with images of too low or too high an age.
func TestScanAge(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	young, old := h.Build("young", "v1", "1"), h.Build("old", "v1", "2")
	ok(t, h.SignLegacy(young, verifytest.Claim{Signer: h.key, Time: time.Now().Add(-5 * time.Hour)}, nil))
	ok(t, h.SignLegacy(old, verifytest.Claim{Signer: h.key, Time: time.Now().Add(-100 * time.Hour)}, nil))
	pod := func(name, image string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: c, image: " + image + "}]}\n---\n"
	}
	both, one := h.file(t, "both.yaml", pod("the-young", young.Name)+pod("the-old", old.Name)), h.file(t, "old.yaml", pod("the-old", old.Name))
	for _, c := range []struct {
		reason, file, flags string
		code                int
		has, not            string
	}{
		{"without an age", both, "", command.ExitAllowed, "", "too-young"},
		{"young enough for both", both, "--minimum-age 4h", command.ExitAllowed, "", "too-young"},
		{"one is too young", both, "--minimum-age 72h", command.ExitDenied, "the-young", "the-old"},
		{"the old one alone", one, "--minimum-age 72h", command.ExitAllowed, "", "too-young"},
		{"one is stale", both, "--maximum-age 72h", command.ExitDenied, "the-old", "the-young"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			args := append([]string{"scan", "-f", c.file, "--key", h.path("key.pub"), "--trusted-root", h.path("trusted_root.json")}, strings.Fields(c.flags)...)
			code, out, errs := quaymaster(t, args...)
			if code != c.code || !strings.Contains(out, c.has) || strings.Contains(out, c.not) {
				t.Errorf("exit %d, want %d with %q and without %q:\n%s%s", code, c.code, c.has, c.not, out, errs)
			}
		})
	}
}
