package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Defaults of the suite's client for a case without a file of its own.
const (
	beacon       = "https://github.com/sigstore-conformance/extremely-dangerous-public-oidc-beacon/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
	beaconIssuer = "https://token.actions.githubusercontent.com"
)

// suiteFolder is the environment variable that names the suite's folder
// test/assets/bundle-verify; the suite is no Go module.
const suiteFolder = "SIGSTORE_CONFORMANCE"

// TestSuite runs a checkout of the public suite.
func TestSuite(t *testing.T) {
	folder := os.Getenv(suiteFolder)
	if folder == "" {
		t.Skipf("%s does not name the folder test/assets/bundle-verify of a sigstore-conformance checkout", suiteFolder)
	}
	runSuite(t, folder, 70)
}

// runSuite runs every case of a folder in the suite's layout, by file and by
// digest, with the command line that the suite's client makes.
func runSuite(t *testing.T, folder string, least int) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		cases++
		args, artifact := commandLine(t, filepath.Join(folder, entry.Name()))
		content, err := os.ReadFile(artifact)
		if err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"file": artifact, "digest": image.DigestOf(content).String()} {
			t.Run(entry.Name()+"/"+name, func(t *testing.T) {
				var stderr bytes.Buffer
				status := run(t.Context(), append(args[:len(args):len(args)], target), &stderr)
				wantsProof := !strings.HasSuffix(entry.Name(), "_fail")
				if (status == exitProved) != wantsProof {
					t.Errorf("exit status %d, want a proof: %t: %s", status, wantsProof, &stderr)
				}
			})
		}
	}
	if cases < least {
		t.Errorf("%s has %d cases, want at least %d", folder, cases, least)
	}
}

func commandLine(t *testing.T, folder string) (args []string, artifact string) {
	t.Helper()
	file := func(name string) string {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil {
			return ""
		}
		return path
	}
	text := func(name, otherwise string) string {
		path := file(name)
		if path == "" {
			return otherwise
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(content))
	}
	args = []string{"verify-bundle", "--bundle", filepath.Join(folder, "bundle.sigstore.json")}
	key := file("key.pub")
	if key != "" {
		args = append(args, "--key", key)
	}
	// One case is known by its name: both kinds of signer are given, which must
	// fail.
	if key == "" || strings.Contains(filepath.Base(folder), "managed-key-and-client-identity") {
		args = append(args, "--certificate-identity", text("identity", beacon), "--certificate-oidc-issuer", text("issuer", beaconIssuer))
	}
	if root := file("trusted_root.json"); root != "" {
		args = append(args, "--trusted-root", root)
	}
	artifact = file("artifact")
	if artifact == "" {
		artifact = filepath.Join(filepath.Dir(folder), "a.txt")
	}
	return args, artifact
}

// TestLayout runs cases in the suite's layout that are signed here, so that the
// command is tested without the suite.
func TestLayout(t *testing.T) {
	own := verifytest.Must(verifytest.New(verifytest.Options{Name: "own"}))
	foreign := verifytest.Must(verifytest.New(verifytest.Options{Name: "foreign"}))
	artifact := []byte("the artifact\n")
	digest := image.DigestOf(artifact).String()
	signer := verifytest.Must(own.Keyless(verifytest.Identity{URI: beacon, Issuer: beaconIssuer}))
	other := verifytest.Must(own.Keyless(verifytest.Identity{URI: beacon + "x", Issuer: beaconIssuer}))
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	message := func(change func(*verifytest.Claim)) verifytest.Claim {
		c := verifytest.Claim{Signer: signer, Artifact: artifact}
		if change != nil {
			change(&c)
		}
		return c
	}
	v2 := []verifytest.Record{{Log: own.Rekor2}}
	statement := verifytest.Attestation(digest, "https://slsa.dev/provenance/v1", nil)
	tests := map[string]verifytest.Claim{
		"happy-path":               message(nil),
		"happy-path-v0.1":          message(func(c *verifytest.Claim) { c.Version = "0.1" }),
		"happy-path-v0.2":          message(func(c *verifytest.Claim) { c.Version = "0.2" }),
		"happy-path-intoto":        {Signer: signer, Statement: statement},
		"rekor2-happy-path":        message(func(c *verifytest.Claim) { c.Records, c.Stamps = v2, []verifytest.Stamp{{}} }),
		"rekor2-dsse-happy-path":   {Signer: signer, Statement: statement, Records: v2, Stamps: []verifytest.Stamp{{}}},
		"rekor2-no-timestamp_fail": message(func(c *verifytest.Claim) { c.Records = v2 }),
		"rekor2-other-signature_fail": message(func(c *verifytest.Claim) {
			c.Records = []verifytest.Record{{Log: own.Rekor2, Fault: verifytest.OtherSignature}}
			c.Stamps = []verifytest.Stamp{{}}
		}),
		"rekor2-foreign-tsa_fail":              message(func(c *verifytest.Claim) { c.Records, c.Stamps = v2, []verifytest.Stamp{{TSA: foreign.TSA}} }),
		"wrong-material_fail":                  message(func(c *verifytest.Claim) { c.Signer = other }),
		"bundle-without-entry_fail":            message(func(c *verifytest.Claim) { c.NoLog = true }),
		"swapped-tlog-entry_fail":              message(func(c *verifytest.Claim) { c.Records = []verifytest.Record{{Fault: verifytest.OtherSignature}} }),
		"invalid-checkpoint_fail":              message(func(c *verifytest.Claim) { c.Records = []verifytest.Record{{Fault: verifytest.WrongCheckpoint}} }),
		"invalid-inclusion-proof_fail":         message(func(c *verifytest.Claim) { c.Records = []verifytest.Record{{Fault: verifytest.WrongProof}} }),
		"invalid-inclusion-promise_fail":       message(func(c *verifytest.Claim) { c.Records = []verifytest.Record{{Fault: verifytest.WrongPromise}} }),
		"bad-signature_fail":                   message(func(c *verifytest.Claim) { c.WrongSignature = true }),
		"other-artifact_fail":                  message(func(c *verifytest.Claim) { c.Artifact = []byte("another") }),
		"intoto-other-subject_fail":            {Signer: signer, Statement: verifytest.Attestation(image.DigestOf(nil).String(), "x", nil)},
		"intoto-no-signature_fail":             {Signer: signer, Statement: statement, NoSignatures: true},
		"intoto-type-missing_fail":             {Signer: signer, Payload: []byte(`{"subject":[{"digest":{"sha256":"` + digest[7:] + `"}}],"predicateType":"x","predicate":{}}`)},
		"managed-key-happy-path":               {Signer: key, Artifact: artifact},
		"managed-key-intoto":                   {Signer: key, Statement: statement},
		"managed-key-wrong-key_fail":           {Signer: verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})), Artifact: artifact},
		"managed-key-certificate_fail":         message(nil),
		"managed-key-and-client-identity_fail": {Signer: key, Artifact: artifact},
	}
	folder := t.TempDir()
	write := func(name string, content []byte) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", artifact)
	for name, claim := range tests {
		write(name+"/bundle.sigstore.json", verifytest.Must(own.Bundle(claim)))
		write(name+"/trusted_root.json", own.TrustedRoot())
		if strings.HasPrefix(name, "managed-key") {
			write(name+"/key.pub", key.PublicPEM())
		}
	}
	runSuite(t, folder, len(tests))
}

