package slsa

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest/predicate"
	"github.com/quaymaster/quaymaster/verify"
)

// Bounds of the declared builders and of the patterns of one requirement: each statement is compared with all.
const (
	MaxBuilders = 64
	maxTerms    = 64
)

// Code is the reason why provenance does not meet terms, a reason code of package policy.
type Code string

// The codes, the farthest from a pass first.
const (
	Malformed     Code = "malformed"       // the predicate is no provenance
	WrongBuilder  Code = "wrong-builder"   // another builder, or a signer that may not speak for it
	LowBuildLevel Code = "low-build-level" // a builder of a lower level
	WrongSource   Code = "wrong-source"    // another repository or reference
)

// Terms are required of provenance; one statement must meet all of them.
type Terms struct {
	// Level is the least build level, 0 to Highest.
	Level int `json:"level,omitempty"`
	// Builders are patterns of builder.id, of which one must match; none: any known builder.
	Builders []string `json:"builders,omitempty"`
	// Source is the required repository and the whole reference; empty parts: any.
	Source Source `json:"source,omitzero"`
}

// IsZero reports whether nothing is required.
func (t Terms) IsZero() bool { return t.Level == 0 && len(t.Builders) == 0 && t.Source == Source{} }

// NamesBuild reports whether the terms name the builder or the source: a level alone is met by every
// user of a known builder.
func (t Terms) NamesBuild() bool { return len(t.Builders) > 0 || t.Source.Repository != "" }

// Miss is the reason why one statement does not meet the terms.
type Miss struct {
	Code                     Code
	Message, Expected, Found string
}

// Build is a verified build.
type Build struct {
	// Builder is builder.id; Name is that of the row.
	Builder, Name string
	Level         int
	// Source is the source of the terms as found, zero if they require none.
	Source Source
}

// Verifier verifies provenance by terms and a table. It is immutable.
type Verifier struct {
	terms    Terms
	builders []verify.Matcher
	signers  []signer
	// operated are the known builders that users run, for the level of declared ones.
	operated []row
}

// signer is an authority and the rows for which it may sign.
type signer struct {
	authority verify.Authority
	rows      []row
}

// New compiles terms, and the declared builders in addition to the known ones.
func New(terms Terms, declared []Builder) (*Verifier, error) {
	if terms.Level < 0 || terms.Level > Highest {
		return nil, fmt.Errorf("build level %d: want 1 to %d", terms.Level, Highest)
	}
	if len(declared) > MaxBuilders || len(terms.Builders) > maxTerms {
		return nil, fmt.Errorf("%d builders and %d patterns exceed the bounds of %d and %d", len(declared), len(terms.Builders), MaxBuilders, maxTerms)
	}
	v := &Verifier{terms: terms}
	for _, text := range terms.Builders {
		m, err := pattern(text)
		if err != nil || text == "" {
			return nil, fmt.Errorf("builder %q: want a URI, or a pattern of URIs", text)
		}
		v.builders = append(v.builders, m)
	}
	keyless := signer{authority: verify.Authority{Name: "known builders", Keyless: &verify.Keyless{}}}
	var errs []error
	for i, b := range slices.Concat(declared, Known()) {
		r, err := compile(b)
		if i < len(declared) {
			err = errors.Join(err, b.Validate())
		}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("builder %q: %w", b.ID, err))
		case b.Issuer != "" && v.mayBe(b):
			keyless.add(r)
		case b.Issuer == "" && len(b.Authorities) == 0:
			v.operated = append(v.operated, r)
		}
		for _, authority := range b.Authorities {
			v.signers = append(v.signers, signer{authority: authority, rows: []row{r}})
		}
	}
	if len(keyless.rows) > 0 {
		v.signers = append(v.signers, keyless)
	}
	return v, errors.Join(errs...)
}

// mayBe reports whether a row may be of a required builder. Without such a row the trusted root of
// identities is not needed.
func (v *Verifier) mayBe(b Builder) bool {
	id, err := pattern(b.ID)
	return len(v.builders) == 0 || err != nil || slices.ContainsFunc(v.terms.Builders, func(text string) bool {
		return id.Match(text) || strings.Contains(text, "*")
	})
}

