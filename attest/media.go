package attest

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// Media and artifact types of evidence.
const (
	// MediaTypeSimpleSigning is cosign's signature payload.
	MediaTypeSimpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	// MediaTypeDSSE is a DSSE envelope.
	MediaTypeDSSE = "application/vnd.dsse.envelope.v1+json"
	// MediaTypeInToto is an in-toto statement, and as a referrer's artifact type
	// a DSSE envelope around one.
	MediaTypeInToto = "application/vnd.in-toto+json"
	// MediaTypeBundle is a Sigstore bundle v0.3.
	MediaTypeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
	// MediaTypeJWS and MediaTypeCOSE are notation's signature envelopes.
	MediaTypeJWS  = "application/jose+json"
	MediaTypeCOSE = "application/cose"
	// ArtifactTypeNotation is that of notation signatures.
	ArtifactTypeNotation = "application/vnd.cncf.notary.signature"
	// ArtifactTypeCosignSignature is that of cosign's OCI 1.1 signatures.
	ArtifactTypeCosignSignature = "application/vnd.dev.cosign.artifact.sig.v1+json"

	// bundlePrefix begins the types of all bundle versions: v0.1 and v0.2 have
	// +json;version=0.1, later ones .v0.3+json.
	bundlePrefix = "application/vnd.dev.sigstore.bundle"
	// mediaTypeArtifact is a manifest of an OCI 1.1 release candidate, which
	// notation 1.0 wrote.
	mediaTypeArtifact = "application/vnd.oci.artifact.manifest.v1+json"
)

// Annotations that tell what a document is before it is fetched.
const (
	annotationPredicate       = "predicateType"                     // cosign, on layers
	annotationBundleContent   = "dev.sigstore.bundle.content"       // on manifests
	annotationBundlePredicate = "dev.sigstore.bundle.predicateType" // on manifests

	bundleContentMessage = "message-signature"
)

// isBundle reports whether a type is that of a Sigstore bundle.
func isBundle(mediaType string) bool {
	rest, ok := strings.CutPrefix(mediaType, bundlePrefix)
	return ok && (strings.HasPrefix(rest, ".v") || strings.HasPrefix(rest, "+json"))
}

// isEnvelope reports whether a type is that of a DSSE envelope.
func isEnvelope(mediaType string) bool {
	return mediaType == MediaTypeDSSE || mediaType == MediaTypeInToto
}

// saysNothing reports whether an artifact type leaves open what the artifact is.
// Registries that do not know the manifest's artifactType list its config's media
// type instead, which for most artifacts is the empty one.
func saysNothing(artifactType string) bool { return slices.Contains(unknownTypes, artifactType) }

// unknownTypes are the types that say nothing.
var unknownTypes = []string{
	"", "application/vnd.oci.empty.v1+json", "application/vnd.oci.image.config.v1+json",
	"application/vnd.docker.container.image.v1+json",
}

// bundleTypes are the types of the bundle versions that exist.
var bundleTypes = []string{
	MediaTypeBundle, bundlePrefix + "+json;version=0.1", bundlePrefix + "+json;version=0.2", bundlePrefix + "+json;version=0.3",
}

// asked is a Want, ready to be asked about one thing at a time.
type asked struct {
	want                     Want
	cosign, bundle, notation bool
}

func newAsked(w Want) asked {
	wants := func(f Format) bool { return len(w.Formats) == 0 || slices.Contains(w.Formats, f) }
	claims := w.Signatures || len(w.Predicates) > 0
	return asked{
		want:   w,
		cosign: claims && wants(Cosign), bundle: claims && wants(Bundle),
		notation: (w.Signatures || len(w.Artifacts) > 0) && wants(Notation),
	}
}

// predicate reports whether attestations of the type are asked for; an unknown
// type may be.
func (a asked) predicate(uri string) bool {
	if uri == "" {
		return len(a.want.Predicates) > 0
	}
	return slices.Contains(a.want.Predicates, uri)
}

