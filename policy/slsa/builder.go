package slsa

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/quaymaster/quaymaster/verify"
)

// Highest is the highest level of the build track of SLSA 1.2.
const Highest = 3

// maxPattern bounds a pattern, in bytes: builder ids are URLs of workflows.
const maxPattern = 1 << 10

// Builder is a row of the table of builders. ID, Subject and BuildTypes are patterns: * matches any run
// of characters but / and @, and ** any run.
type Builder struct {
	// Name is for messages and documentation.
	Name string
	// ID matches builder.id.
	ID string
	// Level is the build level, 1 to Highest. Zero, of a declared builder alone: that of a known builder
	// without an issuer which has the id and the build type, else 1; of a pattern 1.
	Level int
	// BuildTypes match buildType; none: any.
	BuildTypes []string

	// Issuer is the OpenID Connect issuer of the identity that signs, as an exact text; empty where
	// Authorities sign, or where users declare the builder with its signer.
	Issuer string
	// Subject matches the identity's subject; empty: the subject is builder.id.
	Subject string
	// Runner is the required runner environment of the certificate; empty: any.
	Runner string
	// Project: builder.id is a runner of the project in the certificate.
	Project bool
	// Release: builder.id ends with the tag of a release, as in refs/tags/v1.2.3.
	Release bool
	// Authorities are signers that a user declares for the builder.
	Authorities []verify.Authority

	// Source is the publisher's documentation of the level; empty for a declared builder.
	Source string
}

// Validate refuses a declared builder that has no signer, or patterns that match everything.
func (b Builder) Validate() error {
	var errs []error
	if b.ID == "" || strings.Trim(b.ID, "*") == "" {
		errs = append(errs, fmt.Errorf("id %q: want a URI, or a pattern of URIs", b.ID))
	}
	if b.Level < 0 || b.Level > Highest {
		errs = append(errs, fmt.Errorf("level %d: want 1 to %d", b.Level, Highest))
	}
	if (b.Issuer == "") == (len(b.Authorities) == 0) {
		errs = append(errs, errors.New("want either the issuer or a key of the signer: builder.id alone is a text that any signer can write"))
	}
	if b.Issuer == "" && b.Subject != "" {
		errs = append(errs, errors.New("subject has no effect without issuer"))
	}
	if b.Subject != "" && strings.Trim(b.Subject, "*") == "" {
		errs = append(errs, fmt.Errorf("subject %q matches every identity of the issuer", b.Subject))
	}
	for _, pattern := range append([]string{b.ID, b.Subject}, b.BuildTypes...) {
		if len(pattern) > maxPattern {
			errs = append(errs, fmt.Errorf("a pattern of %d bytes exceeds the bound of %d", len(pattern), maxPattern))
		}
	}
	return errors.Join(errs...)
}

// pattern compiles a pattern. It matches the whole text.
func pattern(text string) (verify.Matcher, error) {
	if !strings.Contains(text, "*") {
		return verify.Exactly(text), nil
	}
	var expression strings.Builder
	for text != "" {
		plain, rest, starred := strings.Cut(text, "*")
		expression.WriteString(regexp.QuoteMeta(plain))
		switch deep := strings.TrimPrefix(rest, "*"); {
		case !starred:
		case deep != rest:
			expression.WriteString(".*")
			rest = deep
		default:
			expression.WriteString("[^/@]*")
		}
		text = rest
	}
	return verify.Expression(expression.String())
}

// row is a compiled Builder.
type row struct {
	Builder
	id, subject verify.Matcher
	buildTypes  []verify.Matcher
}

func compile(b Builder) (r row, err error) {
	r.Builder = b
	r.id, err = pattern(b.ID)
	if err != nil {
		return r, fmt.Errorf("id: %w", err)
	}
	subject := b.Subject
	if subject == "" {
		subject = b.ID
	}
	r.subject, err = pattern(subject)
	if err != nil {
		return r, fmt.Errorf("subject: %w", err)
	}
	for _, text := range b.BuildTypes {
		m, err := pattern(text)
		if err != nil {
			return r, fmt.Errorf("build type: %w", err)
		}
		r.buildTypes = append(r.buildTypes, m)
	}
	return r, nil
}

// release is the end of a builder id of a released workflow.
var release = regexp.MustCompile(`@refs/tags/v[0-9]+\.[0-9]+\.[0-9]+$`)

// speaks reports whether the signer may write provenance of a builder id: the id alone is a text that
// any signer can write. why names the term that failed, for a row with this id.
func (r *row) speaks(id string, signer verify.Signer) (ok bool, why string) {
	switch source := signer.Extensions["sourceRepositoryURI"]; {
	case r.Release && !release.MatchString(id):
		return false, "the builder is not at the tag of a release"
	case r.Issuer == "": // its own authorities verified the signature
		return true, ""
	case signer.Issuer != r.Issuer || !r.subject.Match(signer.Subject):
		return false, "the identity is another"
	case r.Subject == "" && signer.Subject != id:
		return false, "the builder is not the identity that signed"
	case r.Runner != "" && signer.Extensions["runnerEnvironment"] != r.Runner:
		return false, "the certificate's runner environment is " + quoted(signer.Extensions["runnerEnvironment"]) + ", not " + r.Runner
	case r.Project && (source == "" || !strings.HasPrefix(id, source+"/-/runners/")):
		return false, "the builder is not a runner of the project that signed, " + quoted(source)
	}
	return true, ""
}

func quoted(text string) string {
	if text == "" {
		return "not given"
	}
	return text
}

func (r *row) hasType(buildType string) bool {
	for _, m := range r.buildTypes {
		if m.Match(buildType) {
			return true
		}
	}
	return len(r.buildTypes) == 0
}
