package agreement

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers"
)

// format is a way for one program to write, and to be asked about it.
type format struct {
	name    string
	program string
	env     []string // on both runs
	sign    []string // flags of sign and attest
	verify  []string // flags of verify and verify-attestation
	// attests: whether attestations can be written this way.
	attests bool
	// attestationCounts: whether this cosign takes any attestation for a
	// signature.
	attestationCounts bool
	// annotationsLost: this cosign neither writes annotations nor checks
	// them, although it reports that they were verified.
	annotationsLost bool
}

func formats(c *crew) []format {
	unlogged := []string{"--tlog-upload=false"}
	planless := []string{"--use-signing-config=false", "--tlog-upload=false"}
	ignore := []string{"--insecure-ignore-tlog", "--trusted-root", c.root}
	return []format{
		{
			name: "cosign 2 tags", program: peers.Cosign2, attests: true,
			sign: with(unlogged, "--new-bundle-format=false"), verify: with(ignore, "--new-bundle-format=false"),
		},
		{
			name: "cosign 2 referrers", program: peers.Cosign2, env: []string{"COSIGN_EXPERIMENTAL=1"},
			sign: with(unlogged, "--registry-referrers-mode=oci-1-1"), verify: with(ignore, "--experimental-oci11"),
		},
		{
			name: "cosign 2 bundles", program: peers.Cosign2, attests: true, attestationCounts: true, annotationsLost: true,
			sign: with(unlogged, "--new-bundle-format=true"), verify: with(ignore, "--new-bundle-format=true"),
		},
		{
			name: "cosign 3 tags", program: peers.Cosign3, attests: true,
			sign: with(planless, "--new-bundle-format=false"), verify: with(ignore, "--new-bundle-format=false"),
		},
		{
			name: "cosign 3 bundles", program: peers.Cosign3, attests: true, attestationCounts: true,
			sign: planless, verify: ignore,
		},
	}
}

// with returns the flags and more.
func with(flags []string, more ...string) []string { return slices.Concat(flags, more) }

// TestAgreement musters the programs once, for that takes a while.
func TestAgreement(t *testing.T) {
	crew := muster(t)
	t.Run("signatures", crew.trySignatures)
	t.Run("attestations", crew.tryAttestations)
	t.Run("logged", crew.tryLogged)
}

func (c *crew) trySignatures(t *testing.T) {
	for kind, open := range ports {
		t.Run(kind, func(t *testing.T) {
			p := open(t, c)
			p.brief = kind != wholePort && !peers.IsLong()
			for i, f := range formats(c) {
				t.Run(f.name, func(t *testing.T) { p.signatures(t, f, string(rune('a'+i))) })
			}
		})
	}
}

func (p *port) signatures(t *testing.T, f format, tag string) {
	cosign := p.cosign[f.program].With(f.env...)
	signed, bare, other := p.push(t, tag), p.push(t, tag+"-bare"), p.push(t, tag+"-other")
	args := append([]string{"sign", "--key", p.private(signer), "-a", "stage=prod"}, f.sign...)
	cosign.Must(t, append(args, signed)...)
	p.move(t, signed, other)

	for _, row := range []struct {
		reason     string
		image, key string
		annotation string
		code       string // why we refuse; empty where both accept
		alike      bool   // at every registry
	}{
		{"signed", signed, signer, "", "", false},
		{"signed, by its tag", p.repository + ":" + tag, signer, "", "", false},
		{"signed by another identity", signed, stranger, "", "wrong-key", true},
		{"not signed", bare, signer, "", "unsigned", false},
		{"with the signature of another image", other, signer, "", "wrong-digest", false},
		{"signed with the annotation", signed, signer, "stage=prod", "", true},
		{"signed with another value of the annotation", signed, signer, "stage=test", "wrong-annotation", true},
		{"signed without the annotation", signed, signer, "team=blue", "wrong-annotation", true},
	} {
		if row.alike && p.brief {
			continue
		}
		theirs := append([]string{"verify", "--key", p.public(row.key)}, f.verify...)
		ours := []string{"--key", p.public(row.key), "--insecure-ignore-tlog"}
		if row.annotation != "" {
			theirs = append(theirs, "-a", row.annotation)
			ours = append(ours, "-a", row.annotation)
		}
		expected := expectation{theirs: row.code == "", code: row.code}
		if row.annotation != "" && f.annotationsLost { // an unsigned value is not trusted
			expected = expectation{theirs: true, code: "wrong-annotation"}
		}
		p.both(t, row.reason, cosign, append(theirs, row.image), append(ours, row.image), expected)
	}
}

