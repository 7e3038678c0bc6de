package kyverno

import "github.com/quaymaster/quaymaster/policy"

// Policies is the dialect of policies for package catalog.
type Policies struct{ *Compiler }

// Recognises is the function of that name.
func (Policies) Recognises(apiVersion, kind string) bool { return Recognises(apiVersion, kind) }

// Broken is the function of that name.
func (Policies) Broken(document []byte, source string, why error) *policy.Policy {
	return Broken(document, source, why)
}

// OnlyBackground is the function of that name.
func (Policies) OnlyBackground(document []byte) bool { return OnlyBackground(document) }

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
