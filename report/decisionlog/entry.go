package decisionlog

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
)

// Version is the version of the format, which each line records. Fields are added within a
// version, and never removed or redefined. Lines of version 1 are read, too.
const Version = 2

// Kind is the kind of a line, and the name of the field with its content.
type Kind string

// The kinds.
const (
	KindOpen       Kind = "open"
	KindDecision   Kind = "decision"
	KindLost       Kind = "lost"
	KindPruned     Kind = "pruned"
	KindCheckpoint Kind = "checkpoint"
	KindBreakGlass Kind = "break-glass"
	KindDeletion   Kind = "deletion"
)

// Entry is a line. Only the content of its kind is set.
type Entry struct {
	V int `json:"v"`
	// Seq counts the lines of a log from 1.
	Seq uint64 `json:"seq"`
	// Prev is the SHA-256 of the line before it, without its line break, in
	// hexadecimal; 64 zeros in the first line.
	Prev string `json:"prev"`
	Kind Kind   `json:"kind"`
	// Time is the time of the event, in UTC, to the microsecond.
	Time time.Time `json:"time"`
	// Replica is the replica that writes the log.
	Replica string `json:"replica"`

	Open       *Open       `json:"open,omitempty"`
	Decision   *Decision   `json:"decision,omitempty"`
	Lost       *Lost       `json:"lost,omitempty"`
	Pruned     *Pruned     `json:"pruned,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	BreakGlass *BreakGlass `json:"breakGlass,omitempty"`
	Deletion   *Deletion   `json:"deletion,omitempty"`
}

// The reasons for a new file.
const (
	WhyNew      = "new"
	WhyStart    = "start"
	WhyRotation = "rotation"
)

// Open is the first line of each file, and of each process that continues a file.
type Open struct {
	// Chain identifies the log by a random number in hexadecimal.
	Chain string `json:"chain"`
	// Why is new, start or rotation.
	Why     string `json:"why"`
	Program string `json:"program,omitempty"`
	// Key is the ID of the key for the following checkpoints.
	Key string `json:"key,omitempty"`
	// Torn names the file with the incomplete line that a crash left, and its size in bytes.
	Torn *Torn `json:"torn,omitempty"`
	// Damaged is the position where the chain of the file is broken; the file is left unchanged.
	Damaged string `json:"damaged,omitempty"`
	// Missing counts the lines that are missing from the log, by the last checkpoint stored next
	// to it.
	Missing uint64 `json:"missing,omitempty"`
}

// Torn describes the remains of an incomplete line.
type Torn struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Lost records that there are no lines for some decisions.
type Lost struct {
	Records uint64 `json:"records"`
	// Why is the last cause.
	Why string `json:"why"`
	// Since is the time of the first lost decision.
	Since time.Time `json:"since"`
}

// Pruned records that a file of the log is removed because of the log's maximum size or age.
type Pruned struct {
	Segment string `json:"segment"`
	// Through is the number of the last removed line.
	Through uint64 `json:"through"`
	// Why is size or age.
	Why string `json:"why"`
}

// Checkpoint is a signature of the log up to this line.
type Checkpoint struct {
	Chain string `json:"chain"`
	// Key is the SHA-256 of the public key in PKIX form, in hexadecimal.
	Key string `json:"key"`
	// Closed: the process shut down in order.
	Closed bool `json:"closed"`
	// Signature is that of SignedText, in ASN.1 form, in base64.
	Signature []byte `json:"signature"`
}

// BreakGlass records that break glass was opened for a namespace, changed, or closed.
type BreakGlass struct {
	// Event is opened, changed, or the reason why it is closed: expired, incomplete, too-long,
	// removed.
	Event     string `json:"event"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
	// Reason, By and Until are the values of the annotations. Manager is the field manager that
	// set them, and Since the time of that, by the API server's clock.
	Reason  string    `json:"reason,omitempty"`
	By      string    `json:"by,omitempty"`
	Manager string    `json:"manager,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`
}

// Deletion records the deletion of an object by a policy, or at the end of its lifetime.
type Deletion struct {
	// Policy is as in Rule, and Hash and Rule are, too; all are empty for the end of a lifetime.
	Policy string          `json:"policy,omitempty"`
	Hash   string          `json:"hash,omitempty"`
	Rule   string          `json:"rule,omitempty"`
	Object report.Resource `json:"object"`
	// Scheduled is the time of the schedule, or the end of the lifetime.
	Scheduled time.Time `json:"scheduled"`
	// By is the user that set the label with the lifetime.
	By string `json:"by,omitempty"`
	// Propagation is the propagationPolicy of the request; empty for the default of the kind.
	Propagation string `json:"propagation,omitempty"`
	// Outcome is deleted or failed, and Message the error.
	Outcome string `json:"outcome"`
	Message string `json:"message,omitempty"`
}

