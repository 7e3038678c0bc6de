package attest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
)

const provenance = "https://slsa.dev/provenance/v1"

// TestBoundsOfDocuments: a document at the limit is read, and none above it.
func TestBoundsOfDocuments(t *testing.T) {
	const digest = `"digest":{"sha256":"ab"}`
	subject := func(size int) string {
		text := `{` + digest + `,"name":""}`
		return strings.Replace(text, `""}`, `"`+strings.Repeat("x", size-len(text))+`"}`, 1)
	}
	statement := func(subject string) string {
		return `{"_type":"https://in-toto.io/Statement/v1","predicateType":"p","subject":[` + subject + `]}`
	}
	envelope := `{"payloadType":"` + MediaTypeInToto + `","payload":"e30=","signatures":[{"sig":"AA=="}]}`
	layers := func(count int) string {
		return `{"layers":[` + strings.Repeat(`{},`, count-1) + `{}]}`
	}
	pad := func(text string, size int) string { return text + strings.Repeat(" ", size-len(text)) }
	parse := map[string]func(string) error{
		"statement": func(s string) error { _, err := ParseStatement([]byte(s)); return err },
		"envelope":  func(s string) error { _, err := ParseEnvelope([]byte(s)); return err },
		"manifest":  func(s string) error { _, err := parseManifest(image.Descriptor{}, []byte(s)); return err },
	}
	tests := []struct {
		what, reason, text string
		good               bool
	}{
		{"statement", "the bound", pad(statement(subject(100)), MaxAttestation), true},
		{"statement", "past the bound", pad(statement(subject(100)), MaxAttestation+1), false},
		{"statement", "a subject of the bound", statement(subject(maxSubject)), true},
		{"statement", "a subject past the bound", statement(subject(maxSubject + 1)), false},
		{"envelope", "the bound", pad(envelope, MaxAttestation), true},
		{"envelope", "past the bound", pad(envelope, MaxAttestation+1), false},
		{"manifest", "as many layers as may be", layers(maxManifestLayers), true},
		{"manifest", "one more", layers(maxManifestLayers + 1), false},
	}
	for _, test := range tests {
		if err := parse[test.what](test.text); (err == nil) != test.good {
			t.Errorf("%s, %s: got %v", test.what, test.reason, err)
		}
	}
}

// TestHalfReadDocuments: a document with a part of another kind is none, although the rest
// can be read.
func TestHalfReadDocuments(t *testing.T) {
	envelope := func(signature, more string) string {
		return `{"payloadType":"` + MediaTypeInToto + `","payload":"e30=","signatures":[` + signature + `]` + more + `}`
	}
	statement := func(subject string) string {
		return `{"_type":"https://in-toto.io/Statement/v1","predicateType":"p","subject":[` + subject + `]}`
	}
	bundle := func(more string) string {
		return `{"mediaType":"` + MediaTypeBundle + `","messageSignature":{}` + more + `}`
	}
	for name, test := range map[string]struct {
		parse func([]byte) error
		tests map[string]bool
	}{
		"envelope": {func(b []byte) error { _, err := ParseEnvelope(b); return err }, map[string]bool{
			strings.ReplaceAll(envelope(`{"sig":"AA=="}`, ""), ",", "\r\n,\r\n"): true,
			envelope(`{"sig":"AA=="}`, ""):                                       true,
			envelope(`{"sig":"AA=="}`, `,"_type":"x"`):                           true, // an unknown field is left alone
			envelope(`{"keyid":"k","sig":"AA=="}`, ""):                           true,
			envelope(`{"keyid":5,"sig":"AA=="}`, ""):                             false,
			envelope(`{"sig":"AAAA!"}`, ""):                                      false,
			envelope(`{"sig":"AA=="},["sig"]`, ""):                               false,
			`{"_type":"https://in-toto.io/Statement/v1"}`:                        false,
		}},
		"statement": {func(b []byte) error { _, err := ParseStatement(b); return err }, map[string]bool{
			statement(`{"digest":{"sha256":"ab"}}`):                 true,
			statement(`{"digest":{"sha256":"ab","":"cd"}}`):         false,
			statement(`{"digest":{"sha256":"ab","sha512":""}}`):     false,
			statement(`{"digest":{"sha256":"ab"}},"digest"`):        false,
			statement(`{"digest":{"sha256":"ab","sha512":5}}`):      false,
			statement(`{"name":5,"digest":{"sha256":"ab"}}`):        false,
			statement(`{"digest":{"sha256":"ab"},"annotations":5}`): false,
		}},
		"manifest": {func(b []byte) error { _, err := parseManifest(image.Descriptor{}, b); return err }, map[string]bool{
			`{"layers":null}`:         true,
			`{"layers":[{"size":1}]}`: true,
			`{"mediaType":"` + mediaTypeArtifact + `","layers":5,"blobs":[]}`: true, // the old kind has blobs
			`{"layers":[{"size":"x"}]}`:                                       false,
			`{"layers":[],"layers":[{"size":1}]}`:                             false,
			`{"layers":[],"artifactType":5}`:                                  false,
			`{"layers":{}}`:                                                   false,
			`{"Layers":[]}`:                                                   false,
			`[]`:                                                              false,
		}},
		"bundle": {func(b []byte) error { _, _, err := peekBundle(b); return err }, map[string]bool{
			bundle(""):                        true,
			bundle(`,"media_type":"x"`):       false,
			bundle(`,"message_signature":{}`): false,
			bundle(`,"dsse_envelope":{}`):     false,
			bundle(`,"dsseEnvelope":null`):    true,
			bundle(`,"DSSEENVELOPE":null`):    false,
		}},
		"attestation": {func(b []byte) error { _, err := peekEnvelope(b); return err }, map[string]bool{
			envelope(`{"sig":"AA=="}`, ""): false, // its payload is no statement
		}},
	} {
		for text, good := range test.tests {
			if err := test.parse([]byte(text)); (err == nil) != good {
				t.Errorf("%s %s: got %v", name, text, err)
			}
		}
	}
}

