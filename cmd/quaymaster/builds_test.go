package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/verify"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	generatorID = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/v2.1.0"
	releaseID   = "https://github.com/org/app/.github/workflows/release.yml@refs/tags/v1.2.3"
)

// workflow is a signer with the identity of a workflow on a runner of GitHub, for a repository of an organisation.
func (h *env) workflow(t *testing.T, id, repository string) *verifytest.Signer {
	t.Helper()
	return verifytest.Must(h.Sigstore.Keyless(verifytest.Identity{
		URI: id, Issuer: "https://token.actions.githubusercontent.com",
		Extensions: map[verifytest.Extension]string{
			verifytest.RunnerEnvironment: "github-hosted", verifytest.SourceRepositoryURI: "https://github.com/org/" + repository, verifytest.SourceRepositoryRef: "refs/tags/v1.2.3",
		},
	}))
}

// provenance02 is by the generator, provenance1 of GitHub's artifact attestations.
func provenance02(builder, repository, ref string) map[string]any {
	source := map[string]any{"uri": "git+https://github.com/org/" + repository + "@" + ref, "digest": map[string]any{"sha1": strings.Repeat("a", 40)}}
	return map[string]any{
		"builder": map[string]any{"id": builder}, "buildType": "https://github.com/slsa-framework/slsa-github-generator/container@v1",
		"invocation": map[string]any{"configSource": source}, "materials": []any{source},
	}
}

