package attacks

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// mirroring is a RegistryMirror by which the registry of the scene has copies of others.
func mirroring(sources string) string {
	return "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: copies}\n" +
		"spec: {mirrors: [{sources: [" + sources + "], targets: [{location: HOST}], resolve: Target, evidence: [Target]}]}\n"
}

// ofSource replaces the registry's images by those of a source.
func ofSource(source, text string) string {
	return strings.ReplaceAll(text, "HOST/shop/*", source+"/shop/*")
}

func mirrorAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	return []attack{
		row("copy-by-its-own-name", "A policy matches a registry, and a pod names the copy at the mirror. It is judged as its source, and denied.", "mirror names that are written directly", func(s *scene) {
			s.mirrors = []string{mirroring("corp.example")}
			s.policies(ofSource("corp.example", signedBy(ofKey)))
			s.admitted(s.signed("signed").Name)
			s.refused(s.built("unsigned").Name, policy.Unsigned)
		}),
		row("copy-by-its-own-name-and-digest", "The same by the digest alone.", "mirror names that are written directly", func(s *scene) {
			s.mirrors = []string{mirroring("corp.example")}
			s.policies(ofSource("corp.example", signedBy(ofKey)))
			s.admitted(s.signed("signed").ByDigest())
			s.refused(s.built("unsigned").ByDigest(), policy.Unsigned)
		}),
		row("copy-of-two-sources", "A mirror has copies of two registries, for which policies require different signers, and the copy meets the one alone. It is denied: its source is ambiguous.", "mirror names that are written directly", func(s *scene) {
			s.mirrors = []string{mirroring("corp.example, other.example")}
			s.policies(ofSource("corp.example", signedBy(ofKey)), strings.Replace(ofSource("other.example", signedBy(ofSecond)), "name: images", "name: other", 1))
			honest, forged := s.signed("honest"), s.signed("forged")
			s.check(s.SignLegacy(honest, by(s.second), nil))
			s.admitted(honest.Name)
			s.refused(forged.Name, code(verify.WrongKey))
		}),
	}
}