func (s *signer) add(r row) {
	s.rows = append(s.rows, r)
	s.authority.Keyless.Identities = append(s.authority.Keyless.Identities, verify.Identity{Issuer: verify.Exactly(r.Issuer), Subject: r.subject})
}

// Authorities returns the authorities that may sign the statements, by position.
func (v *Verifier) Authorities() []*verify.Authority {
	list := make([]*verify.Authority, len(v.signers))
	for i := range v.signers {
		list[i] = &v.signers[i].authority
	}
	return list
}

// Verify verifies the terms on one statement that the authority at a position signed.
func (v *Verifier) Verify(by int, fact verify.Fact) (Build, *Miss) {
	if fact.Statement == nil {
		return Build{}, &Miss{Code: Malformed, Message: "there is no statement"}
	}
	p, err := predicate.ParseProvenance(*fact.Statement)
	if err != nil {
		return Build{}, &Miss{Code: Malformed, Message: "the provenance cannot be read: " + err.Error()}
	}
	build, miss := v.builder(v.signers[by].rows, p, fact.Signer)
	switch {
	case miss != nil:
		return Build{}, miss
	case len(v.builders) > 0 && !slices.ContainsFunc(v.builders, func(m verify.Matcher) bool { return m.Match(p.BuilderID) }):
		return Build{}, &Miss{Code: WrongBuilder, Message: "the image was built by another builder", Expected: v.expected(), Found: p.BuilderID}
	case build.Level < v.terms.Level:
		return Build{}, &Miss{
			Code: LowBuildLevel, Message: "the builder has a lower build level than required",
			Expected: fmt.Sprintf("SLSA build level %d", v.terms.Level), Found: fmt.Sprintf("level %d of %s (%s)", build.Level, p.BuilderID, build.Name),
		}
	}
	build.Source, miss = compare(v.terms.Source, p, fact.Signer)
	return build, miss
}

// builder returns the highest row that has the builder and the build type, and for which the signer may sign.
func (v *Verifier) builder(rows []row, p predicate.Provenance, by verify.Signer) (best Build, miss *Miss) {
	miss = &Miss{
		Code: WrongBuilder, Message: "the builder is unknown, or is not one for which this signer may sign",
		Expected: v.expected(), Found: p.BuilderID + ", signed by " + by.String(),
	}
	for i := range rows {
		r := &rows[i]
		if !r.id.Match(p.BuilderID) {
			continue
		}
		ok, why := r.speaks(p.BuilderID, by)
		switch {
		case !ok && best.Level == 0:
			miss.Message = "the signer may not sign for the builder: " + why
		case !ok:
		case !r.hasType(p.BuildType):
			if best.Level == 0 {
				miss.Message, miss.Found = "the build type is not one of the builder's", p.BuildType
			}
		case v.levelOf(r, p) > best.Level:
			best, miss = Build{Builder: p.BuilderID, Name: r.Name, Level: v.levelOf(r, p)}, nil
		}
	}
	return best, miss
}

// levelOf is the level of a row. Of a declared builder without one it is that of the known builder with its
// id and build type. Signed provenance of a builder that the user names has level 1, as has that of a pattern: the
// signer would choose among the known builders that it matches.
func (v *Verifier) levelOf(r *row, p predicate.Provenance) int {
	if r.Level > 0 {
		return r.Level
	}
	level := 1
	if strings.Contains(r.ID, "*") {
		return level
	}
	for i := range v.operated {
		if known := &v.operated[i]; known.id.Match(p.BuilderID) && known.hasType(p.BuildType) {
			level = max(level, known.Level)
		}
	}
	return level
}

// expected names the required builders.
func (v *Verifier) expected() string {
	switch len(v.terms.Builders) {
	case 0:
		return "a known or declared builder, and its signer"
	case 1:
		return v.terms.Builders[0]
	}
	return fmt.Sprintf("one of %q", v.terms.Builders)
}
