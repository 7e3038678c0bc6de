package imagevalidating

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Kind is the kind of cluster-wide policies; that of policies of a namespace begins
// with Namespaced.
const Kind = "ImageValidatingPolicy"

// RecognisesException reports whether a document of this apiVersion and kind is an
// exception of this dialect.
func RecognisesException(apiVersion, kind string) bool {
	return kyvernocel.IsVersion(apiVersion) && kind == "PolicyException"
}

// Exceptions is the dialect of exceptions for package catalog.
type Exceptions struct{ Compiler *Compiler }

// Recognises is RecognisesException.
func (Exceptions) Recognises(apiVersion, kind string) bool {
	return RecognisesException(apiVersion, kind)
}

// Compile is Compiler.CompileException.
func (e Exceptions) Compile(document []byte, source string) (*policy.Exception, error) {
	return e.Compiler.CompileException(document, source)
}

// Ignored returns the fields that are accepted and mean nothing here. Every other
// one is honoured or refused.
func Ignored() []kyvernocel.IgnoredField {
	return []kyvernocel.IgnoredField{
		{Path: "status", Reason: "the API server's record of what Kyverno did"},
		{Path: "spec.validations[].reason", Reason: "not used by Kyverno; an unknown value is refused"},
	}
}
