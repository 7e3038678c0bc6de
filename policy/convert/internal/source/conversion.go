package source

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
)

// Conversion is the result so far.
type Conversion struct {
	Options
	// Problems are the parts that cannot be converted, in the order of reading.
	Problems []Problem
	// Notes are comments about the whole: content that belongs to no policy.
	Notes []string
	// Policies are the converted policies, in the order of reading.
	Policies []*ivp.Policy
	names    map[string]bool
}

// Options are the caller's permissions.
type Options struct {
	// Files is the folder in which files are looked up that the policy names; nil if
	// none can be read.
	Files fs.FS
	// DropSignedIdentity accepts that the name in a signature is not compared.
	DropSignedIdentity bool
}

// New returns a conversion that has read nothing.
func New(options Options) *Conversion {
	return &Conversion{Options: options, names: map[string]bool{}}
}

// Say keeps a policy under a name of its own.
func (c *Conversion) Say(p *ivp.Policy) {
	for _, one := range p.Images {
		if len(one.Expression) > maxExpression {
			c.Refuse("", fmt.Sprintf("the images of policy %s take an expression of %d bytes to say", p.Name, len(one.Expression)),
				"split the source into fewer rules: each excludes the images of the others")
		}
	}
	p.Name = ivp.Unique(ivp.Label(p.Name), c.names)
	c.Policies = append(c.Policies, p)
}

// Refuse records a part that cannot be converted, and the remedy.
func (c *Conversion) Refuse(path, found, do string) {
	c.Problems = append(c.Problems, Problem{Path: path, Found: found, Do: do})
}

// Note keeps a comment about the whole.
func (c *Conversion) Note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if !slices.Contains(c.Notes, text) {
		c.Notes = append(c.Notes, text)
	}
}

// One returns the only document of a format that has one a file.
func (c *Conversion) One(documents []Document) (Document, bool) {
	if len(documents) != 1 {
		c.Refuse("", fmt.Sprintf("%d documents", len(documents)), "this format has one a file: convert each alone")
		return Document{}, false
	}
	return documents[0], true
}