func provenance1(builder, repository, ref string) map[string]any {
	return map[string]any{
		"buildDefinition": map[string]any{
			"buildType":          "https://actions.github.io/buildtypes/workflow/v1",
			"externalParameters": map[string]any{"workflow": map[string]any{"repository": "https://github.com/org/" + repository, "ref": ref, "path": ".github/workflows/release.yml"}},
			"resolvedDependencies": []any{
				map[string]any{"uri": "git+https://github.com/org/" + repository + "@" + ref, "digest": map[string]any{"gitCommit": strings.Repeat("a", 40)}},
			},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": builder}},
	}
}

// TestBuilds: provenance by real signers, of which one statement must have the builder, for which its signer
// may sign, the level and the source.
func TestBuilds(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	const tag, main = "refs/tags/v1.2.3", "refs/heads/main"
	generator, release, other := h.workflow(t, generatorID, "app"), h.workflow(t, releaseID, "app"), h.workflow(t, generatorID, "other")
	image := func(name string, attestations ...func(of gatetest.Image)) string {
		built := h.Build(name, "v1", name)
		for _, attest := range attestations {
			attest(built)
		}
		return built.Name
	}
	by := func(signer *verifytest.Signer, predicate any) func(gatetest.Image) {
		return func(of gatetest.Image) {
			claim := verifytest.Claim{Signer: signer, NoLog: signer == h.key}
			if content := predicate.(map[string]any); content["builder"] != nil {
				ok(t, h.AttestLegacy(of, claim, attest.PredicateSLSAv02, predicate))
				return
			}
			ok(t, h.AttestBundle(of, claim, attest.PredicateSLSAv1, predicate))
		}
	}
	moved := h.Build("moved", "v1", "moved")
	generated := image("generated", by(generator, provenance02(generatorID, "app", tag)))
	attested := image("attested", by(release, provenance1(releaseID, "app", tag)))
	forged := image("forged", by(release, provenance02(generatorID, "app", tag)))
	byKey := image("bykey", by(h.key, provenance02(generatorID, "app", tag)))
	elsewhere := image("elsewhere", by(other, provenance02(generatorID, "other", tag)))
	forked := image("forked", by(other, provenance02(generatorID, "app", tag)))
	branch := image("branch", by(generator, provenance02(generatorID, "app", main)))
	halves := image("halves", by(other, provenance02(generatorID, "other", tag)), by(release, provenance1(releaseID, "app", tag)))
	beside := image("beside", by(other, provenance02(generatorID, "other", tag)), by(h.key, provenance02(generatorID, "app", tag)), by(generator, provenance02(generatorID, "app", tag)))
	foreign := image("foreign", func(of gatetest.Image) {
		claim := verifytest.Claim{Signer: generator, Statement: verifytest.Attestation(moved.Manifest.Digest, attest.PredicateSLSAv02, provenance02(generatorID, "app", tag))}
		claim.Statement.Version = "v0.1"
		ok(t, h.PutLegacy(of, ".att", verifytest.Must(h.Sigstore.Layer(claim))))
	})
	scanned := image("scanned", func(of gatetest.Image) {
		ok(t, h.AttestLegacy(of, verifytest.Claim{Signer: generator}, attest.PredicateVuln, map[string]any{"scanner": map[string]any{}}))
	})
	chains := provenance1("https://tekton.dev/chains/v2", "app", tag)
	chains["buildDefinition"].(map[string]any)["buildType"] = "https://tekton.dev/chains/v2/slsa"
	tekton := image("tekton", by(h.key, chains), func(of gatetest.Image) { ok(t, h.SignLegacy(of, verifytest.Claim{Signer: h.key, NoLog: true}, nil)) })

	trusted := []string{"--trusted-root", h.path("trusted_root.json")}
	key := append([]string{"--key", h.path("key.pub"), "--insecure-ignore-tlog"}, trusted...)
	const app = "--source-uri github.com/org/app"
	for _, c := range []struct {
		reason, image string
		args          []string
		flags         string
		code          int
		says          string
	}{
		{"level 3, v0.2", generated, trusted, "--slsa-build-level 3 " + app + " --source-ref " + tag, command.ExitAllowed, "1 allowed"},
		{"level 2, v1", attested, trusted, "--slsa-build-level 2 " + app + " --source-ref " + tag, command.ExitAllowed, "1 allowed"},
		{"the verdict names the build", generated, trusted, "--slsa-build-level 2 " + app + " -o json", command.ExitAllowed, "SLSA build level 3 by " + generatorID + " from https://github.com/org/app"},
		{"a lower level", attested, trusted, "--slsa-build-level 3 " + app, command.ExitDenied, "[low-build-level]"},
		{"the builder", generated, trusted, "--builder " + generatorID, command.ExitAllowed, "1 allowed"},
		{"another builder", generated, trusted, "--builder " + releaseID, command.ExitDenied, "[wrong-builder]"},
		{"the builder's id by another workflow", forged, trusted, "--slsa-build-level 1 " + app, command.ExitDenied, "[wrong-builder]"},
		{"the builder's id by a key", byKey, trusted, "--slsa-build-level 1 " + app, command.ExitDenied, "no provenance is signed by a known or declared builder"},
		{"another source", elsewhere, trusted, app, command.ExitDenied, "[wrong-source]"},
		{"another source, with the right one in the statement", forked, trusted, app, command.ExitDenied, "by the certificate of the signer"},
		{"a branch", branch, trusted, app + " --source-ref " + tag, command.ExitDenied, "[wrong-source]"},
		{"a branch, without a reference", branch, trusted, app, command.ExitAllowed, "1 allowed"},
		{"two statements that each meet half", halves, trusted, "--slsa-build-level 3 " + app, command.ExitDenied, "[wrong-source]"},
		{"beside statements that do not count", beside, trusted, "--slsa-build-level 3 " + app, command.ExitAllowed, "1 allowed"},
		{"of another image", foreign, trusted, app, command.ExitDenied, "[wrong-digest]"},
		{"no provenance", scanned, trusted, app, command.ExitDenied, "[no-attestation]"},
		{"no image", h.Registry.Host() + "/absent:v1", trusted, app, command.ExitError, "[image-not-found]"},
		{"Tekton Chains by the key of the flags", tekton, key, "--slsa-build-level 2 --builder https://tekton.dev/chains/v2 " + app, command.ExitAllowed, "1 allowed"},
		{"without the builder, for which the key signs", tekton, key, "--slsa-build-level 2 " + app, command.ExitDenied, "no provenance is signed by"},
		{"of a lower level than required", tekton, key, "--slsa-build-level 3 --builder https://tekton.dev/chains/v2", command.ExitDenied, "[low-build-level]"},
		{"the signature of the key is required, too", generated, key, app, command.ExitDenied, "[unsigned]"},
		{"a level alone names no build", generated, trusted, "--slsa-build-level 3", command.ExitUsage, "no policy or signer"},
		{"level 4", generated, trusted, "--slsa-build-level 4 " + app, command.ExitUsage, "want 1 to 3"},
		{"level 0", generated, trusted, "--slsa-build-level 0 " + app, command.ExitUsage, "--slsa-build-level is empty"},
		{"a source that is none", generated, trusted, "--source-uri oci://registry.example/app", command.ExitUsage, "--source-uri"},
		{"a reference in the source", generated, trusted, "--source-uri github.com/org/app@main", command.ExitUsage, "--source-ref"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			code, out, errs := quaymaster(t, append(append([]string{"verify", c.image}, c.args...), strings.Fields(c.flags)...)...)
			if code != c.code || !strings.Contains(unwrapped(out+errs), c.says) {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

// TestBuildsOfManifests: scan and explain have the same terms.
func TestBuildsOfManifests(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	built := h.Build("app", "v1", "1")
	ok(t, h.AttestBundle(built, verifytest.Claim{Signer: h.workflow(t, releaseID, "app")}, attest.PredicateSLSAv1, provenance1(releaseID, "app", "refs/tags/v1.2.3")))
	pod := h.file(t, "pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: web, image: '"+built.Name+"'}]}\n")
	for _, command := range []string{"scan", "explain", "verify"} {
		for source, want := range map[string]int{"github.com/org/app": 0, "github.com/fork/app": 1} {
			code, out, errs := quaymaster(t, command, "-f", pod, "--slsa-build-level", "2", "--source-uri", source, "--trusted-root", h.path("trusted_root.json"))
			if code != want || want == 1 && !strings.Contains(out, "wrong-source") {
				t.Errorf("%s, %s: exit %d, want %d:\n%s%s", command, source, code, want, out, errs)
			}
		}
	}
}

// TestBuildsElsewhere: provenance is read where --signature-repository names it.
func TestBuildsElsewhere(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	built := h.Build("app", "v1", "1")
	elsewhere := built
	elsewhere.Repository = "evidence"
	ok(t, h.AttestLegacy(elsewhere, verifytest.Claim{Signer: h.workflow(t, generatorID, "app")}, attest.PredicateSLSAv02, provenance02(generatorID, "app", "refs/tags/v1.2.3")))
	for repository, want := range map[string]int{"evidence": command.ExitAllowed, "other": command.ExitDenied} {
		code, out, errs := quaymaster(t, "verify", built.Name, "--source-uri", "github.com/org/app", "--trusted-root", h.path("trusted_root.json"),
			"--signature-repository", h.Registry.Host()+"/"+repository)
		if code != want {
			t.Errorf("%s: exit %d, want %d:\n%s%s", repository, code, want, out, errs)
		}
	}
}

// TestBuildLevelInSummary: a verification summary states the level that provenance showed, and a consumer
// may require it.
func TestBuildLevelInSummary(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	h.ci(t)
	sesame := map[string]string{verify.CosignPassword: "open sesame"}
	built, signed := h.Build("built", "v1", "1"), h.Build("signed", "v1", "2")
	ok(t, h.AttestLegacy(built, verifytest.Claim{Signer: h.workflow(t, generatorID, "app")}, attest.PredicateSLSAv02, provenance02(generatorID, "app", "refs/tags/v1.2.3")))
	ok(t, h.SignBundle(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	summary := []string{"--vsa-verifier-id", ciID, "--vsa-key", h.path("ci.key"), "--vsa-push", "-o", "vsa=" + h.path("vsa.jsonl")}
	for _, c := range []struct {
		image, level string
		args         []string
	}{
		{built.Name, "3", []string{"--slsa-build-level", "2", "--source-uri", "github.com/org/app", "--trusted-root", h.path("trusted_root.json")}},
		{signed.Name, "UNEVALUATED", []string{"--key", h.path("key.pub"), "--insecure-ignore-tlog"}},
	} {
		code, out, errs := piped(t, "", sesame, append(append([]string{"verify", c.image}, c.args...), summary...)...)
		if said := statementIn(t, strings.TrimSpace(h.read(t, "vsa.jsonl"))); code != command.ExitAllowed || !strings.Contains(said, `"verifiedLevels":["SLSA_BUILD_LEVEL_`+c.level+`"]`) {
			t.Errorf("exit %d, %s\n%s%s", code, said, out, errs)
		}
	}
	accept := []string{"verify", "--accept-vsa", ciID, "--key", h.path("ci.pub"), "--insecure-ignore-tlog"}
	for _, c := range []struct {
		reason, image, level string
		code                 int
		says                 string
	}{
		{"the level", built.Name, "3", command.ExitAllowed, "1 allowed"},
		{"a lower one suffices", built.Name, "2", command.ExitAllowed, "1 allowed"},
		{"not evaluated", signed.Name, "1", command.ExitDenied, "SLSA build level 1 is required"},
		{"no level", built.Name, "0", command.ExitUsage, "want 1 to 3"},
		{"a level that does not exist", built.Name, "4", command.ExitUsage, "want 1 to 3"},
	} {
		code, out, errs := quaymaster(t, append(accept, c.image, "--accept-vsa-level", c.level)...)
		if code != c.code || !strings.Contains(unwrapped(out+errs), c.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", c.reason, code, c.code, c.says, out, errs)
		}
	}
}

// TestProvenancePolicies: policies of docs/slsa.md in each dialect require a release workflow and a source.
func TestProvenancePolicies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "slsa.md"))
	ok(t, err)
	_, page, _ := strings.Cut(string(text), "## In policies\n")
	page, _, _ = strings.Cut(page, "## Limits\n")
	var policies []string
	var rego string
	for i, block := range strings.Split(page, "```") {
		if kind, content, _ := strings.Cut(block, "\n"); i%2 == 1 && kind == "yaml" {
			policies = append(policies, content)
		} else if i%2 == 1 && kind == "rego" {
			rego = content
		}
	}
	if len(policies) != 3 || rego == "" {
		t.Fatalf("%d policies, and %q", len(policies), rego)
	}
	head, _, isCUE := strings.Cut(policies[2], "        type: cue\n")
	if !isCUE {
		t.Fatal("the last policy has no condition in CUE")
	}
	policies = append(policies, head+"        type: rego\n        data: |\n          "+strings.ReplaceAll(strings.TrimSpace(rego), "\n", "\n          ")+"\n")

	h := newEnv(t, registrytest.Options{})
	const tag = "refs/tags/v1.2.3"
	release, other := h.workflow(t, releaseID, "app"), h.workflow(t, strings.Replace(releaseID, "release.yml", "test.yml", 1), "app")
	images := map[string]string{}
	for name, made := range map[string]struct {
		signer  *verifytest.Signer
		builder string
		source  string
	}{"genuine": {release, releaseID, "app"}, "forged": {other, releaseID, "app"}, "builder": {release, generatorID, "app"}, "source": {release, releaseID, "other"}} {
		built := h.Build("shop/"+name, "v1", name)
		ok(t, h.AttestBundle(built, verifytest.Claim{Signer: made.signer}, attest.PredicateSLSAv1, provenance1(made.builder, made.source, tag)))
		images[name] = built.Name
	}
	images["none"] = h.Build("shop/none", "v1", "none").Name
	for i, policy := range policies {
		file := h.file(t, fmt.Sprintf("policy%d.yaml", i), strings.ReplaceAll(policy, "registry.example/", h.Registry.Host()+"/"))
		for name, image := range images {
			want := command.ExitDenied
			if name == "genuine" {
				want = command.ExitAllowed
			}
			if code, out, errs := quaymaster(t, "verify", image, "--policy", file, "--trusted-root", h.path("trusted_root.json"), "--require-match"); code != want {
				t.Errorf("policy %d, %s: exit %d, want %d:\n%s%s", i, name, code, want, out, errs)
			}
		}
	}
}
