package finding

import (
	"cmp"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// Status is what a finding is.
type Status string

// The statuses.
const (
	// Skip: nobody asked anything, or an exception leaves it alone.
	Skip Status = "skip"
	Pass Status = "pass"
	// Note is worth knowing and no failure.
	Note Status = "note"
	// Warn is a failure that does not deny.
	Warn Status = "warn"
	// Unable: could not look, and that is not admitted.
	Unable Status = "unable"
	Deny   Status = "deny"
)

// weight orders statuses from good to bad.
func weight(s Status) int {
	switch s {
	case Skip:
		return 0
	case Pass:
		return 1
	case Note:
		return 2
	case Warn:
		return 3
	case Deny:
		return 5
	default: // a status that is not known is not good
		return 4
	}
}

// Compare orders statuses, the worst first.
func Compare(a, b Status) int { return cmp.Compare(weight(b), weight(a)) }

func statusOf(answer gate.Answer) Status {
	switch answer {
	case gate.Allow:
		return Pass
	case gate.Deny:
		return Deny
	default:
		return Unable
	}
}

// Run is what a command found. Its texts are safe for a line.
type Run struct {
	Objects []Object
	Summary report.Summary
	// Error says why nothing was decided; empty where something was.
	Error string
}

// Object is one object of a run.
type Object struct {
	// Title is kind, namespace and name, or the image where one was named alone.
	Title string
	// Source says where it was read, Template what that was rendered from; both may be
	// empty.
	Source, Template string
	// Position is where it begins; nil where nobody knows.
	Position *workload.Position
	Answer   gate.Answer
	// Images are those of the object, in its order.
	Images []Image
	// Findings are never empty: of the images first, in their order.
	Findings []Finding
}

// Image is one image of an object, with the answer about it.
type Image struct {
	// Place is its container, as in "db (init)".
	Place, Written string
	// Digest is short; empty where there is none.
	Digest   string
	Answer   gate.Answer
	Position *workload.Position
}

// Finding is what one rule says of one image, or of the object itself.
type Finding struct {
	Status Status
	// Image is what it is about, Place its container; empty for the object.
	Image, Place string
	// Repository is the image's, without tag and digest, and Pointer where it is
	// written in the object (RFC 6901).
	Repository, Pointer string
	// Position is where the image, or the object, is written; nil where nobody knows.
	Position *workload.Position
	// Policy and Rule are whose word it is; empty where it is no single rule's.
	Policy, Rule string
	// Reasons are never empty, the most telling first, each with what to do next.
	Reasons []policy.Reason
	// Exception says what leaves it alone, until when and why; empty where nothing does.
	Exception string
}

// Code is that of the most telling reason.
func (f Finding) Code() policy.Code { return f.Reasons[0].Code }

// Telling reports whether somebody who looks for faults is told: not of what is well, nor
// of what nobody asks about, nor of an image that a mirror serves.
func (f Finding) Telling() bool {
	switch f.Status {
	case Pass, Skip:
		return f.Exception != ""
	}
	return f.Code() != policy.Mirrored
}

// Subject is what it is about: the image with its container, or the object.
func (f Finding) Subject(o Object) string {
	switch {
	case f.Image == "":
		return o.Title
	case f.Place == "":
		return f.Image
	}
	return f.Image + " (" + f.Place + ")"
}

// Who is the policy and its rule; empty where there is none.
func (f Finding) Who() string {
	if f.Policy == "" || f.Rule == "" {
		return f.Policy
	}
	return f.Policy + ", rule " + f.Rule
}

// Verb says what it comes to, as in "is denied".
func (f Finding) Verb() string {
	switch f.Status {
	case Deny:
		return "is denied"
	case Unable:
		return "could not be verified"
	case Warn:
		return "is not as it should be, and is not denied"
	case Skip:
		return "is left alone"
	default:
		return "is allowed"
	}
}

// Sentence is the finding in one line: what, what it comes to, and why.
func (f Finding) Sentence(o Object) string {
	text := f.Subject(o) + " " + f.Verb() + ": " + f.Reasons[0].Message
	if who := f.Who(); who != "" {
		text += " (" + who + ")"
	}
	if f.Exception != "" && f.Code() != policy.Excepted && !strings.Contains(text, f.Exception) {
		text += "; but for the exception " + f.Exception
	}
	return text
}

// Details are the lines below a sentence, each "label: value": the nearest misses, what
// to do next, where the object is from.
func (f Finding) Details(o Object) []string {
	var lines []string
	add := func(label, value string) {
		if value != "" {
			lines = append(lines, label+": "+value)
		}
	}
	for i, r := range f.Reasons {
		if i == maxReasons {
			add("more", "quaymaster explain shows all reasons")
			break
		}
		add("why", r.Message+" ["+string(r.Code)+"]")
		add("at", r.Path)
		add("expected", r.Expected)
		add("found", r.Found)
		add("evidence", r.Where)
	}
	add("next", f.Reasons[0].Hint)
	add("exception", f.Exception)
	if f.Image != "" && f.Image != o.Title {
		add("object", o.Title)
	}
	if f.Position != nil {
		add("where", report.Clean(f.Position.String()))
	} else {
		add("where", o.Source)
	}
	add("template", o.Template)
	return lines
}

// maxReasons bounds the reasons in Details. More are the rule for policies that list
// many keys.
const maxReasons = 4
