package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// TreeOptions configure the layout of a tree. The zero value is plain, 80 columns wide and
// deterministic.
type TreeOptions struct {
	// Color allows ANSI colours.
	Color bool
	// Width is the width of the page, limited to 40 to 120; 0 means 80.
	Width int
	// Verbose adds costs and durations.
	Verbose bool
}

// Tree writes every step of an outcome: the reference as written and its normalised form, the
// digest, the policies that match and those that do not. For each check it shows the authorities,
// the verified claims, the failures, and the answer.
func Tree(w io.Writer, outcome gate.Outcome, options TreeOptions) error {
	grower := grower{verbose: options.Verbose}
	p := page{coloured: options.Color, width: pageWidth(options.Width)}
	p.tree(grower.outcome(outcome), "", "")
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write verdict as a tree: %w", err)
	}
	return nil
}

// treeLabel is the width of most labels, so that values are aligned.
const treeLabel = 8

// branch is one line of a tree, with its child lines.
type branch struct {
	sign   string
	colour colour
	label  string // dim, before the text
	text   string // cleaned
	below  []*branch
}

// add appends a branch with a label, unless its text is empty.
func (b *branch) add(label, text string) *branch {
	if text == "" {
		return nil
	}
	child := &branch{label: label, text: text}
	b.below = append(b.below, child)
	return child
}

// tree writes a branch after a prefix; below is the prefix of its children.
func (p *page) tree(b *branch, prefix, below string) {
	head, used := "", 0
	if b.sign != "" {
		head, used = p.paint(b.colour, b.sign)+" ", 2
	}
	if b.label != "" {
		label := pad(b.label, treeLabel) + " "
		head, used = head+p.paint(dim, label), used+columns(label)
	}
	hang := below
	if len(b.below) > 0 {
		hang += "│ "
	} else {
		hang += "  "
	}
	for i, line := range wrap(escape(b.text), max(minWidth/2, p.width-columns(below)-max(used, 2))) {
		if i == 0 {
			p.line(p.paint(dim, prefix) + head + line)
			continue
		}
		p.line(p.paint(dim, hang) + strings.Repeat(" ", max(0, used-2)) + line)
	}
	for i, child := range b.below {
		if i == len(b.below)-1 {
			p.tree(child, below+"└─ ", below+"   ")
			continue
		}
		p.tree(child, below+"├─ ", below+"│  ")
	}
}

// grower builds branches of an outcome.
type grower struct {
	verbose bool
	digest  image.Digest // of the current image
	rulesOf []policy.RuleResult
}

func (g grower) outcome(o gate.Outcome) *branch {
	record := NewRecord(o)
	g.rulesOf = o.Rules
	var root *branch
	verdicts := inOrder(o.Verdicts)
	if record.isBare() && len(verdicts) == 1 {
		root = g.verdict(verdicts[0], clean(verdicts[0].Image.Ref.Written()))
	} else {
		root = answered(o.Result, clean(record.Object.title())+": "+string(o.Result))
		for _, v := range verdicts {
			place := Image{Container: v.Image.Container, Role: v.Image.Role}.place()
			root.below = append(root.below, g.verdict(v, place+", "+clean(v.Image.Ref.Written())))
		}
	}
	if record.unmatched {
		root.add("policies", "none matches this document")
	}
	g.rules(root, o.Rules)
	g.reasons(root, "", "", record.Reasons)
	g.reasons(root, "", "", record.Warnings)
	root.add("policy set", clean(o.PolicyHash))
	root.add("trust", clean(o.TrustGeneration))
	root.add("mirrors", clean(o.MirrorHash))
	if g.verbose {
		root.add("cost", record.Cost.String()+", "+duration(record.DurationMilliseconds))
	}
	if record.isBare() {
		root.add("result", string(o.Result))
	}
	return root
}

// answered returns a branch with the mark of an answer.
func answered(answer gate.Result, text string) *branch {
	sign, c := mark(answer)
	return &branch{sign: sign, colour: c, text: text}
}

