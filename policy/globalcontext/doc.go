// Package globalcontext holds the values of GlobalContextEntries.
//
// It compiles documents of kyverno.io/v2, v2beta1 and v2alpha1 (Kyverno 1.19): objects of
// a resource, or the answer of an API, with projections of either. A Store keeps the
// current values, which rules read by globalReference and expressions by
// globalContext.Get. The package opens no connection: its caller watches resources and
// calls APIs outside of requests, and updates the Store.
//
// An unknown value is an *Error with the reason, and never an empty list: an entry that is
// missing, was not read yet, could not be read for longer than MaxOutage, is larger than
// the bounds, or has a projection without value.
package globalcontext
