// Package exception converts PolicyExceptions of kyverno.io (v2, v2beta1; Kyverno 1.19) to those of
// policies.kyverno.io/v1.
//
// An exception names rules; its result names the policies that have them. Whatever narrows the
// exception is carried, as expressions in CEL, or refused with its path as a source.Unsupported error:
// no exception becomes wider. An expression that cannot be evaluated exempts nothing, in both forms.
package exception
