package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/verify"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/report/vsa"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const ciID = "https://ci.example/verifier"

// ci is the verifier's key pair in files, as cosign generate-key-pair writes it.
func (h *env) ci(t *testing.T) *verifytest.Signer {
	t.Helper()
	signer, err := verifytest.KeySigner(verifytest.KeyOptions{})
	ok(t, err)
	plain, err := signer.PrivatePEM()
	ok(t, err)
	block, _ := pem.Decode(plain)
	locked, err := encrypted.Encrypt(block.Bytes, []byte("open sesame"))
	ok(t, err)
	h.file(t, "ci.key", string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: locked})))
	h.file(t, "ci.pub", string(signer.PublicPEM()))
	return signer
}

// statementIn reads a line of a file of summaries.
func statementIn(t *testing.T, line string) string {
	t.Helper()
	var bundle struct {
		DSSEEnvelope struct{ Payload []byte }
	}
	ok(t, json.Unmarshal([]byte(line), &bundle))
	return string(bundle.DSSEEnvelope.Payload)
}

// TestSummaries: a summary is made, signed, stored and accepted; also of an image that failed,
// could not be verified, or that no policy matches.
func TestSummaries(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	h.ci(t)
	sesame := map[string]string{verify.CosignPassword: "open sesame"}
	good, bad, none := h.Build("good", "v1", "1"), h.Build("bad", "v1", "2"), h.Registry.Host()+"/none:v1"
	ok(t, h.SignBundle(good, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	prove := []string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "--vsa-verifier-id", ciID, "-o", "vsa=" + h.path("vsa.jsonl")}
	accept := []string{"verify", "--accept-vsa", ciID, "--key", h.path("ci.pub"), "--insecure-ignore-tlog"}
	if code, out, _ := quaymaster(t, append(accept, good.Name)...); code != command.ExitDenied || !strings.Contains(out, "no attestation") {
		t.Fatalf("accepted before there is one: %d\n%s", code, out)
	}
	signing := append(prove, "--vsa-key", h.path("ci.key"), "--vsa-push", good.Name, bad.Name, none)
	code, _, errs := piped(t, "", sesame, signing...)
	if code != command.ExitDenied || !strings.Contains(errs, "no verification summary of "+none) || strings.Count(errs, "the verification summary of") != 2 {
		t.Fatalf("exit status %d:\n%s", code, errs)
	}
	lines := strings.Split(strings.TrimSpace(h.read(t, "vsa.jsonl")), "\n")
	if len(lines) != 2 || !strings.Contains(statementIn(t, lines[0]), `"verificationResult":"PASSED"`) || !strings.Contains(statementIn(t, lines[1]), `"verificationResult":"FAILED"`) {
		t.Fatalf("%q", lines)
	}
	for _, row := range []struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		{"fresh", append(accept, good.Name), command.ExitAllowed, "1 allowed"},
		{"the summary of a failed image", append(accept, bad.Name), command.ExitDenied, "states that the image failed"},
		{"without a summary", append(accept, none), command.ExitError, "could not be verified"},
		{"too old", append(accept, "--accept-vsa-max-age", "1ns", good.Name), command.ExitDenied, "ago, at most 1ns"},
		{"of another verifier", []string{"verify", "--accept-vsa", "https://cd.example", "--key", h.path("ci.pub"), "--insecure-ignore-tlog", good.Name}, command.ExitDenied, "of the verifier " + ciID},
		{"by another key", []string{"verify", "--accept-vsa", ciID, "--key", h.path("key.pub"), "--insecure-ignore-tlog", good.Name}, command.ExitDenied, "another key"},
		{"without a log entry, where one is wanted", []string{"verify", "--accept-vsa", ciID, "--key", h.path("ci.pub"), "--trusted-root", h.path("trusted_root.json"), good.Name}, command.ExitDenied, "transparency log"},
		{"of the policies", append(accept, "--accept-vsa-policy", "sha256:"+policiesIn(t, lines[0]), good.Name), command.ExitAllowed, "1 allowed"},
		{"of other policies", append(accept, "--accept-vsa-policy", "sha256:"+strings.Repeat("0", 64), good.Name), command.ExitDenied, "other policies"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if code, out, errs := quaymaster(t, row.args...); code != row.code || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), row.says) {
				t.Errorf("exit status %d, want %d; want %q in:\n%s%s", code, row.code, row.says, out, errs)
			}
		})
	}
}