// expectation is what each side should say.
type expectation struct {
	theirs bool   // whether cosign accepts
	code   string // why we refuse; empty if we accept
}

// both asks both sides.
func (p *port) both(t *testing.T, what string, cosign *peers.Program, theirs, ours []string, expected expectation) {
	t.Helper()
	said, err := cosign.Run(t.Context(), theirs...)
	if accepted := err == nil; accepted != expected.theirs {
		t.Errorf("%s: cosign %s, want that it %s:\n%s", what, verdict(accepted), verdict(expected.theirs), said)
	}
	accepted, said := p.ask(t, ours...)
	switch wanted := expected.code == ""; {
	case accepted != wanted:
		t.Errorf("%s: quaymaster %s, want that it %s:\n%s", what, verdict(accepted), verdict(wanted), said)
	case !strings.Contains(strings.Join(strings.Fields(said), " "), expected.code):
		t.Errorf("%s: quaymaster refuses, but not because of %s:\n%s", what, expected.code, said)
	}
}

// predicates are cosign's short names and a document of each type.
var predicates = []struct{ kind, document string }{
	{"custom", `{"passed": true}`},
	{"spdxjson", `{"spdxVersion": "SPDX-2.3"}`},
	{"cyclonedx", `{"bomFormat": "CycloneDX", "specVersion": "1.5"}`},
	{"slsaprovenance", `{"builder": {"id": "https://builder.example"}, "buildType": "https://build.example"}`},
	{"slsaprovenance1", `{"buildDefinition": {"buildType": "https://build.example"}, "runDetails": {"builder": {"id": "https://builder.example"}}}`},
	{"vuln", `{"invocation": {}, "scanner": {"uri": "https://scanner.example"}, "metadata": {}}`},
	{"openvex", `{"@context": "https://openvex.dev/ns/v0.2.0", "@id": "https://vex.example", "author": "a", "timestamp": "2026-01-01T00:00:00Z", "version": 1, "statements": []}`},
	{"https://example.com/review/v1", `{"reviewed": true}`},
}

func (c *crew) tryAttestations(t *testing.T) {
	for kind, open := range ports {
		t.Run(kind, func(t *testing.T) {
			p := open(t, c)
			p.brief = kind != wholePort && !peers.IsLong()
			all := slices.DeleteFunc(formats(c), func(f format) bool { return !f.attests })
			for i, f := range all {
				// Two types with each format: together that is all of them.
				t.Run(f.name, func(t *testing.T) { p.attestations(t, f, string(rune('a'+i)), i) })
			}
		})
	}
}

func (p *port) attestations(t *testing.T, f format, tag string, turn int) {
	cosign := p.cosign[f.program].With(f.env...)
	attested, other := p.push(t, tag), p.push(t, tag+"-other")
	var kinds []string
	for i, predicate := range predicates {
		if i%4 != turn%4 {
			continue
		}
		kinds = append(kinds, predicate.kind)
		document := p.write(t, "predicate.json", []byte(predicate.document))
		args := append([]string{"attest", "--key", p.private(signer), "--type", predicate.kind, "--predicate", document}, f.sign...)
		cosign.Must(t, append(args, attested)...)
	}
	p.move(t, attested, other)

	ask := func(reason, image, key, kind, code string) {
		theirs := append([]string{"verify-attestation", "--key", p.public(key), "--type", kind}, f.verify...)
		ours := []string{"--key", p.public(key), "--insecure-ignore-tlog", "--attestation", kind}
		p.both(t, reason, cosign, append(theirs, image), append(ours, image), expectation{theirs: code == "", code: code})
	}
	for _, kind := range kinds {
		ask("attested as "+kind, attested, signer, kind, "")
	}
	ask("with the attestation of another image", other, signer, kinds[0], "wrong-digest")
	if p.brief {
		return
	}
	ask("attested by another key", attested, stranger, kinds[0], "wrong-key")
	ask("attested as something else", attested, signer, "https://example.com/other/v1", "no attestation of type https://example.com/other/v1")

	// An attestation is no signature, although cosign's bundle verifier accepts it.
	theirs := append([]string{"verify", "--key", p.public(signer)}, f.verify...)
	ours := []string{"--key", p.public(signer), "--insecure-ignore-tlog", attested}
	p.both(t, "attested and not signed", cosign, append(theirs, attested), ours,
		expectation{theirs: f.attestationCounts, code: "unsigned"})
}
