package report

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/policy"
)

func newMirror(r *gate.Redirect) *Mirror {
	if r == nil {
		return nil
	}
	return &Mirror{
		Name: r.Mirror, Target: r.Target.String(), Attempts: NewAttempts(r.Attempts), Why: r.Why,
		OtherDigest: r.Other, PullSecrets: slices.Clone(r.PullSecrets),
	}
}

// NewAttempts records the responses of targets, in order.
func NewAttempts(attempts []redirect.Attempt) []Attempt {
	recorded := make([]Attempt, len(attempts))
	for i, a := range attempts {
		recorded[i] = Attempt{
			Target: a.Target.String(), State: a.State, TagDigest: a.Tag, DurationMilliseconds: milliseconds(a.Took),
		}
		if a.Err != nil {
			recorded[i].Error = a.Err.Error()
		}
	}
	return recorded
}

// judgedAs returns the source's name that a check applies to, where the object names a copy.
func judgedAs(c *policy.Check) string {
	if c.Image.Copy.IsZero() {
		return ""
	}
	return c.Image.Ref.String()
}

// String describes the redirection of the image in one line that is safe for a terminal.
func (m Mirror) String() string {
	if m.Target == "" {
		return "not redirected (" + clean(m.Name) + ")"
	}
	return "redirected to " + clean(m.Target) + " by " + clean(m.Name)
}

// String describes the response of a target in one line that is safe for a terminal.
func (a Attempt) String() string {
	text := clean(string(a.State))
	switch a.State {
	case redirect.Missing, redirect.Differs:
		text = "does not have the digest"
	case redirect.Failed:
		text = "could not be queried"
	case redirect.Resting:
		text = "did not answer recently, and was not queried"
	case redirect.NotAsked:
		text = "not queried"
	}
	if !a.TagDigest.IsZero() {
		text += "; its tag resolves to " + a.TagDigest.String()
	}
	if a.Error != "" && a.State != redirect.Missing && a.State != redirect.Differs { // the line already names those states
		text += ": " + clean(a.Error)
	}
	return text
}

// mark returns the sign and the colour of a target's response.
func (a Attempt) mark() (string, colour) {
	switch a.State {
	case redirect.Chosen:
		return "✓", green
	case redirect.Missing, redirect.Differs:
		return "✗", red
	case redirect.NotAsked:
		return "-", dim
	default:
		return "?", yellow
	}
}

// isTold reports whether the line of a mirror already contains a reason.
func (m *Mirror) isTold(r policy.Reason) bool {
	return m != nil && (r.Code == policy.Mirrored || r.Code == policy.NotMirrored || r.Code == policy.MirrorDiffers && !m.OtherDigest.IsZero())
}

// mirror writes the target of the redirection, and the responses of the other targets.
func (t *text) mirror(v Image) {
	m := v.Mirror
	if m == nil {
		return
	}
	t.detail(dim, "mirror", m.String())
	t.detail(dim, "because", clean(m.Why))
	for _, a := range m.Attempts {
		if t.options.Verbose || a.State != redirect.Chosen && a.State != redirect.NotAsked {
			t.detail(dim, "target", clean(a.Target)+": "+a.String())
		}
	}
	if !m.OtherDigest.IsZero() {
		t.detail(yellow, "differs", "the tag resolves to "+v.Digest.String()+", and at the other registry to "+m.OtherDigest.String())
	}
	if t.options.Verbose && len(m.PullSecrets) > 0 {
		t.detail(dim, "secrets", clean(strings.Join(m.PullSecrets, ", ")))
	}
}

// mirror grows the redirection of an image.
func (g grower) mirror(b *branch, v gate.Verdict) {
	m := newMirror(v.Redirect)
	if m == nil {
		return
	}
	child := b.add("mirror", m.String())
	child.add("because", clean(m.Why))
	for _, a := range m.Attempts {
		text := clean(a.Target) + ": " + a.String()
		if g.verbose {
			text += ", " + duration(a.DurationMilliseconds)
		}
		attempt := child.add("target", text)
		attempt.sign, attempt.colour = a.mark()
	}
	if !m.OtherDigest.IsZero() {
		child.add("digest", v.Pinned.Digest().String())
		child.add("differs", m.OtherDigest.String()+", the digest of the tag at the other registry")
	}
	for _, secret := range m.PullSecrets {
		child.add("secret", clean(secret))
	}
}
