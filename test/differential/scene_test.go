package differential

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Predicate types: the attested one, and another one to ask for.
const (
	scanType  = "https://example.com/scan/v1"
	otherType = "https://example.com/other/v1"
)

// The annotation that is signed where one is.
const annotationName, annotationValue = "stage", "prod"

// scene is where one case is played.
type scene struct {
	*crowd
	t      *testing.T
	name   string
	recipe *recipe

	now           time.Time
	home, foreign *verifytest.Sigstore
	stranger      *verifytest.Signer
	leaf          *verifytest.Signer // of the certificate, where there is one
	repository    string
	image, moved  registrytest.Descriptor
	manifest      []byte // of the image

	donors [2]*page
	did    []string // the changes as made
	stored [][]byte // for the analysis of a failure
	files  []string
}

// newScene makes a registry's repository and a Sigstore for one case.
func newScene(t *testing.T, c *crowd, name string, r *recipe) *scene {
	t.Helper()
	cryptotest.SetGlobalRandom(t, c.seeded(name))
	s := &scene{crowd: c, t: t, name: name, recipe: r, now: time.Now().Truncate(time.Second), repository: "case/" + name}
	var err error
	s.home, err = verifytest.New(verifytest.Options{Name: "home"})
	s.check(err)
	s.foreign, err = verifytest.New(verifytest.Options{Name: "foreign"})
	s.check(err)
	if !r.Format.isNotation() {
		s.stranger = s.key("another")
	}
	content := name
	if r.Writer != ours {
		content = printedContent
	}
	s.image = s.registry.PutImage(s.repository, "1", content)
	s.moved = s.registry.PutImage(s.repository, "2", "the other of "+content)
	s.manifest = s.bodyOf(s.image)
	return s
}

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", s.name, err, s.recipe)
	}
}

// bodyOf returns a manifest that the registry has.
func (s *scene) bodyOf(d registrytest.Descriptor) []byte {
	body, err := fetch(s.t.Context(), "http://"+s.registry.Host()+"/v2/"+s.repository+"/manifests/"+d.Digest)
	s.check(err)
	return body
}

// play signs, damages and stores, and returns the image to ask about.
func (s *scene) play() string {
	s.t.Helper()
	sheets := []*sheet{s.sign(s.image, true)}
	for _, c := range s.recipe.Damages {
		s.did = append(s.did, s.damage(sheets[0], c))
	}
	if s.recipe.Beside != "" {
		sheets = s.companion(sheets)
	}
	about := s.image
	if s.recipe.Ask.Moved {
		about = s.moved
	}
	s.store(about, sheets)
	return s.registry.Host() + "/" + s.repository + "@" + about.Digest
}

// sign writes the recipe's evidence about an image: with its faults, or as it
// should be.
func (s *scene) sign(image registrytest.Descriptor, faulty bool) *sheet {
	s.t.Helper()
	if s.recipe.Writer != ours {
		return s.printed(image)
	}
	m := &making{at: s, identity: verifytest.Identity{
		URI: subject, Issuer: issuer, Key: verifytest.KeyOptions{Algorithm: algorithms[s.recipe.Key], Hash: s.recipe.hash()},
	}}
	m.notation = notarial{who: usual, Notation: verifytest.Notation{Target: target(image), MediaType: verifytest.NotationJWS}}
	if s.recipe.Format == cose {
		m.notation.MediaType = verifytest.NotationCOSE
	}
	if s.recipe.Annotated {
		m.notation.Metadata = map[string]string{annotationName: annotationValue}
	}
	s.logs(m)
	m.claim.Payload = s.document(image, faulty)
	if s.recipe.Format == tags && !s.recipe.Attests {
		m.claim.Artifact, m.claim.Payload = m.claim.Payload, nil
	}
	if s.recipe.Format.isNotation() && len(s.recipe.Oddities) > 0 && faulty {
		m.notation.odd = s.odd
	}
	if faulty && s.recipe.Fault != "" {
		faults()[s.recipe.Fault].do(m)
	}
	return s.write(m, faulty)
}

func target(of registrytest.Descriptor) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: of.MediaType, Digest: digest.Digest(of.Digest), Size: of.Size}
}

// logs adds the log entries and timestamps.
func (s *scene) logs(m *making) {
	switch s.recipe.Log {
	case "none":
		m.claim.NoLog = true
	case "rekor2":
		m.record().Log = s.home.Rekor2
	case "rekor with intoto":
		m.record().Kind = "intoto"
	}
	if s.recipe.Stamped && !s.recipe.Format.isNotation() {
		m.stamp()
	}
}

