package attest

import "github.com/quaymaster/quaymaster/image"

// Want selects the evidence to find; nothing else is fetched.
type Want struct {
	// Formats to find; empty means all.
	Formats []Format
	// Signatures requests signatures.
	Signatures bool
	// Predicates are the requested predicate types of in-toto attestations, as full URIs. A
	// cosign short name must be translated first (PredicateURI).
	Predicates []string
	// Artifacts are the requested artifact types of documents among the referrers, signed by
	// notation (Kyverno's Notary attestations).
	Artifacts []string
	// Sources are the places to search; empty means the image's repository.
	Sources []Source
}

// Source is a place with evidence.
type Source struct {
	// Repository to search; zero means the image's own.
	Repository image.Repository
	// TagPrefix precedes cosign's tags, as in COSIGN_REPOSITORY setups and Sigstore's
	// ClusterImagePolicy (tagPrefix).
	TagPrefix string
}

// Found is the evidence for a digest, and the gaps in it.
type Found struct {
	Evidence []Evidence
	// Gaps are the places that could not be read. A requirement that the evidence meets is met in
	// spite of gaps. For any other requirement, gaps mean "could not be verified", never
	// "unsigned".
	Gaps []Gap
	// Malformed lists evidence that cannot be parsed: it is rejected, and reported to the user.
	Malformed []Gap
	// Unsigned are documents of a wanted artifact type without a notation signature: they are no
	// evidence, but not malformed. The list is not complete.
	Unsigned []Evidence
	// Unasked is other evidence that Find came across, without its payload: a denial can list it
	// next to the missing evidence. The list is not complete.
	Unasked []Evidence
}

// Gap is a place that could not be read, and the reason.
type Gap struct {
	// Repository is where something could not be read.
	Repository image.Repository
	Where      string
	Err        error
	// Absent: the repository does not have the image itself. It hides no evidence.
	Absent bool
}

// Error implements error.
func (g Gap) Error() string { return g.Where + ": " + g.Err.Error() }

// Unwrap returns the cause.
func (g Gap) Unwrap() error { return g.Err }
