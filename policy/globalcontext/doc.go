// Package globalcontext answers: what does a GlobalContextEntry stand for just
// now?
//
// It compiles documents of kyverno.io/v2, v2beta1 and v2alpha1 (Kyverno 1.19):
// objects of a resource, or the answer of an API, with projections of either. A
// Store keeps the current values, which rules read by globalReference and
// expressions by globalContext.Get. Nothing here opens a connection: whoever
// watches and calls, beside the requests, tells the Store.
//
// A value that is not known is an *Error that says why, and never an empty list:
// an entry that is not there, was not read yet, could not be read for longer than
// MaxOutage, is larger than the bounds, or whose projection has no value.
package globalcontext