// write has the signer sign.
func (s *scene) write(m *making, mine bool) *sheet {
	s.t.Helper()
	if s.recipe.Format.isNotation() {
		envelope, err := m.notation.sign(s)
		s.check(err)
		return &sheet{configType: "application/vnd.cncf.notary.signature", pages: []page{{mediaType: m.notation.MediaType, body: envelope}}}
	}
	m.claim.Signer = s.signer(m, mine)
	if s.recipe.Format == tags {
		layer, err := s.home.Layer(m.claim)
		s.check(err)
		suffix := ".sig"
		if s.recipe.Attests {
			suffix = ".att"
		}
		return &sheet{suffix: suffix, configType: ocispec.MediaTypeImageConfig, pages: []page{{mediaType: layer.MediaType, body: layer.Payload, annotations: layer.Annotations}}}
	}
	content, err := s.home.Bundle(m.claim)
	s.check(err)
	predicate := verifytest.CosignSignPredicateType
	if s.recipe.Attests {
		predicate = scanType
	}
	return &sheet{
		artifactType: verifytest.BundleMediaType, configType: ocispec.MediaTypeEmptyJSON,
		annotations: map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicate},
		pages:       []page{{mediaType: verifytest.BundleMediaType, body: content}},
	}
}

func (s *scene) signer(m *making, mine bool) *verifytest.Signer {
	if !s.recipe.Certified {
		return s.key("the signer")
	}
	signer, err := s.home.Keyless(m.identity)
	s.check(err)
	if mine {
		s.leaf = signer
	}
	return signer
}

// document is the signed document, as JSON.
func (s *scene) document(image registrytest.Descriptor, faulty bool) []byte {
	s.t.Helper()
	annotations := map[string]any{annotationName: annotationValue}
	if !s.recipe.Annotated {
		annotations = nil
	}
	value := map[string]any{
		"critical": map[string]any{
			"identity": map[string]any{"docker-reference": s.registry.Host() + "/" + s.repository},
			"image":    map[string]any{"docker-manifest-digest": image.Digest}, "type": "cosign container image signature",
		},
		"optional": annotations,
	}
	if enveloped(s.recipe) {
		value = s.statement(image, annotations)
	}
	text, err := json.Marshal(value)
	s.check(err)
	if !faulty || len(s.recipe.Oddities) == 0 || s.recipe.Format.isNotation() {
		return text
	}
	tree, err := parse(text)
	s.check(err)
	s.odd(tree)
	return tree.text()
}

func (s *scene) statement(image registrytest.Descriptor, annotations map[string]any) map[string]any {
	about := map[string]any{"name": s.repository, "digest": map[string]string{"sha256": strings.TrimPrefix(image.Digest, "sha256:")}}
	if annotations != nil {
		about["annotations"] = annotations
	}
	statement := map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "subject": []any{about}, "predicateType": verifytest.CosignSignPredicateType, "predicate": map[string]any{},
	}
	if s.recipe.Attests {
		statement["predicateType"], statement["predicate"] = scanType, map[string]any{"verdict": "clean", "findings": []any{}}
	}
	if s.recipe.Format == tags {
		statement["_type"] = "https://in-toto.io/Statement/v0.1"
	}
	return statement
}

// odd makes a document odd before it is signed.
func (s *scene) odd(tree *node) {
	donor := s.oddDonor()
	for _, c := range s.recipe.Oddities {
		s.did = append(s.did, applyTree(c, tree, donor))
	}
}

// oddDonor is the same document about the other image.
func (s *scene) oddDonor() *node {
	plain := *s.recipe
	plain.Oddities = nil
	other := *s
	other.recipe = &plain
	text := other.document(s.moved, false)
	if s.recipe.Format.isNotation() {
		var err error
		text, err = json.Marshal(map[string]any{"targetArtifact": target(s.moved)})
		s.check(err)
	}
	tree, err := parse(text)
	s.check(err)
	return tree
}

// donor is another page to take parts of: the same signer's about the other
// image, or another signer's about this one.
func (s *scene) donor(which int) *page {
	s.t.Helper()
	if s.donors[which] == nil {
		image := s.moved
		other := *s
		plain := *s.recipe
		plain.Fault, plain.Oddities, plain.Damages = "", nil, nil
		other.recipe, other.did = &plain, nil
		if which == 1 {
			other.home, image = s.foreign, s.image
			other.crowd = s.others()
		}
		s.donors[which] = &other.sign(image, false).pages[0]
	}
	return s.donors[which]
}

// others is a crowd with other keys.
func (s *scene) others() *crowd {
	c := *s.crowd
	c.seed++
	kept, ok := s.kept["others"].(map[string]any)
	if !ok {
		kept = map[string]any{}
		s.kept["others"] = kept
	}
	c.kept = kept
	return &c
}