// Decision is one verdict: on an image of an object, or on the object itself.
type Decision struct {
	Process   report.Process `json:"process"`
	Endpoint  string         `json:"endpoint,omitempty"`
	UID       string         `json:"uid,omitempty"`
	Operation string         `json:"operation,omitempty"`
	User      string         `json:"user,omitempty"`
	Groups    []string       `json:"groups,omitempty"`
	DryRun    bool           `json:"dryRun,omitempty"`
	// Allowed is the response for the object as a whole.
	Allowed bool `json:"allowed"`
	// Shadow: the outcome is recorded but not enforced.
	Shadow bool `json:"shadow,omitempty"`
	// Undecided is the reason why there is no decision. There is no result then.
	Undecided string          `json:"undecided,omitempty"`
	Object    report.Resource `json:"object"`
	// Image is nil where the line applies to the object itself.
	Image *Image `json:"image,omitempty"`
	// Result is the result for the image, or for the object.
	Result gate.Result `json:"result,omitempty"`
	// Reasons for the answer, the most relevant first.
	Reasons  []Reason `json:"reasons,omitempty"`
	Warnings []Reason `json:"warnings,omitempty"`
	// Override is the ImageOverride that decided, as kind/name.
	Override string `json:"override,omitempty"`
	// Rules are those that matched the image, or the object.
	Rules []Rule `json:"rules,omitempty"`
	// PolicySet, Trust and Mirrors identify the configuration of the decision, by hashes.
	PolicySet string `json:"policySet,omitempty"`
	Trust     string `json:"trust,omitempty"`
	Mirrors   string `json:"mirrors,omitempty"`
	// Milliseconds is the duration of the decision on the object as a whole, and Requests the
	// number of its requests to registries. Each line of the object repeats both.
	Milliseconds float64 `json:"milliseconds,omitempty"`
	Requests     int64   `json:"requests,omitempty"`
	// Omitted counts the entries of the lists above that did not fit into the line.
	Omitted int `json:"omitted,omitempty"`
}

// Image is the image of a Decision.
type Image struct {
	Container string `json:"container,omitempty"`
	// Written is the reference as written in the object.
	Written string `json:"written"`
	// Digest is the resolved digest; empty where it was not resolved.
	Digest string `json:"digest,omitempty"`
	// Mirror is the mirror entry that matches the image, and Target the exact name that the
	// reference is rewritten to; empty where it is not rewritten.
	Mirror string `json:"mirror,omitempty"`
	Target string `json:"target,omitempty"`
}

// Reason is a reason for or against an image or object.
type Reason struct {
	Code     policy.Code `json:"code"`
	Message  string      `json:"message,omitempty"`
	Expected string      `json:"expected,omitempty"`
	Found    string      `json:"found,omitempty"`
}

// Rule is the result of one rule of a policy.
type Rule struct {
	// Policy is kind/name or kind/namespace/name, Hash the SHA-256 of the document in
	// hexadecimal.
	Policy string `json:"policy"`
	Hash   string `json:"hash,omitempty"`
	Rule   string `json:"rule"`
	Entry  string `json:"entry,omitempty"`
	// Result is pass, fail, indeterminate or skip.
	Result policy.Result `json:"result"`
	// Action is the effect of a failure.
	Action policy.Action `json:"action,omitempty"`
	// AuditedBy is the setting that has the policy audited instead of enforced; empty where there
	// is none.
	AuditedBy string `json:"auditedBy,omitempty"`
	// Reason is the most relevant one, for every result except a pass.
	Reason *Reason `json:"reason,omitempty"`
	// Exception is the exception that exempts the object, as kind/namespace/name.
	Exception string `json:"exception,omitempty"`
	// Changed: the rule mutated the object.
	Changed bool    `json:"changed,omitempty"`
	Proofs  []Proof `json:"proofs,omitempty"`
}

// Proof is the evidence of one claim that satisfied a rule.
type Proof struct {
	// Role is signature or attestation, Format cosign, bundle or notation.
	Role   string `json:"role"`
	Format string `json:"format"`
	// Type is the predicate type of an attestation.
	Type string `json:"type,omitempty"`
	// Subject and Issuer are those of a certificate; Key is the SHA-256 of a public key.
	Subject string `json:"subject,omitempty"`
	Issuer  string `json:"issuer,omitempty"`
	Key     string `json:"key,omitempty"`
	// Where is the location of the evidence, as repository@digest.
	Where string `json:"where,omitempty"`
	// LogIndexes are the entries in transparency logs, as log:index.
	LogIndexes []string `json:"logIndexes,omitempty"`
	// SignedAt is the earliest trusted time of signing, and TimeSource its source: log, timestamp or
	// signer.
	SignedAt   time.Time         `json:"signedAt,omitzero"`
	TimeSource verify.TimeSource `json:"timeSource,omitempty"`
}
