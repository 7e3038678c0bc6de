package attest

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
)

// document is the layer of a manifest to read, and then its content.
type document struct {
	place    int // in search order
	format   Format
	role     Role
	layer    image.Descriptor
	index    int // of the layer in its manifest
	of       *artifact
	origin   Origin
	limit    limit
	isShared bool // the content of an artifact: not evidence by itself

	body []byte
	err  error
}

// limit is the bound on a document's size, in bytes.
type limit struct {
	name string
	most int64
}

var attestationLimit = limit{"MaxAttestation", MaxAttestation}

// collect lists the documents at cosign's tags.
func (s *search) collect(places []*place) {
	for i, p := range places {
		if p.tag == "" || p.err != nil {
			continue
		}
		where := p.where(s.subject)
		m, err := parseManifest(p.descriptor, p.manifest)
		if err != nil {
			s.found.malformed(where, err)
			continue
		}
		origin := Origin{Repository: p.repository, Via: p.tag, Manifest: p.descriptor.Digest}
		known := s.layers(m.Layers, i, origin, func(layer image.Descriptor) (*document, bool) {
			if p.role == Signature && layer.MediaType == MediaTypeSimpleSigning {
				return signatureDocument(), true
			}
			if p.role == Attestation && isEnvelope(layer.MediaType) {
				return s.envelopeDocument(layer, origin), true
			}
			return nil, false
		})
		if !known && len(m.Layers) > 0 {
			s.found.malformed(where, errNoLayer)
		}
	}
}

// collectReferrers lists the documents of referrers.
func (s *search) collectReferrers(referrers []*referrer) {
	shared := map[*artifact]bool{}
	for _, r := range referrers {
		switch {
		case r.fetchErr != nil:
			s.found.failed(r.repository, r.origin().String(), r.fetchErr)
		case r.err != nil:
			s.found.malformed(r.origin().String(), r.err)
		case r.of != nil && !shared[r.of]:
			shared[r.of] = true
			s.add(&document{place: r.place, layer: r.of.layer, of: r.of, origin: r.of.origin, limit: attestationLimit, isShared: true})
			s.notationDocument(r)
		case s.asked.artifact(r.manifest.artifactType()): // read with its first signature
		case r.of != nil || r.manifest.artifactType() == ArtifactTypeNotation:
			s.notationDocument(r)
		default:
			known := s.layers(r.manifest.Layers, r.place, r.origin(), func(layer image.Descriptor) (*document, bool) {
				return s.referrerDocument(layer, r)
			})
			if !known && r.interest.rank < rankUnknown {
				s.found.malformed(r.origin().String(), errNoLayer)
			}
		}
	}
}

// referrerDocument uses the layer's media type, as readers of the layer do; the artifact type only
// served to find it.
func (s *search) referrerDocument(layer image.Descriptor, r *referrer) (p *document, isKnown bool) {
	switch {
	case isBundle(layer.MediaType) || isBundle(r.manifest.artifactType()) && len(r.manifest.Layers) == 1:
		if s.asked.bundle {
			p = &document{format: Bundle, limit: s.bundleLimit()}
		}
	case layer.MediaType == MediaTypeSimpleSigning:
		if s.asked.signatureTag() {
			p = signatureDocument()
		}
	case isEnvelope(layer.MediaType):
		if s.asked.attestationTag() {
			p = s.envelopeDocument(layer, r.origin())
		}
	default:
		return nil, false
	}
	return p, true
}

// errNoLayer: a referrer has a type of evidence, but no such layer.
var errNoLayer = errors.New("none of its layers is a signature or attestation of a known media type")

// bundleLimit is small if no attestation is requested.
func (s *search) bundleLimit() limit {
	if len(s.asked.want.Predicates) == 0 {
		return limit{"MaxSignature", MaxSignature}
	}
	return attestationLimit
}

func signatureDocument() *document {
	return &document{format: Cosign, role: Signature, limit: limit{"MaxPayload", MaxPayload}}
}

// envelopeDocument uses cosign's annotation, if there is one.
func (s *search) envelopeDocument(layer image.Descriptor, origin Origin) *document {
	if uri := layer.Annotations[annotationPredicate]; uri != "" && !s.asked.predicate(uri) {
		s.found.unasked(Evidence{Format: Cosign, Role: Attestation, PredicateType: uri, Origin: origin})
		return nil
	}
	return &document{format: Cosign, role: Attestation, limit: attestationLimit}
}

// notationDocument lists the signature envelope of a notation referrer.
func (s *search) notationDocument(r *referrer) {
	layer, err := r.manifest.only()
	if err == nil && layer.MediaType != MediaTypeJWS && layer.MediaType != MediaTypeCOSE {
		err = fmt.Errorf("want a layer of type %s or %s, got %q", MediaTypeJWS, MediaTypeCOSE, shorten(layer.MediaType))
	}
	switch {
	case err != nil:
		s.found.malformed(r.origin().String(), fmt.Errorf("notation signature: %w", err))
	case r.of == nil && !s.asked.want.Signatures:
		s.found.unasked(Evidence{Format: Notation, Role: Signature, Origin: r.origin()})
	case s.asked.notation:
		s.add(&document{
			place: r.place, format: Notation, role: Signature, layer: layer, of: r.of,
			origin: r.origin(), limit: limit{"MaxSignature", MaxSignature},
		})
	}
}

// layers lists the layers that judge accepts as documents, at most MaxLayers, and reports whether
// any has a known type.
func (s *search) layers(layers []image.Descriptor, place int, origin Origin, judge func(image.Descriptor) (*document, bool)) bool {
	count, known := 0, false
	for i, layer := range layers {
		p, isKnown := judge(layer)
		known = known || isKnown
		if p == nil {
			continue
		}
		count++
		if count > MaxLayers {
			err := overBound("layers of a manifest", "MaxLayers", MaxLayers)
			if origin.Via == viaReferrers { // one push adds it
				s.found.malformed(origin.String(), err)
			} else {
				s.found.gap(origin.Repository, origin.String(), err)
			}
			break
		}
		p.place, p.index, p.layer, p.origin = place, i, layer, origin
		s.add(p)
	}
	return known
}

// add records a document to read, if its size is within the limit. The size comes from the
// manifest, which a user with push access controls. A document with a larger size than any real
// one is malformed evidence, not a gap.
func (s *search) add(p *document) {
	where := p.where()
	switch {
	case p.layer.Digest.IsZero() || p.layer.Size <= 0:
		s.found.malformed(where, errors.New("its descriptor lacks digest or size"))
	case p.layer.Size > p.limit.most:
		s.found.malformed(where, overBound(fmt.Sprintf("a document of %d bytes", p.layer.Size), p.limit.name, int(p.limit.most)))
	default:
		s.documents = append(s.documents, p)
	}
}

func (p *document) where() string {
	return p.origin.String() + ", blob " + p.layer.Digest.String()
}
