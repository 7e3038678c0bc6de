package override

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/verify"
)

// each reads the entries of a list, which is bounded.
func each[T, V any](path string, list []T, read func(entry T, path string) (V, error)) ([]V, error) {
	if len(list) > maxEntries {
		return nil, field.Fail(path, "%d entries exceed the bound of %d: write several overrides", len(list), maxEntries)
	}
	var errs []error
	var out []V
	for i, entry := range list {
		value, err := read(entry, path+"["+strconv.Itoa(i)+"]")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, value)
	}
	return out, errors.Join(errs...)
}

func readReason(text string) (string, error) {
	const path = "spec.reason"
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "":
		return "", field.Fail(path, "is empty: give the reason, for users affected by the override")
	case len(trimmed) > maxReason:
		return "", field.Fail(path, "%d bytes exceed the bound of %d", len(trimmed), maxReason)
	case strings.ContainsFunc(trimmed, unicode.IsControl):
		return "", field.Fail(path, "is to be one line without control characters")
	}
	return trimmed, nil
}

func readExpires(text string) (time.Time, error) {
	const path = "spec.expires"
	if text == "" {
		return time.Time{}, field.Fail(path, "is empty: every override ends; write a time as in 2027-01-31T00:00:00Z")
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil || end.IsZero() {
		return time.Time{}, field.Fail(path, "%q is no time: write it as in 2027-01-31T00:00:00Z", text)
	}
	return end.UTC(), nil
}

func readNamespaces(list []string) ([]string, error) {
	const path = "spec.namespaces"
	if list != nil && len(list) == 0 {
		return nil, field.Fail(path, "is an empty list: leave it out to mean all namespaces")
	}
	return each(path, list, func(text, path string) (string, error) {
		if text == "" || len(text) > 253 || strings.ContainsFunc(text, notInNamespace) {
			return "", field.Fail(path, "%q is no name of a namespace, nor a pattern (* and ?) for one", text)
		}
		return text, nil
	})
}

func notInNamespace(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-*?", r)
}

func readDigest(text, path string) (image.Digest, error) {
	digest, err := image.ParseDigest(text)
	if err != nil {
		return image.Digest{}, field.Fail(path, "want the digest alone, as in sha256:9f86d081...: %w", err)
	}
	return digest, nil
}

// readRepository returns a name as image.Repository spells it, or a pattern for such
// names, in which the registry is never left out: a short name means Docker Hub in a
// reference, and would mean any registry in a pattern.
func readRepository(text, path string) (string, error) {
	last := text[strings.LastIndexByte(text, '/')+1:]
	switch {
	case text == "":
		return "", field.Fail(path, "is empty: write a repository, or * for every one")
	case text == "*":
		return text, nil
	case strings.Trim(text, "*?/") == "":
		return "", field.Fail(path, "%q matches almost everything: write * if every repository is meant", text)
	case strings.Contains(text, "@"), strings.Contains(last, ":"):
		return "", field.Fail(path, "%q: want a repository without tag and digest; a tag may move, and digests have a list of their own", text)
	}
	if !wildcard.Contains(text) {
		repository, err := image.ParseRepository(text)
		if err != nil {
			return "", field.Fail(path, "%w", err)
		}
		return repository.String(), nil
	}
	first, _, below := strings.Cut(text, "/")
	if !strings.HasPrefix(first, "*") && (!below || !strings.ContainsAny(first, ".:") && first != "localhost") {
		return "", field.Fail(path, "%q: name the registry, as in docker.io/library/nginx*, or begin with * to mean any", text)
	}
	pattern := reference.Normal(text)
	if why := reference.Unmatchable(pattern); why != "" {
		return "", field.Fail(path, "%q fits no repository: %s", text, why)
	}
	return pattern, nil
}

// read returns the signer. An Allow requires a signer that can be verified.
func (s signer) read(effect policy.OverrideEffect, path string) (policy.OverrideSigner, error) {
	keys, identities := 0, 0
	for _, text := range []string{s.Key, s.KeyFingerprint} {
		if text != "" {
			keys++
		}
	}
	for _, text := range []string{s.Issuer, s.IssuerRegExp, s.Subject, s.SubjectRegExp} {
		if text != "" {
			identities++
		}
	}
	switch {
	case keys+identities == 0:
		return policy.OverrideSigner{}, field.Fail(path, "names no signer: want key, keyFingerprint, or issuer and subject")
	case keys > 0 && identities > 0, keys > 1:
		return policy.OverrideSigner{}, field.Fail(path, "names several: want one of key, keyFingerprint, or issuer and subject")
	case keys > 0:
		return s.readKey(effect, path)
	}
	return s.readIdentity(effect, path)
}

func (s signer) readKey(effect policy.OverrideEffect, path string) (policy.OverrideSigner, error) {
	if s.KeyFingerprint != "" {
		sum, err := hex.DecodeString(s.KeyFingerprint)
		switch {
		case err != nil || len(sum) != sha256.Size:
			return policy.OverrideSigner{}, field.Fail(path+".keyFingerprint", "%q: want the SHA-256 of the public key, 64 hexadecimal digits, as records show it",
				field.Shorten(s.KeyFingerprint))
		case effect == policy.OverrideAllow:
			return policy.OverrideSigner{}, field.Fail(path+".keyFingerprint", "proves nothing by itself: an Allow wants the key")
		}
		return policy.OverrideSigner{KeyFingerprint: hex.EncodeToString(sum)}, nil
	}
	path += ".key"
	block, rest := pem.Decode([]byte(s.Key))
	if block == nil || block.Type != "PUBLIC KEY" || strings.TrimSpace(string(rest)) != "" {
		return policy.OverrideSigner{}, field.Fail(path, "want one PEM block of type PUBLIC KEY, found %q", field.Shorten(s.Key))
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return policy.OverrideSigner{}, field.Fail(path, "%w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return policy.OverrideSigner{}, field.Fail(path, "%w", err)
	}
	sum := sha256.Sum256(der)
	out := policy.OverrideSigner{KeyFingerprint: hex.EncodeToString(sum[:])}
	if effect == policy.OverrideAllow {
		text := pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der})
		// No wait for a log during an incident; the key suffices as evidence.
		out.Authority = &verify.Authority{Name: path, Key: &verify.Key{Ref: string(text)}, Log: verify.Log{Ignore: true}}
	}
	return out, nil
}