func TestPrefixes(t *testing.T) {
	for _, c := range "_09azAZ" {
		if err := checkPrefix(string(c), 10); err != nil {
			t.Errorf("%q: %v", c, err)
		}
	}
	for _, c := range "/:@[`{.- é" {
		if checkPrefix(string(c), 10) == nil {
			t.Errorf("%q begins a tag", c)
		}
		if good := c == '.' || c == '-'; (checkPrefix("a"+string(c), 10) == nil) != good {
			t.Errorf("%q in a tag: want %t", c, good)
		}
	}
	for length, good := range map[int]bool{maxTag - 10: true, maxTag - 9: false} {
		if err := checkPrefix(strings.Repeat("a", length), 10); (err == nil) != good {
			t.Errorf("a prefix of %d: got %v", length, err)
		}
	}
	for mediaType, want := range map[string]bool{
		MediaTypeBundle: true, bundlePrefix + "+json;version=0.1": true, bundlePrefix: false, bundlePrefix + "x": false, ".v0.3+json": false, "+json": false,
	} {
		if isBundle(mediaType) != want {
			t.Errorf("%q is a bundle: %t", mediaType, !want)
		}
	}
}

// TestListedTwice: a list that repeats one referrer crowds out no other, and one that is too long
// is reported once.
func TestListedTwice(t *testing.T) {
	digest := func(i int) image.Digest { return image.DigestOf([]byte(fmt.Sprint(i))) }
	list := func(count int, name func(int) image.Digest) []image.Descriptor {
		var list []image.Descriptor
		for i := range count {
			list = append(list, image.Descriptor{Digest: name(i), ArtifactType: ArtifactTypeNotation})
		}
		return list
	}
	for reason, test := range map[string]struct {
		list         []image.Descriptor
		chosen, gaps int
	}{
		"one, again and again": {list(3*MaxOpenedReferrers, func(int) image.Digest { return digest(0) }), 1, 0},
		"without a digest":     {list(3, func(int) image.Digest { return image.Digest{} }), 0, 0},
		"as many as may be":    {list(MaxOpenedReferrers, digest), MaxOpenedReferrers, 0},
		"more, which is a gap": {list(MaxOpenedReferrers+5, digest), MaxOpenedReferrers, 1},
	} {
		s := &search{asked: newAsked(Want{Signatures: true})}
		if got := s.choose(0, &place{list: test.list}); len(got) != test.chosen || len(s.found.Gaps) != test.gaps {
			t.Errorf("%s: got %d and %d gaps, want %d and %d", reason, len(got), len(s.found.Gaps), test.chosen, test.gaps)
		}
	}
	s := &search{asked: newAsked(Want{Artifacts: []string{"sbom"}})}
	for count, gaps := range map[int]int{MaxOpenedReferrers: 0, MaxOpenedReferrers + 1: 1} {
		s.found.Gaps = nil
		signers := append(list(count, digest), image.Descriptor{Digest: digest(-1), ArtifactType: "something/else"})
		got := s.signersOf(&referrer{listed: image.Descriptor{Digest: digest(-2)}, signers: signers}, image.Descriptor{})
		if len(got) != MaxOpenedReferrers || len(s.found.Gaps) != gaps {
			t.Errorf("%d signatures of a document: got %d and %d gaps, want %d", count, len(got), len(s.found.Gaps), gaps)
		}
	}
	unknown := s.signersOf(&referrer{signers: []image.Descriptor{{Digest: digest(0), ArtifactType: ""}, {Digest: digest(1), ArtifactType: "something/else"}}}, image.Descriptor{})
	if len(unknown) != 1 {
		t.Errorf("got %d, want the one of an unspecific type", len(unknown))
	}
}

