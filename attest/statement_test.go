package attest_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

const goodStatement = `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://example.com/p","subject":[{"name":"a","digest":{"sha256":"%s"}}],"predicate":{"a":1,"A":2}}`

func TestParseStatement(t *testing.T) {
	good := fmt.Sprintf(goodStatement, subject.Hex())
	change := func(old, to string) string { return strings.Replace(good, old, to, 1) }
	subjects := func(n int) string {
		one := `{"digest":{"sha256":"` + subject.Hex() + `"}}`
		return change(`{"name":"a","digest":{"sha256":"`+subject.Hex()+`"}}`, strings.Repeat(one+",", n-1)+one)
	}
	for name, row := range map[string]struct{ reason, input, err string }{
		"v1":                 {"the current version", good, ""},
		"v0.1":               {"what cosign writes", change("Statement/v1", "Statement/v0.1"), ""},
		"unknown field":      {"the specification asks to ignore it", change(`"predicate"`, `"x":1,"predicate"`), ""},
		"no predicate":       {"optional since v1", change(`,"predicate":{"a":1,"A":2}`, ""), ""},
		"most subjects":      {"just within the bound", subjects(attest.MaxSubjects), ""},
		"too many subjects":  {"one past the bound", subjects(attest.MaxSubjects + 1), "MaxSubjects"},
		"v2":                 {"its meaning is unknown", change("Statement/v1", "Statement/v2"), "is neither"},
		"no type":            {"no statement", change(`"_type":"https://in-toto.io/Statement/v1",`, ""), "is neither"},
		"no subject":         {"it is about nothing", change(`{"name":"a","digest":{"sha256":"`+subject.Hex()+`"}}`, ""), "no subject"},
		"no digest":          {"a name is no subject", change(`"digest":{"sha256":"`+subject.Hex()+`"}`, `"digest":{}`), "subject 1: it has no digest"},
		"empty digest":       {"it would match nothing", change(subject.Hex(), ""), "empty algorithm or value"},
		"digest a list":      {"must be a map", change(`{"sha256":"`+subject.Hex()+`"}`, `["x"]`), `field "digest"`},
		"no predicate type":  {"it could not be requested", change("https://example.com/p", ""), "no predicateType"},
		"twice":              {"parsers take either", change(`"subject"`, `"predicateType":"https://example.com/q","subject"`), `key "predicateType" is there twice`},
		"twice in digest":    {"parsers take either", change(`"sha256"`, `"sha256":"x","sha256"`), "twice"},
		"twice in predicate": {"conditions are asked about it", change(`"A":2`, `"a":2`), "twice"},
		"other case":         {"Go would take it for the field, others not", change(`"subject"`, `"Subject":[],"subject"`), `did you mean "subject"`},
		"snake case":         {"protocol buffers take it for the field, others not", change(`"predicateType"`, `"predicate_type":"https://example.com/q","predicateType"`), `it has "predicate_type"`},
		"the type, too":      {"protocol buffers take it for the field, others not", change(`"_type"`, `"type":"https://in-toto.io/Statement/v0.1","_type"`), `it has "type"`},
		"escaped twice":      {"the same key in other letters", change(`"predicate":`, `"\u0070redicate":1,"predicate":`), "twice"},
		"trailing":           {"one value only", good + "{}", "more bytes follow"},
		"not UTF-8":          {"parsers replace it or not", change("https://example.com/p", "\xff"), "not UTF-8"},
		"truncated":          {"it ends early", good[:len(good)-1], "JSON"},
		"empty":              {"nothing", "", "empty"},
		"null":               {"nothing", "null", "got null"},
		"list":               {"no object", "[]", "want a JSON object"},
		"deep":               {"no stack is that deep", change(`{"a":1,"A":2}`, strings.Repeat("[", 400)+strings.Repeat("]", 400)), "nested"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := attest.ParseStatement([]byte(row.input))
			switch {
			case row.err == "" && (err != nil || !s.Covers(subject)):
				t.Errorf("%s: error %v, statement %.200s", row.reason, err, fmt.Sprint(s))
			case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
				t.Errorf("%s: error %v does not say %q", row.reason, err, row.err)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	long := strings.Repeat("ab", 64)
	of := func(digests ...map[string]string) attest.Statement {
		var s attest.Statement
		for _, d := range digests {
			s.Subjects = append(s.Subjects, attest.Subject{Name: "sha256:" + sum, Digest: d})
		}
		return s
	}
	for name, row := range map[string]struct {
		reason    string
		statement attest.Statement
		digest    image.Digest
		want      bool
	}{
		"equal":             {"its own algorithm and value", of(map[string]string{"sha256": sum}), image.MustParseDigest("sha256:" + sum), true},
		"second subject":    {"any subject will do", of(map[string]string{"sha1": "x"}, map[string]string{"sha256": sum}), image.MustParseDigest("sha256:" + sum), true},
		"sha512":            {"its own algorithm and value", of(map[string]string{"sha512": long}), image.MustParseDigest("sha512:" + long), true},
		"upper case":        {"exact", of(map[string]string{"sha256": strings.ToUpper(sum)}), image.MustParseDigest("sha256:" + sum), false},
		"another algorithm": {"the value of another hash", of(map[string]string{"sha512": sum}), image.MustParseDigest("sha256:" + sum), false},
		"prefixed":          {"the value has no algorithm in it", of(map[string]string{"sha256": "sha256:" + sum}), image.MustParseDigest("sha256:" + sum), false},
		"a part":            {"exact", of(map[string]string{"sha256": sum[:10]}), image.MustParseDigest("sha256:" + sum), false},
		"by name":           {"a name proves nothing", of(map[string]string{"sha1": "x"}), image.MustParseDigest("sha256:" + sum), false},
		"zero":              {"nothing is covered", of(map[string]string{"": ""}), image.Digest{}, false},
	} {
		if got := row.statement.Covers(row.digest); got != row.want {
			t.Errorf("%s (%s): got %v", name, row.reason, got)
		}
	}
}

func TestParseEnvelope(t *testing.T) {
	payload := statement(slsa, subject, `"\u00fb\u00ff~~~???"`)
	std, url := base64.StdEncoding.EncodeToString(payload), base64.URLEncoding.EncodeToString(payload)
	if !strings.HasSuffix(std, "=") {
		t.Fatal("the payload needs no padding, and the rows about it show nothing")
	}
	wrap := func(payload, signatures string) string {
		return fmt.Sprintf(`{"payloadType":"application/vnd.in-toto+json","payload":%q,"signatures":[%s]}`, payload, signatures)
	}
	one := `{"keyid":"k","sig":"c2ln"}`
	good := wrap(std, one)
	for name, row := range map[string]struct{ reason, input, err string }{
		"standard":           {"the usual alphabet", good, ""},
		"URL-safe":           {"the other one", wrap(url, one), ""},
		"without padding":    {"some leave it out", wrap(strings.TrimRight(std, "="), one), ""},
		"in lines":           {"command lines write it so", wrap(std[:8]+"\n"+std[8:]+"\r\n", one), ""},
		"lines, no padding":  {"and some leave it out", wrap(strings.TrimRight(std, "=")+"\n", one), ""},
		"padding twice":      {"lines or not, there is one end", wrap(std+"\n=", one), "payload"},
		"a blank at the end": {"no line break", wrap(std+" ", one), "payload"},
		"no keyid":           {"optional", wrap(std, `{"sig":"c2ln"}`), ""},
		"most signatures":    {"just within the bound", wrap(std, strings.Repeat(one+",", attest.MaxSignatures-1)+one), ""},
		"too many":           {"one past the bound", wrap(std, strings.Repeat(one+",", attest.MaxSignatures)+one), "MaxSignatures"},
		"both alphabets":     {"no encoder does that", wrap(std[:len(std)-4]+"-+==", one), "payload"},
		"no signature":       {"unsigned", wrap(std, ""), "no signature"},
		"empty signature":    {"unsigned", wrap(std, `{"sig":""}`), "signature 1: it is empty"},
		"signature no text":  {"not base64", wrap(std, `{"sig":"?"}`), "signature 1"},
		"another type":       {"no statement", strings.Replace(good, "in-toto", "other", 1), "payload type"},
		"no payload":         {"nothing signed", wrap("", one), "payload is empty"},
		"bare statement":     {"attached without a signature", string(payload), "without a signature"},
		"two payloads":       {"parsers take either", strings.Replace(good, `"signatures"`, `"payload":"e30=","signatures"`, 1), "twice"},
		"payload, otherwise": {"Go would take it for the field, others not", strings.Replace(good, `"signatures"`, `"Payload":"e30=","signatures"`, 1), "did you mean"},
		"no object":          {"not an envelope", `"x"`, "want a JSON object"},
		"signature a text":   {"not an envelope", wrap(std, `"c2ln"`), "signature 1"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := attest.ParseEnvelope([]byte(row.input))
			switch {
			case row.err == "" && (err != nil || string(e.Payload) != string(payload) || string(e.Signatures[0].Sig) != "sig"):
				t.Errorf("%s: error %v, envelope %.200s", row.reason, err, fmt.Sprint(e))
			case row.err != "" && (err == nil || !strings.Contains(err.Error(), row.err)):
				t.Errorf("%s: error %v does not say %q", row.reason, err, row.err)
			}
		})
	}
}

// TestBundleContents finds one bundle at a time.
func TestBundleContents(t *testing.T) {
	dsse := string(dsseBundle(statement(slsa, subject, "{}")))
	sign := string(dsseBundle(statement(attest.PredicateCosignSign, subject, "{}")))
	message := string(messageBundle("one"))
	snake := strings.NewReplacer("dsseEnvelope", "dsse_envelope", "payloadType", "payload_type", "mediaType", "media_type")
	for name, row := range map[string]struct{ reason, bundle, found, malformed string }{
		"attestation":      {"an envelope", dsse, "bundle attestation " + slsa, ""},
		"signature":        {"cosign's own statement", sign, "bundle signature " + attest.PredicateCosignSign, ""},
		"message":          {"a message signature", message, "bundle signature", ""},
		"v0.1":             {"the first version", strings.Replace(message, ".v0.3+json", "+json;version=0.1", 1), "bundle signature", ""},
		"null envelope":    {"null is absent", strings.Replace(message, `"messageSignature"`, `"dsseEnvelope":null,"messageSignature"`, 1), "bundle signature", ""},
		"snake case":       {"protocol buffers read it, too", snake.Replace(dsse), "bundle attestation " + slsa, ""},
		"both contents":    {"it would depend on the reader", strings.Replace(dsse, `"dsseEnvelope"`, `"messageSignature":{},"dsseEnvelope"`, 1), "", "both a message signature and an envelope"},
		"both spellings":   {"it would depend on the reader", strings.Replace(dsse, `"dsseEnvelope"`, `"dsse_envelope":{},"dsseEnvelope"`, 1), "", `both "dsseEnvelope" and "dsse_envelope"`},
		"other case":       {"Go would take it for the field, others not", strings.Replace(dsse, `"dsseEnvelope"`, `"DsseEnvelope":{},"dsseEnvelope"`, 1), "", "did you mean"},
		"no content":       {"nothing is signed", `{"mediaType":"` + attest.MediaTypeBundle + `"}`, "", "neither a message signature nor an envelope"},
		"another type":     {"no bundle", strings.Replace(message, "sigstore.bundle", "sigstore.other", 1), "", "not that of a Sigstore bundle"},
		"another payload":  {"no statement", strings.Replace(dsse, "in-toto+json", "other", 1), "", "payload type"},
		"broken statement": {"no statement", string(dsseBundle([]byte(`{"_type":"x"}`))), "", "is neither"},
		"no JSON":          {"no bundle", "{", "", "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			s.refer(t, own, subject, bundleReferrer(s, subject, []byte(row.bundle), nil))
			found := attest.Find(t.Context(), s, pinned(t), attest.Want{Signatures: true, Predicates: []string{slsa}})
			if got := strings.Join(describeAll(found.Evidence), ", "); got != row.found {
				t.Errorf("%s: found %q, want %q; malformed %v", row.reason, got, row.found, found.Malformed)
			}
			if text := fmt.Sprint(found.Malformed); row.malformed != "" && !strings.Contains(text, row.malformed) {
				t.Errorf("%s: malformed %q does not say %q", row.reason, text, row.malformed)
			}
		})
	}
}

func TestPredicateNames(t *testing.T) {
	for short, uri := range map[string]string{
		"slsaprovenance": "https://slsa.dev/provenance/v0.2", "slsaprovenance02": "https://slsa.dev/provenance/v0.2",
		"slsaprovenance1": "https://slsa.dev/provenance/v1", "spdx": "https://spdx.dev/Document", "spdxjson": "https://spdx.dev/Document",
		"cyclonedx": "https://cyclonedx.org/bom", "link": "https://in-toto.io/Link/v1", "vuln": "https://cosign.sigstore.dev/attestation/vuln/v1",
		"openvex": "https://openvex.dev/ns", "custom": "https://cosign.sigstore.dev/attestation/v1",
		"https://example.com/own": "https://example.com/own", "": "",
	} {
		if got := attest.PredicateURI(short); got != uri {
			t.Errorf("%s resolves to %s, want %s", short, got, uri)
		}
		if got := attest.PredicateURI(attest.PredicateName(uri)); got != uri {
			t.Errorf("the name of %s resolves to %s", uri, got)
		}
	}
}

func FuzzParseStatement(f *testing.F) {
	f.Add(fmt.Appendf(nil, goodStatement, subject.Hex()))
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v0.1","subject":[{}]}`))
	f.Add([]byte(`{"a":{"a":[{"b":null}]},"a":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := attest.ParseStatement(b)
		if err != nil {
			return
		}
		if len(s.Subjects) == 0 || s.PredicateType == "" {
			t.Errorf("incomplete statement %+v", s)
		}
		if again, err := attest.ParseStatement(encode(t, s)); err != nil || len(again.Subjects) != len(s.Subjects) {
			t.Errorf("the encoded statement cannot be read again: %v", err)
		}
	})
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add(envelope(statement(slsa, subject, "{}")))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30","signatures":[{"sig":"_-8"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := attest.ParseEnvelope(b)
		if err == nil && (len(e.Payload) == 0 || len(e.Signatures) == 0 || len(e.Signatures) > attest.MaxSignatures) {
			t.Errorf("incomplete envelope %+v", e)
		}
	})
}
