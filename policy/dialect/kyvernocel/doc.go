// Package kyvernocel implements the common parts of the policies of policies.kyverno.io.
//
// It reads the shared fields of ImageValidatingPolicy, ValidatingPolicy and MutatingPolicy (v1,
// v1beta1 and v1alpha1, Kyverno 1.19): heads, settings, match conditions, audit annotations, the
// rules generated for pod controllers, and the report of a document that does not compile. It
// supplies the variables of an admission request to expressions. Each dialect is a package of its
// own above it.
package kyvernocel