// artifact reports whether referrers of the type are asked for as documents.
func (a asked) artifact(artifactType string) bool {
	return a.notation && slices.Contains(a.want.Artifacts, artifactType)
}

// signatureTag and attestationTag report whether cosign's tags could matter.
func (a asked) signatureTag() bool   { return a.cosign && a.want.Signatures }
func (a asked) attestationTag() bool { return a.cosign && len(a.want.Predicates) > 0 }

// referrers reports whether any referrer could matter.
func (a asked) referrers() bool { return a.cosign || a.bundle || a.notation }

// types returns the artifact types under which what is asked for may be listed,
// so that others do not count: a single one is filtered by the registry. What
// registries may list under another name (saysNothing) is never a single one.
func (a asked) types() []string {
	claims := len(a.want.Predicates)+len(a.want.Artifacts) > 0
	switch {
	case !claims && a.cosign && !a.notation && !a.bundle:
		return []string{ArtifactTypeCosignSignature}
	case !claims && a.notation && !a.cosign && !a.bundle:
		return []string{ArtifactTypeNotation}
	}
	var types []string
	if a.bundle {
		types = append(types, bundleTypes...)
	}
	if a.cosign {
		types = append(types, ArtifactTypeCosignSignature, MediaTypeInToto, MediaTypeDSSE)
	}
	if a.notation {
		types = append(append(types, ArtifactTypeNotation), a.want.Artifacts...)
	}
	return append(types, unknownTypes...)
}

// interest says how a listed referrer relates to what is asked for.
type interest struct {
	// kind groups referrers for MaxReferrers; empty means that nobody asks.
	kind string
	// rank orders them: what says exactly what it is comes first, and
	// rankUnknown last.
	rank int
	// other is what it is, where that is evidence nobody asks for.
	other Evidence
}

// rankUnknown is for what does not even say that it is evidence.
const rankUnknown = 2

// listed judges a referrer by what the list says of it.
func (a asked) listed(d image.Descriptor) interest {
	t := d.ArtifactType
	switch {
	case a.artifact(t):
		return interest{kind: t}
	case t == ArtifactTypeNotation:
		return a.offered(a.notation && a.want.Signatures, Evidence{Format: Notation, Role: Signature})
	case t == ArtifactTypeCosignSignature:
		return a.offered(a.cosign && a.want.Signatures, Evidence{Format: Cosign, Role: Signature})
	case isBundle(t):
		return a.listedBundle(d)
	case isEnvelope(t):
		return a.offered(a.cosign && len(a.want.Predicates) > 0, Evidence{Format: Cosign, Role: Attestation})
	case saysNothing(t) && d.Annotations[annotationBundleContent] != "":
		return a.listedBundle(d)
	case saysNothing(t):
		return interest{kind: "of unknown type", rank: rankUnknown}
	}
	return interest{}
}

// offered returns the interest in what says that it is e.
func (a asked) offered(wanted bool, e Evidence) interest {
	if !wanted {
		return interest{other: e}
	}
	return interest{kind: strings.TrimSpace(string(e.Format) + " " + string(e.Role) + " " + e.PredicateType)}
}

// listedBundle goes by the annotations that cosign and GitHub write; they save a
// fetch and are never believed.
func (a asked) listedBundle(d image.Descriptor) interest {
	e := Evidence{Format: Bundle, Role: Attestation, PredicateType: d.Annotations[annotationBundlePredicate]}
	switch {
	case d.Annotations[annotationBundleContent] == bundleContentMessage, e.PredicateType == PredicateCosignSign:
		e.Role, e.PredicateType = Signature, ""
	case e.PredicateType == "" && a.bundle:
		return interest{kind: "bundle", rank: 1}
	}
	return a.offered(a.bundle && a.claim(e.Role, e.PredicateType), e)
}

// claim reports whether a claim of that role and type is asked for.
func (a asked) claim(role Role, predicate string) bool {
	if role == Signature {
		return a.want.Signatures
	}
	return a.predicate(predicate)
}
