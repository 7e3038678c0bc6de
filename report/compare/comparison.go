package compare

import "time"

// Class says how two verdicts differ.
type Class string

// The classes, the most dangerous first.
const (
	// WronglyAdmitted: the other engine admits what we deny, with a proof of why.
	WronglyAdmitted Class = "wrongly-admitted"
	// CouldNotLook: we could not look, so that nothing is proved; to be denied is not to be
	// unsigned.
	CouldNotLook Class = "could-not-look"
	// DeniedOnlyThere: the other engine denies what we admit.
	DeniedOnlyThere Class = "denied-only-there"
	// CouldNotLookThere: the other engine could not look, and we could.
	CouldNotLookThere Class = "could-not-look-there"
	// OnlyHere and OnlyThere: one engine alone spoke of it.
	OnlyHere  Class = "only-here"
	OnlyThere Class = "only-there"
)

// Classes are all of them, in their order.
func Classes() []Class {
	return []Class{WronglyAdmitted, CouldNotLook, DeniedOnlyThere, CouldNotLookThere, OnlyHere, OnlyThere}
}

// Comparison is what two engines differ in. Its JSON is documented in docs/compare.md:
// fields are added within a version, and never removed or given another meaning.
type Comparison struct {
	Time    time.Time `json:"time"`
	Summary Summary   `json:"summary"`
	// Costs are what calls cost, by engine and who measured; Saved is what moving saves.
	Costs []Cost `json:"costs"`
	Saved Saved  `json:"saved"`
	// Differences, the most dangerous first; More counts those beyond the bound.
	Differences []Difference `json:"differences"`
	More        int          `json:"differencesMore,omitempty"`
}

// Summary counts verdicts: one is a rule on an image of an object, or on the object.
type Summary struct {
	Ours   int `json:"ours"`
	Theirs int `json:"theirs"`
	Agree  int `json:"agree"`
	// NeitherLooked: both could not look.
	NeitherLooked int           `json:"neitherLooked"`
	Differ        map[Class]int `json:"differ"`
	// Stale counts differences of which a side is older than the policy.
	Stale int `json:"stale"`
	// Newly counts what we would deny that the other engine is not known to deny, and
	// NewlyUnable what we could not look at; both without what would only be told.
	Newly       int `json:"newlyDenied"`
	NewlyUnable int `json:"newlyUnable"`
	// Unreadable counts what could not be read, LeftOut what was beyond the bound.
	Unreadable int `json:"unreadable"`
	LeftOut    int `json:"leftOut"`
}

// Difference is one row: the same difference of all objects of one workload.
type Difference struct {
	Class Class `json:"class"`
	// Kind, Namespace and Name are the workload's; Objects counts the objects, and Example
	// is one of them where they have a controller.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Objects   int    `json:"objects"`
	Example   string `json:"example,omitempty"`
	Container string `json:"container,omitempty"`
	Image     string `json:"image,omitempty"`
	Digest    string `json:"digest,omitempty"`
	// Policy is kind/name or kind/namespace/name.
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule,omitempty"`
	// MatchedBy says how the two were found to be about the same: uid, name, or workload
	// (another object of the same controller).
	MatchedBy string `json:"matchedBy,omitempty"`
	// Theirs and Ours are nil where that side said nothing.
	Theirs *Side `json:"theirs,omitempty"`
	Ours   *Side `json:"ours,omitempty"`
}

// Side is what one engine said.
type Side struct {
	Engine Engine `json:"engine"`
	Word   Word   `json:"word"`
	// OnlyTold: a failure denies nobody.
	OnlyTold bool `json:"onlyTold,omitempty"`
	// Code is a reason code of ours; others have none.
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Where   Place     `json:"where"`
	Time    time.Time `json:"time,omitzero"`
	// Stale: it is older than the policy's last change.
	Stale bool `json:"stale,omitempty"`
}

// Cost is what calls of one engine cost.
type Cost struct {
	Engine Engine  `json:"engine"`
	By     Account `json:"by"`
	Calls  int64   `json:"calls"`
	// Milliseconds is the mean of a call.
	Milliseconds float64 `json:"milliseconds"`
	// Requests is how many registries were asked in all; nil where nobody tells.
	Requests *int64 `json:"requests,omitempty"`
}

// Saved is what moving saves. What nobody tells is nil, and Untold says why.
type Saved struct {
	// Milliseconds is how much less a call takes in the mean, by whoever measured both;
	// negative where ours takes longer.
	Milliseconds *float64 `json:"milliseconds,omitempty"`
	By           Account  `json:"by,omitempty"`
	Untold       []string `json:"untold,omitempty"`
}
