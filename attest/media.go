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
	// ArtifactTypeNotation is the artifact type of notation signatures.
	ArtifactTypeNotation = "application/vnd.cncf.notary.signature"
	// ArtifactTypeCosignSignature is the artifact type of cosign's OCI 1.1 signatures.
	ArtifactTypeCosignSignature = "application/vnd.dev.cosign.artifact.sig.v1+json"

	// bundlePrefix begins the types of all bundle versions: v0.1 and v0.2 have +json;version=0.1,
	// later ones .v0.3+json.
	bundlePrefix = "application/vnd.dev.sigstore.bundle"
	// mediaTypeArtifact is a manifest of an OCI 1.1 release candidate, as notation 1.0 wrote it.
	mediaTypeArtifact = "application/vnd.oci.artifact.manifest.v1+json"
)

// Annotations that describe a document before it is fetched.
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

// saysNothing reports whether an artifact type is unspecific. Registries without support for the
// manifest's artifactType list its config's media type instead, which for most artifacts is the
// empty one.
func saysNothing(artifactType string) bool { return slices.Contains(unknownTypes, artifactType) }

// unknownTypes are the unspecific types.
var unknownTypes = []string{
	"", "application/vnd.oci.empty.v1+json", "application/vnd.oci.image.config.v1+json",
	"application/vnd.docker.container.image.v1+json",
}

// bundleTypes are the types of the existing bundle versions.
var bundleTypes = []string{
	MediaTypeBundle, bundlePrefix + "+json;version=0.1", bundlePrefix + "+json;version=0.2", bundlePrefix + "+json;version=0.3",
}

// asked is a Want, prepared for single checks.
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

// predicate reports whether attestations of the type are requested; an unknown type may be.
func (a asked) predicate(uri string) bool {
	if uri == "" {
		return len(a.want.Predicates) > 0
	}
	return slices.Contains(a.want.Predicates, uri)
}

// artifact reports whether referrers of the type are requested as documents.
func (a asked) artifact(artifactType string) bool {
	return a.notation && slices.Contains(a.want.Artifacts, artifactType)
}

// signatureTag and attestationTag report whether cosign's tags could contain requested evidence.
func (a asked) signatureTag() bool   { return a.cosign && a.want.Signatures }
func (a asked) attestationTag() bool { return a.cosign && len(a.want.Predicates) > 0 }

// referrers reports whether any referrer could contain requested evidence.
func (a asked) referrers() bool { return a.cosign || a.bundle || a.notation }

// types returns the artifact types of requested referrers in lists, so that others do not count.
// The registry filters a single type. Types that registries may list under another name
// (saysNothing) are never returned alone.
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

// interest is the relevance of a listed referrer.
type interest struct {
	// kind groups referrers for MaxOpenedReferrers; empty means not requested.
	kind string
	// rank orders referrers: specific types first, and rankUnknown last.
	rank int
	// other describes evidence that is not requested.
	other Evidence
}

// rankUnknown is the rank of referrers of unspecific types.
const rankUnknown = 2

// listed classifies a referrer by its descriptor in the list.
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

// offered returns the interest in a referrer that is listed as e.
func (a asked) offered(wanted bool, e Evidence) interest {
	if !wanted {
		return interest{other: e}
	}
	return interest{kind: strings.TrimSpace(string(e.Format) + " " + string(e.Role) + " " + e.PredicateType)}
}

// listedBundle uses the annotations that cosign and GitHub write; they save a fetch and are never
// trusted.
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

// claim reports whether a claim of that role and type is requested.
func (a asked) claim(role Role, predicate string) bool {
	if role == Signature {
		return a.want.Signatures
	}
	return a.predicate(predicate)
}
