package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestRetiredKey: what a key signed after it was retired proves nothing, whether flags or
// a gateway's settings say so, which a bundle carries.
func TestRetiredKey(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, untimed := h.Build("signed", "v1", "1"), h.Build("untimed", "v1", "2")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key}, nil))
	ok(t, h.SignLegacy(untimed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	key, err := x509.MarshalPKIXPublicKey(h.key.Public())
	ok(t, err)
	sum := sha256.Sum256(key)
	retired := func(at time.Time) string { return hex.EncodeToString(sum[:]) + "=" + at.Format(time.RFC3339) }
	early, late := retired(time.Now().Add(-time.Hour)), retired(time.Now().Add(time.Hour))
	another := strings.Repeat("0", 64) + early[64:]
	from := func(name, entry string) []string {
		fingerprint, at, _ := strings.Cut(entry, "=")
		settings := h.file(t, name+".yaml", "apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\ntrust: {retiredKeys: {\""+fingerprint+"\": "+at+"}}\n")
		file := h.path(name + ".tar.gz")
		if code, out, errs := quaymaster(t, "bundle", "create", "-o", file, "--gateway-config", settings, "--trusted-root", h.path("trusted_root.json"), "--key", h.path("key.pub")); code != command.ExitAllowed {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		return []string{"--bundle", file}
	}
	plain := []string{"--key", h.path("key.pub"), "--trusted-root", h.path("trusted_root.json")}
	for _, c := range []struct {
		reason, image string
		args          []string
		code          int
		says          string
	}{
		{"not retired", signed.Name, plain, command.ExitAllowed, ""},
		{"another key is", signed.Name, append(plain, "--retired-key", another), command.ExitAllowed, ""},
		{"signed before", signed.Name, append(plain, "--retired-key", late), command.ExitAllowed, ""},
		{"signed after", signed.Name, append(plain, "--retired-key", early), command.ExitDenied, "outside-validity"},
		{"signed without a timestamp", untimed.Name, append(plain, "--insecure-ignore-tlog", "--retired-key", late), command.ExitDenied, "no-timestamp"},
		{"no time", signed.Name, append(plain, "--retired-key", early[:64]), command.ExitUsage, "want SHA256=TIME"},
		{"no key", signed.Name, append(plain, "--retired-key", early[1:]), command.ExitUsage, "64 hexadecimal digits"},
		{"a gateway's, signed before", signed.Name, from("late", late), command.ExitAllowed, ""},
		{"a gateway's, signed after", signed.Name, from("early", early), command.ExitDenied, "outside-validity"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, append([]string{"verify", c.image}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}