// TestPublicGood proves bundles of the public-good instance, which the
// sigstore-go module carries, with the embedded root.
func TestPublicGood(t *testing.T) {
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sigstore/sigstore-go").Output()
	if err != nil {
		t.Fatalf("find the sigstore-go module: %v", err)
	}
	examples := filepath.Join(strings.TrimSpace(string(module)), "examples")
	const (
		npm      = "sha512:76176ffa33808b54602c7c35de5c6e9a4deb96066dba6533f50ac234f4f1f4c6b3527515dc17c06fbe2860030f410eee69ea20079bd3a2c6f3dcf3b329b10751"
		release  = "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main"
		byPerson = "--certificate-identity"
	)
	tests := []struct {
		name, reason string
		bundle       string
		signer       []string
		target       string
		want         int
	}{
		{"provenance", "signed by the workflow", "bundle-provenance.json", []string{byPerson, release, "--certificate-oidc-issuer", beaconIssuer}, npm, exitProved},
		{"provenance, other workflow", "signed by another workflow", "bundle-provenance.json", []string{byPerson, beacon, "--certificate-oidc-issuer", beaconIssuer}, npm, exitRefused},
		{"provenance, other artifact", "of another artifact", "bundle-provenance.json", []string{byPerson, release, "--certificate-oidc-issuer", beaconIssuer}, strings.Replace(npm, "76176", "86176", 1), exitRefused},
		{"publish", "signed by the registry's key", "bundle-publish.json", []string{"--key", filepath.Join(examples, "publish_key.pub")}, npm, exitProved},
		{"publish, other bundle", "signed by a certificate", "bundle-provenance.json", []string{"--key", filepath.Join(examples, "publish_key.pub")}, npm, exitRefused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"verify-bundle", "--bundle", filepath.Join(examples, test.bundle)}, test.signer...)
			var stderr bytes.Buffer
			if status := run(t.Context(), append(args, test.target), &stderr); status != test.want {
				t.Errorf("exit status %d, want %d (%s): %s", status, test.want, test.reason, &stderr)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	bundle := []string{"verify-bundle", "--bundle", "b"}
	tests := []struct {
		reason string
		args   []string
	}{
		{"no command", nil},
		{"another command", []string{"sign-bundle"}},
		{"no signer", append(bundle[:3:3], "a")},
		{"an identity without issuer", append(bundle[:3:3], "--certificate-identity", "i", "a")},
		{"both kinds of signer", append(bundle[:3:3], "--key", "k", "--certificate-identity", "i", "--certificate-oidc-issuer", "u", "a")},
		{"no artifact", append(bundle[:3:3], "--key", "k")},
		{"no bundle", []string{"verify-bundle", "--key", "k", "a"}},
		{"an unknown flag", append(bundle[:3:3], "--key", "k", "--trust-me", "a")},
	}
	for _, test := range tests {
		if status := run(t.Context(), test.args, new(bytes.Buffer)); status != exitUsage {
			t.Errorf("%s: exit status %d, want %d", test.reason, status, exitUsage)
		}
	}
	missing := append(bundle[:3:3], "--key", filepath.Join(t.TempDir(), "none"), "a")
	if status := run(t.Context(), missing, new(bytes.Buffer)); status != exitRefused {
		t.Errorf("a missing file: exit status %d, want %d", status, exitRefused)
	}
}
