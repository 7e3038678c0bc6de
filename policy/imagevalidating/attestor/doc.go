// Package attestor answers: whom does an ImageValidatingPolicy believe, and on
// what terms?
//
// It turns spec.attestors and spec.attestations of Kyverno's image policies
// (policies.kyverno.io v1, v1beta1 and v1alpha1, whose types are the same ones)
// into authorities of package verify, the places where evidence is kept, and the
// types of statements. What a document says and an authority cannot carry is an
// error with its path, when the document is read.
//
// Values may be expressions. They are compiled with the document and evaluated
// when the policy is asked: one that fails, or says nothing that can be used, is an
// error, which is never an attestor that is left out. Equal values make the same
// authorities, by pointer, so that what is asked of them is asked once.
//
// A trusted root that is in a TUF repository is read beside requests, by whoever
// keeps Repositories up to date; nothing here opens a connection.
package attestor