func policiesIn(t *testing.T, line string) string {
	t.Helper()
	var statement struct {
		Predicate struct {
			Policy struct{ Digest struct{ SHA256 string } }
		}
	}
	ok(t, json.Unmarshal([]byte(statementIn(t, line)), &statement))
	return statement.Predicate.Policy.Digest.SHA256
}

// TestSummaryIsCheap: how much is asked of a registry, by a process that makes its first request
// to it: tag, cosign's tag, referrers by the API and at the referrers tag, manifest, summary.
func TestSummaryIsCheap(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	h.ci(t)
	good := h.Build("good", "v1", "1")
	ok(t, h.SignBundle(good, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	if code, _, errs := piped(t, "", map[string]string{verify.CosignPassword: "open sesame"}, "verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "--vsa-verifier-id", ciID,
		"-o", "vsa", "--vsa-key", h.path("ci.key"), "--vsa-push", good.Name); code != command.ExitAllowed {
		t.Fatal(code, errs)
	}
	h.Registry.Reset()
	if code, out, errs := quaymaster(t, "verify", "--accept-vsa", ciID, "--key", h.path("ci.pub"), "--insecure-ignore-tlog", good.Name); code != command.ExitAllowed {
		t.Fatal(code, out, errs)
	}
	if asked := h.Registry.Requests(); len(asked) > 6 {
		t.Errorf("%d requests", len(asked))
	}
}

// TestAnotherNamesSummary: a summary of the same bytes under another name, or of other bytes under
// the same, does not count for an image; nor does one from the future.
func TestAnotherNamesSummary(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	ci := h.ci(t)
	summary := func(at time.Time, of gatetest.Image) map[string]any {
		return map[string]any{
			"verifier": map[string]any{"id": ciID}, "timeVerified": at.UTC().Format(time.RFC3339), "verificationResult": "PASSED",
			"resourceUri": vsa.ResourceURI(repositoryOf(t, of.Name)), "verifiedLevels": []string{"SLSA_BUILD_LEVEL_UNEVALUATED"},
		}
	}
	for i, row := range []struct {
		reason, says string
		edit         func(said map[string]any, twin gatetest.Image)
		code         int
	}{
		{"as it is", "1 allowed", func(map[string]any, gatetest.Image) {}, command.ExitAllowed},
		{"under another name", "the summary is about oci://", func(said map[string]any, twin gatetest.Image) {
			said["resourceUri"] = vsa.ResourceURI(repositoryOf(t, twin.Name))
		}, command.ExitDenied},
		{"a little ahead", "1 allowed", func(said map[string]any, _ gatetest.Image) {
			said["timeVerified"] = time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		}, command.ExitAllowed},
		{"from the future", "in the future", func(said map[string]any, _ gatetest.Image) {
			said["timeVerified"] = time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		}, command.ExitDenied},
		{"without a time", "has no time of verification", func(said map[string]any, _ gatetest.Image) { delete(said, "timeVerified") }, command.ExitDenied},
		{"passed at the level FAILED", "image failed", func(said map[string]any, _ gatetest.Image) { said["verifiedLevels"] = []string{"FAILED"} }, command.ExitDenied},
		{"no result", "neither PASSED nor FAILED", func(said map[string]any, _ gatetest.Image) { delete(said, "verificationResult") }, command.ExitDenied},
		{"no verifier", "verifier", func(said map[string]any, _ gatetest.Image) { said["verifier"] = 1 }, command.ExitDenied},
	} {
		of, twin := h.Build("app", "v1", fmt.Sprint(i)), h.Build("twin", "v1", fmt.Sprint(i))
		said := summary(time.Now(), of)
		row.edit(said, twin)
		ok(t, h.AttestBundle(of, verifytest.Claim{Signer: ci, NoLog: true}, attest.PredicateVSA, said))
		code, out, errs := quaymaster(t, "verify", "--accept-vsa", ciID, "--key", h.path("ci.pub"), "--insecure-ignore-tlog", of.Name)
		if code != row.code || !strings.Contains(strings.Join(strings.Fields(out+errs), " "), row.says) {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s%s", row.reason, code, row.code, row.says, out, errs)
		}
	}
}

func repositoryOf(t *testing.T, name string) image.Repository {
	t.Helper()
	ref, err := image.Parse(name)
	ok(t, err)
	return ref.Repository()
}

// TestUnsignedSummary: without a key a plain statement is written, and it does not count as
// signed.
func TestUnsignedSummary(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	good := h.Build("good", "v1", "1")
	ok(t, h.SignBundle(good, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	code, out, errs := quaymaster(t, "verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", "--vsa-verifier-id", ciID, "-o", "vsa", good.Name)
	if code != command.ExitAllowed || errs != "" {
		t.Fatal(code, errs)
	}
	statement, err := attest.ParseStatement([]byte(out))
	if err != nil || statement.PredicateType != attest.PredicateVSA || strings.Count(out, "\n") != 1 {
		t.Fatal(out, err)
	}
}

// TestSummariesRefuse: wrong use ends before any work is done, and a summary that cannot
// be stored is no success.
func TestSummariesRefuse(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	h.ci(t)
	good := h.Build("good", "v1", "1")
	ok(t, h.SignBundle(good, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	h.Registry.SetFaults(registrytest.Fault{Method: "POST", Do: registrytest.Status(403)})
	sesame := map[string]string{verify.CosignPassword: "open sesame"}
	base := []string{"verify", "--key", h.path("key.pub"), "--insecure-ignore-tlog", good.Name}
	to := "vsa=" + h.path("vsa.jsonl")
	for _, row := range []struct {
		reason string
		env    map[string]string
		args   []string
		code   int
		says   string
	}{
		{"no verifier", nil, []string{"-o", "vsa"}, command.ExitUsage, "-o vsa: set --vsa-verifier-id, a URI such as https://ci.example/verifier\n"},
		{"a verifier that is no URI", nil, []string{"-o", "vsa", "--vsa-verifier-id", "ci"}, command.ExitUsage, "-o vsa: --vsa-verifier-id: the verifier's id \"ci\" is no URI"},
		{"policies that are no URI", nil, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-policy-uri", "policies"}, command.ExitUsage, "-o vsa: --vsa-policy-uri: the policy's name \"policies\" is no URI"},
		{"a push of an unsigned summary", nil, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-push"}, command.ExitUsage, "--vsa-key"},
		{"a key, and no summary", nil, []string{"--vsa-key", h.path("ci.key")}, command.ExitUsage, "-o vsa"},
		{"a key from a variable that is unset", nil, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-key", ""}, command.ExitUsage, "is empty; a variable"},
		{"no such key", nil, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-key", h.path("none")}, command.ExitUsage, "none"},
		{"a public key", nil, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-key", h.path("ci.pub")}, command.ExitUsage, "PUBLIC KEY"},
		{"no password", nil, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-key", h.path("ci.key")}, command.ExitUsage, "COSIGN_PASSWORD is not set"},
		{"another password", map[string]string{verify.CosignPassword: "open barley"}, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-key", h.path("ci.key")}, command.ExitUsage, "password is wrong"},
		{"a place without a push", sesame, []string{"-o", "vsa", "--vsa-verifier-id", ciID, "--vsa-key", h.path("ci.key"), "--vsa-repository", "a.example/b"}, command.ExitUsage, "--vsa-push"},
		{"a registry that keeps nothing", sesame, []string{"-o", to, "--vsa-verifier-id", ciID, "--vsa-key", h.path("ci.key"), "--vsa-push"}, command.ExitError, "refused"},
		{"an age of nothing", nil, []string{"--accept-vsa", ciID, "--accept-vsa-max-age", "0s"}, command.ExitUsage, "--accept-vsa-max-age"},
		{"an age without an accepted verifier", nil, []string{"--accept-vsa-max-age", "1h"}, command.ExitUsage, "--accept-vsa"},
		{"a digest that is none", nil, []string{"--accept-vsa", ciID, "--accept-vsa-policy", "x"}, command.ExitUsage, "--accept-vsa-policy"},
		{"an empty verifier", nil, []string{"--accept-vsa", ""}, command.ExitUsage, "is empty; a variable"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			code, out, errs := piped(t, "", row.env, append(base, row.args...)...)
			if code != row.code || !strings.Contains(errs, row.says) || strings.Contains(out+errs, "sesame") {
				t.Errorf("exit status %d, want %d; want %q in:\n%s%s", code, row.code, row.says, out, errs)
			}
		})
	}
	if code, _, errs := quaymaster(t, "verify", "--accept-vsa", ciID, "--policy", h.path("key.pub"), good.Name); code != command.ExitUsage || !strings.Contains(errs, "anyone can write") {
		t.Errorf("an unauthenticated summary: %d %s", code, errs)
	}
}

// TestSummaryPage: the commands of docs/vsa.md work as described, one after the other.
func TestSummaryPage(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	h.ci(t)
	built := h.Build("shop/app", "v1", "1")
	ok(t, h.SignLegacy(built, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	page, err := os.ReadFile("../../docs/vsa.md")
	ok(t, err)
	_, rest, found := bytes.Cut(page, []byte("```sh\n"))
	block, _, ended := bytes.Cut(rest, []byte("```"))
	if !found || !ended {
		t.Fatal("no commands")
	}
	fill := strings.NewReplacer("\\\n", " ", "registry.example", h.Registry.Host(), " cosign.pub", " "+h.path("key.pub"), " ci.", " "+h.path("ci."), "vsa=", "vsa="+h.path(""))
	ran := 0
	for line := range strings.SplitSeq(fill.Replace(string(block)), "\n") {
		args := strings.Fields(line)
		if len(args) == 0 || args[0] != "quaymaster" {
			continue
		}
		ran++
		if code, out, errs := piped(t, "", map[string]string{verify.CosignPassword: "open sesame"}, args[1:]...); code != command.ExitAllowed {
			t.Fatalf("%s: %d\n%s%s", line, code, out, errs)
		}
	}
	if ran != 2 {
		t.Errorf("%d commands were run", ran)
	}
}

// TestSummaryPolicyPage: the ImageValidatingPolicy of docs/vsa.md takes a summary or a
// signature, and neither by another key.
func TestSummaryPolicyPage(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	ci := h.ci(t)
	page, err := os.ReadFile("../../docs/vsa.md")
	ok(t, err)
	_, rest, found := strings.Cut(string(page), "An ImageValidatingPolicy accepts it in place of a signature:\n\n```yaml\n")
	text, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("no policy")
	}
	quoted := func(name string) string { return fmt.Sprintf("%q", h.read(t, name)) }
	fill := strings.NewReplacer("registry.example", h.Registry.Host(), `"<ci.pub>"`, quoted("ci.pub"), `"<cosign.pub>"`, quoted("key.pub"))
	made := h.file(t, "policy.yaml", fill.Replace(text))
	said := func(of gatetest.Image, result string) map[string]any {
		return map[string]any{
			"verifier": map[string]any{"id": ciID}, "timeVerified": time.Now().UTC().Format(time.RFC3339), "verificationResult": result,
			"resourceUri": vsa.ResourceURI(repositoryOf(t, of.Name)), "verifiedLevels": []string{"SLSA_BUILD_LEVEL_UNEVALUATED"},
		}
	}
	for i, row := range []struct {
		reason string
		stored func(of gatetest.Image) error
		code   int
	}{
		{"a summary alone", func(of gatetest.Image) error {
			return h.AttestBundle(of, verifytest.Claim{Signer: ci, NoLog: true}, attest.PredicateVSA, said(of, "PASSED"))
		}, command.ExitAllowed},
		{"a signature alone", func(of gatetest.Image) error { return h.SignLegacy(of, verifytest.Claim{Signer: h.key}, nil) }, command.ExitAllowed},
		{"neither", func(gatetest.Image) error { return nil }, command.ExitDenied},
		{"a summary that it failed", func(of gatetest.Image) error {
			return h.AttestBundle(of, verifytest.Claim{Signer: ci, NoLog: true}, attest.PredicateVSA, said(of, "FAILED"))
		}, command.ExitDenied},
		{"a summary by the signer", func(of gatetest.Image) error {
			return h.AttestBundle(of, verifytest.Claim{Signer: h.key, NoLog: true}, attest.PredicateVSA, said(of, "PASSED"))
		}, command.ExitDenied},
		{"a signature by the verifier", func(of gatetest.Image) error { return h.SignLegacy(of, verifytest.Claim{Signer: ci}, nil) }, command.ExitDenied},
	} {
		of := h.Build("shop/app", "v1", fmt.Sprint("page ", i))
		ok(t, row.stored(of))
		manifest := h.file(t, "pod.yaml", fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c, image: %q}]}\n", of.ByDigest()))
		if code, out, errs := quaymaster(t, "verify", "--policy", made, "--trusted-root", h.path("trusted_root.json"), "-f", manifest); code != row.code {
			t.Errorf("%s: exit status %d, want %d\n%s%s", row.reason, code, row.code, out, errs)
		}
	}
}
