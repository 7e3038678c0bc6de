package decisionlog

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Version is the version of the format, which each line says. Fields are added within
// a version, and never removed or given another meaning.
const Version = 1

// Kind says what a line is, and under which name its content stands.
type Kind string

// The kinds.
const (
	KindOpen       Kind = "open"
	KindDecision   Kind = "decision"
	KindLost       Kind = "lost"
	KindPruned     Kind = "pruned"
	KindCheckpoint Kind = "checkpoint"
	KindBreakGlass Kind = "break-glass"
)

// Entry is what a line says. Of the contents, the one of its kind is there.
type Entry struct {
	V int `json:"v"`
	// Seq counts the lines of a log from 1.
	Seq uint64 `json:"seq"`
	// Prev is the SHA-256 of the line before it, without its line break, in
	// hexadecimal; 64 zeros in the first line.
	Prev string `json:"prev"`
	Kind Kind   `json:"kind"`
	// Time is when it happened, in UTC, to the microsecond.
	Time time.Time `json:"time"`
	// Replica is who writes the log.
	Replica string `json:"replica"`

	Open       *Open       `json:"open,omitempty"`
	Decision   *Decision   `json:"decision,omitempty"`
	Lost       *Lost       `json:"lost,omitempty"`
	Pruned     *Pruned     `json:"pruned,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	BreakGlass *BreakGlass `json:"breakGlass,omitempty"`
}

// Why a file begins.
const (
	WhyNew      = "new"
	WhyStart    = "start"
	WhyRotation = "rotation"
)

// Open is the first line of each file, and of each process in the file that it goes on
// with.
type Open struct {
	// Chain names the log, by a random number in hexadecimal.
	Chain string `json:"chain"`
	// Why is new, start or rotation.
	Why     string `json:"why"`
	Program string `json:"program,omitempty"`
	// Key is the ID of the key that signs from here on.
	Key string `json:"key,omitempty"`
	// Torn names the file beside the log that has the unfinished line that a crash
	// left, and its size in bytes.
	Torn *Torn `json:"torn,omitempty"`
	// Damaged says where the file was found broken; nothing of it was changed.
	Damaged string `json:"damaged,omitempty"`
	// Missing is how many lines the log had, by the last checkpoint that was kept
	// beside it, and has no more.
	Missing uint64 `json:"missing,omitempty"`
}

// Torn is what was set aside of a line that is not whole.
type Torn struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Lost says that something was decided of which there is no line.
type Lost struct {
	Records uint64 `json:"records"`
	// Why is the last cause.
	Why string `json:"why"`
	// Since is when the first of them was lost.
	Since time.Time `json:"since"`
}

// Pruned says that a file of the log is removed, because the log may not be larger or
// older.
type Pruned struct {
	Segment string `json:"segment"`
	// Through is the number of the last line that is gone.
	Through uint64 `json:"through"`
	// Why is size or age.
	Why string `json:"why"`
}

// Checkpoint is a signature of the log as it was until here.
type Checkpoint struct {
	Chain string `json:"chain"`
	// Key is the SHA-256 of the public key in PKIX form, in hexadecimal.
	Key string `json:"key"`
	// Closed: the process ended here in good order.
	Closed bool `json:"closed"`
	// Signature is that of SignedText, in ASN.1 form, in base64.
	Signature []byte `json:"signature"`
}

// BreakGlass says that a namespace was opened to what nobody proved, or closed again.
type BreakGlass struct {
	// Event is opened, changed, or why it is closed: expired, incomplete, too-long, removed.
	Event     string `json:"event"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
	// Reason, By and Until are what was said of it; Manager is the program that it was said
	// with, and Since when, by the API server's clock.
	Reason  string    `json:"reason,omitempty"`
	By      string    `json:"by,omitempty"`
	Manager string    `json:"manager,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`
}

