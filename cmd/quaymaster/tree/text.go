package tree

import (
	"strings"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
)

// branch is a line of the tree, with those below it.
type branch struct {
	text  string
	below []branch
}

func (b *branch) add(text string, below ...branch) {
	b.below = append(b.below, branch{text, below})
}

// line makes untrusted text safe for one line of a terminal. Digests and identities stay complete.
func line(text string) string { return report.Escape(strings.Join(strings.Fields(text), " ")) }

func (b *branch) write(to *strings.Builder, first, rest string) {
	to.WriteString(first + line(b.text) + "\n")
	for i := range b.below {
		if i == len(b.below)-1 {
			b.below[i].write(to, rest+"└─ ", rest+"   ")
			continue
		}
		b.below[i].write(to, rest+"├─ ", rest+"│  ")
	}
}

// text is the tree for a terminal.
func (t *Tree) text() string {
	root := branch{text: t.Reference}
	if t.Digest == "" {
		root.add("could not be read: " + strings.Join(t.Errors, "; "))
	} else {
		root.add("digest " + t.Digest)
		for _, p := range t.Platforms {
			root.add(strings.TrimSpace("platform "+p.Platform) + " " + p.Digest)
		}
		for i := range t.Claims {
			root.below = append(root.below, t.Claims[i].branch(t.verified))
		}
		if len(t.Claims) == 0 && len(t.Errors) == 0 {
			root.add("no signature or attestation found")
		}
		for _, text := range t.Malformed {
			root.add("cannot be parsed: " + text)
		}
		for _, text := range t.Errors {
			root.add("could not be read or verified: " + text)
		}
	}
	var out strings.Builder
	root.write(&out, "", "")
	return out.String()
}

func (c *Claim) branch(verified bool) branch {
	title := c.Type
	if c.PredicateType != "" {
		title += " " + c.PredicateType
	}
	if c.Format != "" {
		title += " (" + c.Format + ")"
	}
	b := branch{text: title}
	if c.Digest != "" {
		b.add("digest " + c.Digest)
	}
	at := c.Repository
	if c.Manifest != "" {
		at += "@" + c.Manifest
	}
	b.add("in " + at)
	switch {
	case !verified && c.Unreadable != "":
		b.add("signer unknown: " + c.Unreadable)
	case !verified:
		b.add("signer claimed, not verified: " + c.claimed())
	case len(c.VerifiesFor) > 0:
		for _, t := range c.VerifiesFor {
			b.add("verifies for: policy "+t.Policy+", attestor "+t.Attestor, branch{text: "signer " + name(t.Signer)})
		}
	default:
		for _, reason := range append(c.Unverified, c.Unreadable) {
			if reason != "" {
				b.add("verifies for nothing: " + reason)
			}
		}
	}
	return b
}

// claimed is the signer that the claim names.
func (c *Claim) claimed() string {
	switch {
	case c.Claimed != nil:
		return name(*c.Claimed)
	case c.Hint != "":
		return "a key with the hint " + c.Hint
	}
	return "a key, which the signature does not name"
}

// name is the complete name of a signer.
func name(s verify.Signer) string {
	switch {
	case s.Subject != "" && s.Issuer != "":
		return s.Subject + ", issuer " + s.Issuer
	case s.Subject != "":
		return s.Subject
	}
	return "key " + s.KeyFingerprint
}
