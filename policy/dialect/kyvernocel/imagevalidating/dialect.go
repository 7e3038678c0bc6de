package imagevalidating

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// The kinds of policies.
const (
	clusterKind    = "ImageValidatingPolicy"
	namespacedKind = "Namespaced" + clusterKind
)

// Recognises reports whether a document of this apiVersion and kind is a policy of
// this dialect.
func Recognises(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, clusterKind)
}

// RecognisesException reports whether a document of this apiVersion and kind is an
// exception of this dialect.
func RecognisesException(apiVersion, kind string) bool {
	return kyvernocel.IsVersion(apiVersion) && kind == "PolicyException"
}

// Policies is the dialect of policies for package catalog.
type Policies struct{ *Compiler }

// Recognises is the function of that name.
func (Policies) Recognises(apiVersion, kind string) bool { return Recognises(apiVersion, kind) }

// Broken is Compiler.Broken.
func (p Policies) Broken(document []byte, source string, why error) *policy.Policy {
	return p.Compiler.Broken(document, source, why)
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
