package validating

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Kind is the kind of cluster-wide policies; that of policies of a namespace begins
// with Namespaced.
const Kind = "ValidatingPolicy"

// FieldError is a fault of a document with its path.
type FieldError = field.Error

// Recognises reports whether a document of this apiVersion and kind is a policy of
// this dialect.
func Recognises(apiVersion, kind string) bool { return kyvernocel.IsKind(apiVersion, kind, Kind) }

// Policies is the dialect for package catalog.
type Policies struct{ *Compiler }

// Recognises is the function of that name.
func (Policies) Recognises(apiVersion, kind string) bool { return Recognises(apiVersion, kind) }

// Broken is Compiler.Broken.
func (p Policies) Broken(document []byte, source string, why error) *policy.Policy {
	return p.Compiler.Broken(document, source, why)
}

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every other
// one is honoured or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{
		{"status", "the API server's record of what Kyverno did"},
		{"spec.validations[].reason", "not used by Kyverno's webhook, only by a ValidatingAdmissionPolicy that it makes; an unknown value is refused"},
	}
}