// TestNotationSignatures: a bound cuts the same signatures in any listed order, and an entry that
// is listed again takes no place.
func TestNotationSignatures(t *testing.T) {
	at := func(n byte, artifactType string) image.Descriptor {
		return image.Descriptor{Digest: image.DigestOf([]byte{n}), ArtifactType: artifactType}
	}
	var list []image.Descriptor
	for n := range byte(20) {
		list = append(list, at(n, ArtifactTypeNotation), at(n+20, ""), at(n+40, "something/else"), at(n, ArtifactTypeNotation), at(n, ""))
	}
	want := notationSignatures(list)
	if len(want) != 40 {
		t.Fatalf("got %d signatures, want 20 of the specific type and 20 of an unspecific one", len(want))
	}
	for i, d := range want {
		if specific := d.ArtifactType == ArtifactTypeNotation; specific != (i < 20) {
			t.Errorf("signature %d has the type %q: want the specific type first", i, d.ArtifactType)
		}
	}
	slices.Reverse(list)
	if got := notationSignatures(list); !reflect.DeepEqual(got, want) {
		t.Errorf("the reverse list gives other signatures or another order")
	}
	if got := notationSignatures([]image.Descriptor{{ArtifactType: ArtifactTypeNotation}}); len(got) != 0 {
		t.Errorf("an entry without a digest is returned: %v", got)
	}
}

// TestAsked: only documents that the request asks for are fetched.
func TestAsked(t *testing.T) {
	signatures, claims, documents := Want{Signatures: true}, Want{Predicates: []string{provenance}}, Want{Artifacts: []string{"sbom"}}
	in := func(w Want, f ...Format) Want { w.Formats = f; return w }
	both := Want{Signatures: true, Predicates: claims.Predicates}
	listed := map[string]image.Descriptor{
		"notation": {ArtifactType: ArtifactTypeNotation}, "cosign": {ArtifactType: ArtifactTypeCosignSignature},
		"envelope": {ArtifactType: MediaTypeDSSE}, "bundle": {ArtifactType: MediaTypeBundle}, "sbom": {ArtifactType: "sbom"},
		"message": {ArtifactType: MediaTypeBundle, Annotations: map[string]string{annotationBundleContent: bundleContentMessage}},
		"claim":   {ArtifactType: MediaTypeBundle, Annotations: map[string]string{annotationBundlePredicate: provenance}},
		"other":   {ArtifactType: MediaTypeBundle, Annotations: map[string]string{annotationBundlePredicate: "other"}},
		"hidden":  {Annotations: map[string]string{annotationBundleContent: bundleContentMessage}},
		"shown":   {ArtifactType: "something/else", Annotations: map[string]string{annotationBundleContent: bundleContentMessage}},
	}
	const single, several = 1, 0
	tests := []struct {
		want  Want
		open  string // the opened documents, in alphabetical order
		types int    // single, or several
	}{
		{signatures, "bundle cosign hidden message notation", several},
		{in(signatures, Cosign), "cosign", single},
		{in(signatures, Notation), "notation", single},
		{in(signatures, Bundle), "bundle hidden message", several},
		{in(signatures, Cosign, Bundle), "bundle cosign hidden message", several},
		{in(signatures, Notation, Bundle), "bundle hidden message notation", several},
		{in(signatures, Cosign, Notation), "cosign notation", several},
		{claims, "bundle claim envelope", several},
		{in(claims, Cosign), "envelope", several},
		{in(claims, Bundle), "bundle claim", several},
		{in(both, Cosign), "cosign envelope", several},
		{documents, "sbom", several},
		{in(documents, Cosign), "", several},
	}
	for _, test := range tests {
		a := newAsked(test.want)
		var open []string
		for name, descriptor := range listed {
			if a.listed(descriptor).kind != "" {
				open = append(open, name)
			}
		}
		slices.Sort(open)
		if got := strings.Join(open, " "); got != test.open {
			t.Errorf("%+v: opened %q, want %q", test.want, got, test.open)
		}
		if got := len(a.types()); (got == 1) != (test.types == single) {
			t.Errorf("%+v: asked for %d types", test.want, got)
		}
		if a.signatureTag() != (a.cosign && test.want.Signatures) || a.predicate("") != (len(test.want.Predicates) > 0) || a.predicate("other") {
			t.Errorf("%+v: cosign's tag %t, unknown type %t", test.want, a.signatureTag(), a.predicate(""))
		}
	}
}

