package attest

import "github.com/quaymaster/quaymaster/image"

// Want says which evidence could matter to the policy at hand; nothing else is
// fetched.
type Want struct {
	// Formats to look for; none means all.
	Formats []Format
	// Signatures: whether signatures are wanted.
	Signatures bool
	// Predicates are the predicate types wanted of in-toto attestations, as
	// full URIs. A cosign short name must be translated first (PredicateURI).
	Predicates []string
	// Artifacts are the artifact types wanted of referrers that are documents
	// and that notation signed (Kyverno's Notary attestations).
	Artifacts []string
	// Sources are the places to look at; none means the image's repository.
	Sources []Source
}

// Source is a place where evidence is kept.
type Source struct {
	// Repository is where; zero means the image's own.
	Repository image.Repository
	// TagPrefix stands before cosign's tags, as COSIGN_REPOSITORY setups and
	// Sigstore's ClusterImagePolicy (tagPrefix) have it.
	TagPrefix string
}

// Found is the evidence for a digest, and what could not be looked at.
type Found struct {
	Evidence []Evidence
	// Gaps are the places that gave no answer. A requirement that the evidence
	// meets is met whatever the gaps; for any other one they mean "could not
	// look", never "unsigned".
	Gaps []Gap
	// Malformed lists evidence that was there and could not be read: it proves
	// nothing, and is told to the user.
	Malformed []Gap
	// Unsigned are documents of a wanted artifact type that notation did not sign:
	// they prove nothing, and nothing is wrong with them. The list is not complete.
	Unsigned []Evidence
	// Unasked is evidence that was seen on the way and that Want does not ask for,
	// without its payload: a denial can name what is there instead of what was
	// asked for. The list is not complete.
	Unasked []Evidence
}

// Gap is a place that could not be looked at, and why.
type Gap struct {
	Where string
	Err   error
}

// Error implements error.
func (g Gap) Error() string { return g.Where + ": " + g.Err.Error() }

// Unwrap returns the cause.
func (g Gap) Unwrap() error { return g.Err }
