package attacks

import (
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// The builder of level 3 of the cases, and the source and reference from which it builds.
const (
	generator  = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/v2.1.0"
	ofGitHub   = "https://token.actions.githubusercontent.com"
	appSource  = "https://github.com/org/app"
	releaseTag = "refs/tags/v1.2.3"
)

// required adds the required builds to the policies, as the settings of a gateway do.
func (s *scene) required([]*policy.Policy) (added []*policy.Policy, err error) {
	if s.builds.IsZero() {
		return added, nil
	}
	made, err := requirements.Compile("Settings", "settings", []requirements.Requirement{{Path: "requirements[0]", Images: []string{"*"}, Provenance: s.builds}})
	return append(added, made), err
}

// requiring are the same as flags of the program.
func (s *scene) requiring() (flags []string) {
	if s.builds.Level > 0 {
		flags = append(flags, "--slsa-build-level", strconv.Itoa(s.builds.Level))
	}
	if s.builds.Source.Repository != "" {
		flags = append(flags, "--source-uri", s.builds.Source.Repository)
	}
	if s.builds.Source.Ref != "" {
		flags = append(flags, "--source-ref", s.builds.Source.Ref)
	}
	return flags
}

// build is a build as its provenance and the certificate of its signer have it.
type build struct {
	id, source, ref      string // of the provenance
	workflow, from, onTo string // of the certificate
	runner               string
}

// genuine is the required build; a case changes a part of it.
func genuine(change func(*build)) build {
	b := build{id: generator, source: appSource, ref: releaseTag, workflow: generator, from: appSource, onTo: releaseTag, runner: "github-hosted"}
	if change != nil {
		change(&b)
	}
	return b
}

func (b build) predicate() object {
	source := object{"uri": "git+" + b.source + "@" + b.ref, "digest": object{"sha1": strings.Repeat("a", 40)}}
	return object{
		"builder": object{"id": b.id}, "buildType": "https://github.com/slsa-framework/slsa-github-generator/container@v1",
		"invocation": object{"configSource": source}, "materials": []any{source},
	}
}

func (b build) signer(s *scene) verifytest.Claim {
	signer, err := s.sigstore.Keyless(verifytest.Identity{URI: b.workflow, Issuer: ofGitHub, Extensions: map[verifytest.Extension]string{
		verifytest.RunnerEnvironment: b.runner, verifytest.SourceRepositoryURI: b.from, verifytest.SourceRepositoryRef: b.onTo,
	}})
	s.check(err)
	return verifytest.Claim{Signer: signer}
}

// provenance attests builds of an image.
func provenance(builds ...build) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		for _, b := range builds {
			if err := s.AttestLegacy(image, b.signer(s), attest.PredicateSLSAv02, b.predicate()); err != nil {
				return err
			}
		}
		return nil
	}
}

// provenanceAttacks are attacks on the requirement of level 3 from the release of the repository. No policy matches.
func provenanceAttacks() []attack {
	row := func(name, what, source string, bad func(*scene, gatetest.Image) error, codes ...policy.Code) attack {
		return attack{name, what, source, everywhere(), func(s *scene) {
			s.builds = slsa.Terms{Level: 3, Source: slsa.Source{Repository: appSource, Ref: releaseTag}}
			honest, forged := s.built("honest"), s.built("forged")
			s.check(provenance(genuine(nil))(s, honest), bad(s, forged))
			s.runs(honest.Name, honest)
			s.refused(forged.Name, codes...)
		}}
	}
	changed := func(change func(*build)) func(*scene, gatetest.Image) error { return provenance(genuine(change)) }
	const steps = "SLSA 1.2, verifying artifacts"
	fork := "https://github.com/fork/app"
	own := "https://github.com/org/app/.github/workflows/release.yml@" + releaseTag
	return []attack{
		row("provenance-with-a-forged-builder", "A workflow of the repository itself signs provenance that names the generator as its builder. It is denied: the signer may not sign for it.", steps,
			changed(func(b *build) { b.workflow = own }), policy.WrongBuilder),
		row("provenance-by-a-key", "A key signs provenance that names the generator as its builder. It is denied.", steps, func(s *scene, image gatetest.Image) error {
			return s.AttestLegacy(image, verifytest.Claim{Signer: s.key}, attest.PredicateSLSAv02, genuine(nil).predicate())
		}, code(verify.WrongIdentity), code(verify.WrongKey)),
		row("provenance-of-a-branch-of-the-builder", "The generator signs at a branch of its repository, which is not released. It is denied.", "slsa-verifier: tags of builders",
			changed(func(b *build) { b.id = strings.Replace(generator, "tags/v2.1.0", "heads/main", 1); b.workflow = b.id }), policy.WrongBuilder, code(verify.WrongIdentity)),
		row("provenance-of-an-own-runner", "The build ran on a machine of the attacker, which GitHub calls self-hosted. It is denied.", "slsa-verifier: hosted runners",
			changed(func(b *build) { b.runner = "self-hosted" }), policy.WrongBuilder),
		row("provenance-of-a-fork", "The generator builds a fork. It is denied.", steps, changed(func(b *build) { b.source, b.from = fork, fork }), policy.WrongSource),
		row("provenance-with-a-forged-source", "A build of a fork has provenance that names the required repository. It is denied: the certificate names the fork.", steps,
			changed(func(b *build) { b.from = fork }), policy.WrongSource),
		row("provenance-of-a-similar-source", "The host of the source begins with the required one, or has it as a user name, and the path has another case. Each is denied.", "comparison of normalised repositories",
			provenance(
				genuine(func(b *build) { b.source = "https://github.com.evil.example/org/app" }), genuine(func(b *build) { b.source = "https://github.com@evil.example/org/app" }),
				genuine(func(b *build) { b.source = "https://github.com/Org/app" }), genuine(func(b *build) { b.source = appSource + "-evil" }),
			), policy.WrongSource),
		row("provenance-of-a-similar-reference", "The build is of a tag that begins like the required one, or of a branch with its name. It is denied.", steps,
			provenance(
				genuine(func(b *build) { b.ref, b.onTo = releaseTag+"-rc1", releaseTag+"-rc1" }), genuine(func(b *build) { b.ref, b.onTo = "refs/heads/v1.2.3", "refs/heads/v1.2.3" }),
			), policy.WrongSource),
		row("provenance-in-halves", "One statement has the builder and another source, a second one the source and another builder. They do not combine, and it is denied.", "one statement meets all terms",
			provenance(genuine(func(b *build) { b.source, b.from = fork, fork }), genuine(func(b *build) { b.id, b.workflow = own, own })), policy.WrongSource),
		row("provenance-of-another-image", "Genuine provenance of another image is attached. It is denied.", "subjects of in-toto statements", func(s *scene, image gatetest.Image) error {
			claim := genuine(nil).signer(s)
			claim.Statement = verifytest.Attestation("sha256:"+strings.Repeat("a", 64), attest.PredicateSLSAv02, genuine(nil).predicate())
			claim.Statement.Version = "v0.1"
			layer, err := s.Sigstore.Layer(claim)
			if err != nil {
				return err
			}
			return s.PutLegacy(image, ".att", layer)
		}, code(verify.WrongDigest)),
		row("provenance-under-another-type", "Genuine provenance is signed as a scan. It is denied.", "types of predicates", func(s *scene, image gatetest.Image) error {
			return s.AttestLegacy(image, genuine(nil).signer(s), scanType, genuine(nil).predicate())
		}, policy.NoAttestation),
	}
}