func (s signer) readIdentity(effect policy.OverrideEffect, path string) (policy.OverrideSigner, error) {
	issuer, err := matcher(s.Issuer, s.IssuerRegExp, path+".issuer")
	if err != nil {
		return policy.OverrideSigner{}, err
	}
	subject, err := matcher(s.Subject, s.SubjectRegExp, path+".subject")
	if err != nil {
		return policy.OverrideSigner{}, err
	}
	out := policy.OverrideSigner{Identity: verify.Identity{Issuer: issuer, Subject: subject}}
	if effect != policy.OverrideAllow {
		return out, nil
	}
	for _, m := range []struct {
		verify.Matcher
		field string
	}{{issuer, ".issuerRegExp"}, {subject, ".subjectRegExp"}} {
		if matchesStrangers(m.Matcher) {
			return policy.OverrideSigner{}, field.Fail(path+m.field, "%s would accept any identity: name the trusted ones", m)
		}
	}
	out.Authority = &verify.Authority{Name: path, Keyless: &verify.Keyless{Identities: []verify.Identity{out.Identity}}}
	return out, nil
}

// matchesStrangers reports whether an expression matches two unrelated names: hosts that
// have nothing in common, or accounts there.
func matchesStrangers(m verify.Matcher) bool {
	return m.Match("https://a.example/0") && m.Match("https://b.test/c") || m.Match("d@a.example") && m.Match("e@b.test")
}

func matcher(exact, expression, path string) (verify.Matcher, error) {
	switch {
	case exact != "" && expression != "":
		return verify.Matcher{}, field.Fail(path, "%s and %sRegExp exclude one another", lastOf(path), lastOf(path))
	case exact != "":
		return verify.Exactly(exact), nil
	case expression == "":
		return verify.Matcher{}, field.Fail(path, "is empty: an identity is an issuer and a subject; write %sRegExp: .* for any", lastOf(path))
	}
	m, err := verify.Expression(expression)
	if err != nil {
		return verify.Matcher{}, field.Fail(path+"RegExp", "%w", err)
	}
	return m, nil
}

func lastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