// TestNoImage: without an image no request is sent, and the result is a gap.
func TestNoImage(t *testing.T) {
	found := Find(t.Context(), nil, image.Pinned{}, Want{Signatures: true})
	if len(found.Gaps) != 1 || len(found.Evidence) != 0 {
		t.Errorf("got %+v, want a gap", found)
	}
}

// TestSizes: a descriptor that lacks digest or size, or has too large a size, is no document.
func TestSizes(t *testing.T) {
	digest := image.DigestOf(nil)
	for _, test := range []struct {
		layer image.Descriptor
		good  bool
	}{
		{image.Descriptor{Digest: digest, Size: 1}, true},
		{image.Descriptor{Digest: digest, Size: 10}, true},
		{image.Descriptor{Digest: digest, Size: 11}, false},
		{image.Descriptor{Digest: digest, Size: 0}, false},
		{image.Descriptor{Digest: digest, Size: -1}, false},
		{image.Descriptor{Size: 1}, false},
	} {
		s := &search{}
		s.add(&document{layer: test.layer, limit: limit{"ten", 10}})
		if (len(s.documents) == 1) != test.good || len(s.found.Malformed) == 1 == test.good {
			t.Errorf("%+v: got %d documents and %v", test.layer, len(s.documents), s.found.Malformed)
		}
	}
}

// TestDepth: JSON is read as deep as may be, and no deeper.
func TestDepth(t *testing.T) {
	for depth, good := range map[int]bool{MaxDepth: true, MaxDepth + 1: false} {
		text := bytes.Repeat([]byte("["), depth)
		text = append(text, bytes.Repeat([]byte("]"), depth)...)
		if !json.Valid(text) {
			t.Fatal("no JSON")
		}
		if err := CheckJSON(text); (err == nil) != good {
			t.Errorf("depth %d: got %v", depth, err)
		}
	}
}

// TestKeysTwice: a key may occur once in an object, wherever its second one is and however it is
// written; values are not limited.
func TestKeysTwice(t *testing.T) {
	many := func(first, last string) string {
		text := `{"` + first + `":0`
		for i := range 2 * fewKeys {
			text += fmt.Sprintf(`,"k%d":0`, i)
		}
		return text + `,"` + last + `":0}`
	}
	for text, good := range map[string]bool{
		`{"a":1,"b":2,"c":3}`:             true,
		`{"a":1,"a":2}`:                   false,
		`{"a":1,"b":2,"a":3}`:             false,
		`{"a":1,"b":2,"c":3,"b":4}`:       false,
		`{"a":1,"b":2,"\u0061":3}`:        false,
		`{"a":{"a":1},"b":{"a":1}}`:       true,
		`{"a":{"b":1,"c":2,"b":3}}`:       false,
		`{"a":"x","b":"x","c":["x","x"]}`: true,
		`{"a":"b","b":"a"}`:               true,
		many("first", "last"):             true,
		many("first", "first"):            false,
		many("first", "k0"):               false,
		many("first", "k14"):              false,
		many("first", "k15"):              false,
		many("first", "k31"):              false,
	} {
		if err := CheckJSON([]byte(text)); (err == nil) != good {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
