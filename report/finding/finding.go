package finding

import (
	"cmp"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// Status is the status of a finding.
type Status string

// The statuses.
const (
	// Skip: no rule matched, or an exception exempts the image or object.
	Skip Status = "skip"
	Pass Status = "pass"
	// Note is information, not a failure.
	Note Status = "note"
	// Warn is a failure that does not deny.
	Warn Status = "warn"
	// Error: the image could not be verified, and is not admitted.
	Error Status = "error"
	Deny  Status = "deny"
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
	default: // an unknown status is the worst
		return 4
	}
}

// Compare orders statuses, the worst first.
func Compare(a, b Status) int { return cmp.Compare(weight(b), weight(a)) }

func statusOf(r gate.Result) Status {
	switch r {
	case gate.Allow:
		return Pass
	case gate.Unchecked:
		return Skip
	case gate.Deny:
		return Deny
	default:
		return Error
	}
}

// Run is the result of a command. Its texts are safe for one line.
type Run struct {
	Objects []Object
	Summary report.Summary
	// Error is the reason why there are no decisions; empty otherwise.
	Error string
}

// Object is one object of a run.
type Object struct {
	// Title is kind, namespace and name, or the image for a command that names only an image.
	Title string
	// Source is the file of the object, and Template the template of a rendered object; both may
	// be empty.
	Source, Template string
	// Position is the object's first line; nil if unknown.
	Position *workload.Position
	Result   gate.Result
	// Images are the object's images, in its order.
	Images []Image
	// Findings are never empty. Those of images come first, in their order.
	Findings []Finding
}

// Image is one image of an object, with the answer about it.
type Image struct {
	// Place is the image's container, as in "db (init)".
	Place, Written string
	// Digest is the short digest; empty where there is none.
	Digest   string
	Result   gate.Result
	Position *workload.Position
}

// Finding is the result of one rule for one image, or for the object itself.
type Finding struct {
	Status Status
	// Image is the image and Place its container; both are empty for the object.
	Image, Place string
	// Repository is the image's repository, and Pointer the image's position in the object (RFC
	// 6901).
	Repository, Pointer string
	// Position is the line of the image or the object; nil if unknown.
	Position *workload.Position
	// Policy and Rule are the rule of the finding; empty where it belongs to no single rule.
	Policy, Rule string
	// Reasons are never empty. The most relevant comes first, and each has a hint.
	Reasons []policy.Reason
	// Exception names the exception with its expiry and reason; empty where there is none.
	Exception string
}

// Code is the code of the most relevant reason.
func (f Finding) Code() policy.Code { return f.Reasons[0].Code }

// Telling reports whether the finding is a problem or applies an exception. Other passes and
// skips, and images that a mirror serves, are left out of reports.
func (f Finding) Telling() bool {
	switch f.Status {
	case Pass, Skip:
		return f.Exception != ""
	}
	return f.Code() != policy.Mirrored
}

// Subject is the image with its container, or the object.
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

// Verb is the predicate of the sentence, as in "is denied".
func (f Finding) Verb() string {
	switch f.Status {
	case Deny:
		return "is denied"
	case Error:
		return "could not be verified"
	case Warn:
		return "is not as it should be, and is not denied"
	case Skip:
		return "is left alone"
	default:
		return "is allowed"
	}
}

// Sentence is the finding in one line: subject, status and reason.
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

// Details are the lines below a sentence, each "label: value": the nearest misses, the hint, and
// the origin of the object.
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

// maxReasons bounds the reasons in Details. Policies with many keys exceed it regularly.
const maxReasons = 4