// verdict grows the evaluation of one image, in the order of its steps.
func (g grower) verdict(v gate.Verdict, title string) *branch {
	g.digest = v.Pinned.Digest()
	b := answered(v.Result, title+": "+string(v.Result))
	at := ""
	if v.Image.Pointer != "" {
		at = " (at " + clean(v.Image.Pointer) + ")"
	}
	b.add("written", clean(v.Image.Ref.Written())+at)
	b.add("name", clean(v.Image.Ref.String()))
	b.add("digest", digestOf(v))
	g.mirror(b, v)
	if len(v.Decisions) == 0 {
		b.add("policies", "none matches this image")
	}
	told := map[policy.Reason]bool{}
	for _, d := range v.Decisions {
		b.below = append(b.below, g.decision(d))
		for _, r := range d.Reasons {
			told[r] = true
		}
	}
	mirror := newMirror(v.Redirect)
	for _, reasons := range [][]policy.Reason{v.Reasons, v.Warnings} {
		g.reasons(b, "", "", advised(slices.DeleteFunc(slices.Clone(reasons), func(r policy.Reason) bool {
			return told[r] || mirror.isTold(r) || len(v.Decisions) == 0 && g.isToldElsewhere(r)
		})))
	}
	if v.Pin && !v.Pinned.IsZero() {
		b.add("pin", clean(v.Pinned.Written()))
	}
	if g.verbose {
		b.add("cost", newCost(v.Cost).String()+", "+duration(milliseconds(v.Duration)))
	}
	return b
}

// isToldElsewhere reports whether another branch already shows a reason of an unmatched image:
// that no policy matches, or why a rule could not be evaluated.
func (g grower) isToldElsewhere(r policy.Reason) bool {
	return r.Code == policy.NotConcerned || r.Code == policy.Unchanged || slices.ContainsFunc(g.rulesOf, func(rule policy.RuleResult) bool {
		return rule.Err != nil && r.Path == rule.Policy.ID()+"/"+rule.Rule || slices.Contains(advised(rule.Ruling.Reasons), r)
	})
}

// digestOf describes the resolved digest and its source.
func digestOf(v gate.Verdict) string {
	switch {
	case v.Pinned.IsZero() && v.Image.Ref.Digest() != (image.Digest{}):
		return v.Image.Ref.Digest().String() + " (as written; not resolved)"
	case v.Pinned.IsZero():
		return "not resolved"
	case !v.Image.Ref.Digest().IsZero():
		return v.Pinned.Digest().String() + " (as written)"
	default:
		return v.Pinned.Digest().String() + " (resolved)"
	}
}

// rules grows the rules without image checks.
func (g grower) rules(b *branch, rules []policy.RuleResult) {
	for _, r := range rules {
		rule := clean(newPolicy(r.Policy).String()) + ", rule " + clean(r.Rule)
		switch {
		case r.Err != nil:
			child := &branch{sign: "?", colour: yellow, text: rule + ": could not be evaluated"}
			child.add("because", clean(r.Err.Error()))
			b.below = append(b.below, child)
		case r.Skip != "" && r.Kind != policy.ImageRule:
			child := &branch{sign: "-", colour: dim, text: rule + ": skipped"}
			child.add("because", clean(r.Skip))
			b.below = append(b.below, child)
		case r.Changed:
			b.below = append(b.below, answered(gate.Allow, rule+": changes the object"))
		case r.OfObject():
			child := answered(answerOf(r.Ruling), rule+": "+string(cmp.Or(r.Ruling.Result, policy.Pass))+", for the object itself")
			g.reasons(child, "", "", advised(r.Ruling.Reasons))
			b.below = append(b.below, child)
		default:
			child := &branch{sign: "-", colour: dim, text: rule + ": does not apply"}
			child.add("because", clean(r.Skip))
			b.below = append(b.below, child)
		}
	}
}

// answerOf is the answer of a ruling that nothing admits.
func answerOf(r policy.Ruling) gate.Result {
	switch {
	case r.Passes():
		return gate.Allow
	case r.Result == policy.Fail:
		return gate.Deny
	}
	return gate.Error
}

// reasons grows reasons, and joins those that differ only in their evidence. It names the path of
// a reason unless that is at, which the parent branch already shows.
func (g grower) reasons(b *branch, entry, at string, reasons []policy.Reason) {
	var last policy.Reason
	var child *branch
	for _, r := range reasons {
		if child == nil || !isSameMiss(r, last) {
			last = r
			child = b.add("because", clean(r.Message)+" ["+clean(string(r.Code))+"]")
			if path := join(entry, r.Path); path != at {
				child.add("at", clean(path))
			}
			child.add("expected", clean(r.Expected))
			child.add("found", clean(r.Found))
			child.add("next", clean(r.Hint))
		}
		child.add(whereLabel(r), clean(r.Where))
	}
}
