package gate

import (
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// objectEvaluation is one object with its images and the checks that concern them.
type objectEvaluation struct {
	request  Request
	subject  *policy.Subject
	images   images
	checks   checks
	mutated  []policy.RuleResult  // of the mutation rules
	patch    []workload.Operation // the operations of mutation rules
	changed  workload.Object      // the object after mutation; zero if unchanged
	identity workload.Identity
	started  time.Time
	mirrors  mirrors
	verdicts []Verdict // of images, once concluded
	// overriding holds the overrides that apply; nil for none. overridden holds their extra
	// lookups, by the image's pointer.
	overriding *set.Overriding
	overridden map[string]*overridden
}

// checks are the checks that policies require for the images of one object.
type checks struct {
	set.Plan
	evaluations []checkEvaluation // of the checks, in their order
	// judged are the decisions of judges, by the check's place in the plan.
	judged map[int]policy.Decision
	// exempt are the images that an Allow matches and that judges do not see any more.
	exempt map[string]bool
}

// checkEvaluation is the evaluation of one check: its part of an image evaluation, or the reason why there is
// none.
type checkEvaluation struct {
	image *imageEvaluation
	at    int   // the index of the check in it
	err   error // credentials that could not be had
}

// overridden is one image that overrides may match, with the digests and signers found for
// them in addition to the claims that policies query.
type overridden struct {
	plan        *objectEvaluation
	image       policy.Image
	evaluations []*inspection    // that resolve and verify the image
	err         error            // why it could not be resolved
	proof       *imageEvaluation // of the signers of Allows; nil where none is needed
}

// inspection is the extra lookup of an image evaluation for overrides.
type inspection struct {
	evaluation       *imageEvaluation
	digests, signers bool // which of them are needed
	finished         bool

	children []image.Digest // that its index lists
	err      error          // why the digests may be incomplete
}
