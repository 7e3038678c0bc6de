package compare

import "time"

// Class is how two verdicts differ.
type Class string

// The classes, the most dangerous first.
const (
	// WronglyAdmitted: the other engine admits an image that we deny after a conclusive
	// verification.
	WronglyAdmitted Class = "wrongly-admitted"
	// ErrorHere: we could not verify the image. Such a denial does not mean that the image is
	// unsigned.
	ErrorHere Class = "error"
	// DeniedOnlyThere: the other engine denies an image that we admit.
	DeniedOnlyThere Class = "denied-only-there"
	// ErrorThere: the other engine could not verify the image, and we could.
	ErrorThere Class = "error-there"
	// OnlyHere and OnlyThere: only one engine has a verdict.
	OnlyHere  Class = "only-here"
	OnlyThere Class = "only-there"
)

// Classes returns all classes in order.
func Classes() []Class {
	return []Class{WronglyAdmitted, ErrorHere, DeniedOnlyThere, ErrorThere, OnlyHere, OnlyThere}
}

// Comparison holds the differences between two engines. docs/compare.md documents its JSON:
// fields are added within a version, and never removed or redefined.
type Comparison struct {
	Time    time.Time `json:"time"`
	Summary Summary   `json:"summary"`
	// Costs are the costs of calls, by engine and source of the measurement. Saved is the saving
	// of a migration.
	Costs []Cost `json:"costs"`
	Saved Saved  `json:"saved"`
	// Differences, the most dangerous first. More counts those beyond the bound.
	Differences []Difference `json:"differences"`
	More        int          `json:"differencesMore,omitempty"`
}

// Summary counts verdicts. A verdict is the result of a rule for an image of an object, or for
// the object.
type Summary struct {
	Ours   int `json:"ours"`
	Theirs int `json:"theirs"`
	Agree  int `json:"agree"`
	// NeitherLooked counts the verdicts where both engines failed to verify.
	NeitherLooked int           `json:"neitherLooked"`
	Differ        map[Class]int `json:"differ"`
	// Stale counts differences with a side that is older than the policy.
	Stale int `json:"stale"`
	// Newly counts our denials without a known denial of the other engine, and NewErrors our
	// verification errors. Both leave out audited rules.
	Newly     int `json:"newlyDenied"`
	NewErrors int `json:"newErrors"`
	// Unreadable counts unreadable inputs, and LeftOut those beyond the bound.
	Unreadable int `json:"unreadable"`
	LeftOut    int `json:"leftOut"`
}

// Difference is one row: an equal difference of all objects of one workload.
type Difference struct {
	Class Class `json:"class"`
	// Kind, Namespace and Name are the workload's. Objects counts its objects, and Example is one
	// of them where they have a controller.
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
	// MatchedBy is the criterion that matched the two verdicts: uid, name, or workload (another
	// object of the same controller).
	MatchedBy string `json:"matchedBy,omitempty"`
	// Theirs and Ours are nil where that side has no verdict.
	Theirs *Side `json:"theirs,omitempty"`
	Ours   *Side `json:"ours,omitempty"`
}

// Side is the verdict of one engine.
type Side struct {
	Engine  Engine  `json:"engine"`
	Verdict Verdict `json:"verdict"`
	// Audited: the rule is audited, and a failure denies no request.
	Audited bool `json:"audited,omitempty"`
	// Code is our reason code; other engines have none.
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Where   Place     `json:"where"`
	Time    time.Time `json:"time,omitzero"`
	// Stale: the verdict is older than the policy's last change.
	Stale bool `json:"stale,omitempty"`
}

// Cost is the cost of calls of one engine.
type Cost struct {
	Engine Engine  `json:"engine"`
	By     Account `json:"by"`
	Calls  int64   `json:"calls"`
	// Milliseconds is the mean duration of a call.
	Milliseconds float64 `json:"milliseconds"`
	// Requests counts all requests to registries; nil where the engine does not report them.
	Requests *int64 `json:"requests,omitempty"`
}

// Saved is the saving of a migration. Unreported values are nil, and Unreported lists the reasons.
type Saved struct {
	// Milliseconds is the mean saving of a call, measured for both engines by the same source. It
	// is negative where our calls take longer.
	Milliseconds *float64 `json:"milliseconds,omitempty"`
	By           Account  `json:"by,omitempty"`
	Unreported   []string `json:"unreported,omitempty"`
}
