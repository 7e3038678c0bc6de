package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// Redirections is the document that "quaymaster mirror -o json" writes;
// docs/mirrors.md describes it.
type Redirections struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"` // RedirectionList
	Items      []Redirection `json:"items"`
}

// Redirection is the target of one reference, with the reason.
type Redirection struct {
	// Written is the reference as given, and Reference its normalised form.
	Written   string   `json:"written"`
	Reference string   `json:"reference"`
	Result    Redirect `json:"result"`
	// Why is the reason for a result without a target; it may be empty.
	Why string `json:"why,omitempty"`
	// Mapping is the entry that matches the reference, as in RegistryMirror/hub[0]; When,
	// Otherwise and Resolve are its settings.
	Mapping   string `json:"mapping,omitempty"`
	When      string `json:"when,omitempty"`
	Otherwise string `json:"otherwise,omitempty"`
	Resolve   string `json:"resolve,omitempty"`
	// Digest is the digest of the tag on the authoritative side, and OtherDigest that on the
	// other side where it differs.
	Digest      image.Digest `json:"digest,omitzero"`
	OtherDigest image.Digest `json:"otherDigest,omitzero"`
	// Target is the exact name at the chosen target.
	Target     string      `json:"target,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	// Evidence are the repositories that are searched for evidence, in order.
	Evidence    []string `json:"evidence,omitempty"`
	PullSecrets []string `json:"pullSecrets,omitempty"`
	// Origins are the sources' names under which the reference is evaluated, where it is inside a
	// target.
	Origins []Origin `json:"origins,omitempty"`
	// Policies is the answer of the policies, where they were evaluated, with Reasons.
	Policies gate.Result     `json:"policies,omitempty"`
	Reasons  []policy.Reason `json:"reasons,omitempty"`
}

// Candidate is a target with its response.
type Candidate struct {
	Attempt
	// Fill: the target caches by tag on demand, so the tag is fetched first.
	Fill bool `json:"fill,omitempty"`
}

// Origin is a source's name of a copy.
type Origin struct {
	Reference string   `json:"reference"`
	Mapping   string   `json:"mapping"`
	Evidence  []string `json:"evidence"`
}

// Redirect is the result for a reference.
type Redirect string

// The results.
const (
	Redirected  Redirect = "redirected" // to Target
	StaysThere  Redirect = "source"     // no target qualifies, and the reference is not redirected
	DeniedThere Redirect = "denied"     // no target qualifies and the mapping denies that, or a policy denies it
	ErrorThere  Redirect = "error"      // could not be verified
	IsCopy      Redirect = "copy"       // the reference is inside a target, and is not redirected
	NotMapped   Redirect = "not-mapped" // no mapping matches the reference
	OnlyListed  Redirect = "listed"     // no registry was queried
)

// Text writes a tree for each reference.
func (r Redirections) Text(w io.Writer, options TreeOptions) error {
	p := page{coloured: options.Color, width: pageWidth(options.Width)}
	for _, one := range r.Items {
		p.tree(one.branch(options.Verbose), "", "")
	}
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write redirections as text: %w", err)
	}
	return nil
}

// JSON writes the document, indented, with terminal control characters as JSON escapes.
func (r Redirections) JSON(w io.Writer) error { return writeJSON(w, "redirections", r) }

// branch renders one reference.
func (r Redirection) branch(verbose bool) *branch {
	b := &branch{text: clean(r.Written) + ": " + r.Result.describe(r.Target)}
	b.sign, b.colour = r.Result.mark()
	b.add("name", clean(r.Reference))
	b.add("because", clean(r.Why))
	b.add("mapping", clean(r.Mapping))
	if r.Mapping != "" {
		b.add("settings", "when: "+clean(r.When)+", otherwise: "+clean(r.Otherwise)+", resolve: "+clean(r.Resolve))
	}
	if !r.Digest.IsZero() {
		b.add("digest", r.Digest.String())
	}
	if !r.OtherDigest.IsZero() {
		b.add("differs", r.OtherDigest.String()+", the digest of the tag at the other registry")
	}
	for _, c := range r.Candidates {
		text := clean(c.Target)
		if c.Fill {
			text += " (filled by tag)"
		}
		if r.Result != OnlyListed {
			text += ": " + c.String()
		}
		if verbose && c.DurationMilliseconds > 0 {
			text += ", " + duration(c.DurationMilliseconds)
		}
		child := b.add("target", text)
		if r.Result != OnlyListed {
			child.sign, child.colour = c.mark()
		}
	}
	b.add("evidence", clean(strings.Join(r.Evidence, ", then ")))
	b.add("secrets", clean(strings.Join(r.PullSecrets, ", ")))
	for _, o := range r.Origins {
		child := b.add("evaluated as", clean(o.Reference)+", by "+clean(o.Mapping))
		child.add("evidence", clean(strings.Join(o.Evidence, ", then ")))
	}
	if r.Policies != "" {
		child := b.add("policies", string(r.Policies))
		grower{}.reasons(child, "", "", r.Reasons)
	}
	return b
}

// describe describes the result for a reference.
func (r Redirect) describe(target string) string {
	switch r {
	case Redirected:
		return "becomes " + clean(target)
	case StaysThere:
		return "not redirected"
	case DeniedThere:
		return "denied"
	case IsCopy:
		return "already names a target"
	case NotMapped:
		return "no mapping matches"
	case OnlyListed:
		return "not queried"
	default:
		return "could not be determined"
	}
}

func (r Redirect) mark() (string, colour) {
	switch r {
	case Redirected:
		return "✓", green
	case DeniedThere:
		return "✗", red
	case ErrorThere:
		return "?", yellow
	default:
		return "-", dim
	}
}

// Findings is the document that "quaymaster mirror --check -o json" writes.
type Findings struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"` // FindingList
	Items      []Finding `json:"items"`
}

// Finding is a problem of a mapping.
type Finding struct {
	// Where is the document and the path of the problem.
	Where   string `json:"where"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Text writes a block for each finding, and their count.
func (f Findings) Text(w io.Writer, options TreeOptions) error {
	p := page{coloured: options.Color, width: pageWidth(options.Width)}
	for _, one := range f.Items {
		b := &branch{sign: "✗", colour: red, text: clean(one.Where)}
		b.add("because", clean(one.Message))
		b.add("next", clean(one.Hint))
		p.tree(b, "", "")
	}
	p.line(p.paint(bold, count(len(f.Items), "finding")))
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write findings as text: %w", err)
	}
	return nil
}

// JSON writes the document, indented.
func (f Findings) JSON(w io.Writer) error { return writeJSON(w, "findings", f) }