// Decision is one verdict: about an image of an object, or about the object itself.
type Decision struct {
	Process   report.Process `json:"process"`
	Door      string         `json:"door,omitempty"`
	UID       string         `json:"uid,omitempty"`
	Operation string         `json:"operation,omitempty"`
	User      string         `json:"user,omitempty"`
	Groups    []string       `json:"groups,omitempty"`
	DryRun    bool           `json:"dryRun,omitempty"`
	// Allowed is what who asked was told about the object as a whole.
	Allowed bool `json:"allowed"`
	// Shadow: the answer is what would have been, and nothing came of it.
	Shadow bool `json:"shadow,omitempty"`
	// Undecided says why nobody could decide; there is no answer then.
	Undecided string          `json:"undecided,omitempty"`
	Object    report.Resource `json:"object"`
	// Image is nil where the line is about the object itself.
	Image *Image `json:"image,omitempty"`
	// Answer is allow, deny or unable: that of the image, or of the object.
	Answer gate.Answer `json:"answer,omitempty"`
	// Reasons for the answer, the most telling first.
	Reasons  []Reason `json:"reasons,omitempty"`
	Warnings []Reason `json:"warnings,omitempty"`
	// Override is the ImageOverride that decided, as kind/name.
	Override string `json:"override,omitempty"`
	// Rules are those that spoke of the image, or of the object.
	Rules []Rule `json:"rules,omitempty"`
	// PolicySet, Trust and Mirrors name what it rests on, by hashes.
	PolicySet string `json:"policySet,omitempty"`
	Trust     string `json:"trust,omitempty"`
	Mirrors   string `json:"mirrors,omitempty"`
	// Milliseconds is how long the decision about the object as a whole took, and Requests
	// how many were made to registries for it. Both stand on each line of the object.
	Milliseconds float64 `json:"milliseconds,omitempty"`
	Requests     int64   `json:"requests,omitempty"`
	// Omitted is how many entries of the lists above did not fit into the line.
	Omitted int `json:"omitted,omitempty"`
}

// Image is the image that a Decision is about.
type Image struct {
	Container string `json:"container,omitempty"`
	// Written is the reference as it stands in the object.
	Written string `json:"written"`
	// Digest is what it was resolved to; empty where nobody asked or found out.
	Digest string `json:"digest,omitempty"`
	// Mirror is the mirror's entry that speaks of it, and Target the exact name that it
	// points to now; empty where it stays where it was written.
	Mirror string `json:"mirror,omitempty"`
	Target string `json:"target,omitempty"`
}

// Reason is what speaks for or against.
type Reason struct {
	Code     policy.Code `json:"code"`
	Message  string      `json:"message,omitempty"`
	Expected string      `json:"expected,omitempty"`
	Found    string      `json:"found,omitempty"`
}

// Rule is what one rule of a policy said.
type Rule struct {
	// Policy is kind/name or kind/namespace/name, Hash the SHA-256 of the document in
	// hexadecimal.
	Policy string `json:"policy"`
	Hash   string `json:"hash,omitempty"`
	Rule   string `json:"rule"`
	Entry  string `json:"entry,omitempty"`
	// Result is pass, fail, undecided or skip.
	Result policy.Result `json:"result"`
	// Action is what a failure does.
	Action policy.Action `json:"action,omitempty"`
	// AuditedBy says who has the policy audit, whatever it says itself; empty: nobody.
	AuditedBy string `json:"auditedBy,omitempty"`
	// Reason is the most telling one, for what is no pass.
	Reason *Reason `json:"reason,omitempty"`
	// Exception is what left the object alone, as kind/namespace/name.
	Exception string `json:"exception,omitempty"`
	// Changed: the rule changed the object.
	Changed bool    `json:"changed,omitempty"`
	Proofs  []Proof `json:"proofs,omitempty"`
}

// Proof is the evidence of one claim that met a rule.
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
	// Where is the evidence's place, as repository@digest.
	Where string `json:"where,omitempty"`
	// LogIndexes are the entries in transparency logs, as log:index.
	LogIndexes []string `json:"logIndexes,omitempty"`
	// SignedAt is the earliest trusted time of signing.
	SignedAt time.Time `json:"signedAt,omitzero"`
}
