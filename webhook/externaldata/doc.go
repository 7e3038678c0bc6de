// Package externaldata answers: may these images run, and under which names, for a
// Gatekeeper that asks an external data provider?
//
// A Handler is one provider of externaldata.gatekeeper.sh/v1beta1: Verify answers
// a constraint's template, Mutate an Assign whose data source is ValueAtLocation.
// All keys of a request are judged together, by one snapshot, and each has an item
// of its own, in order: a value, or an error. An item's error is a denial or says
// that nobody could look; what becomes of it is the template's or the Assign's to
// say (failurePolicy Fail). systemError is for requests that could not be read.
//
// A key is an image, [namespace]image or [namespace/serviceaccount]image, and says
// nothing else of the object, so that a rule which wants to know more cannot be
// asked and denies what it speaks of. Who may have written the namespace decides
// what it is worth: see Keys.
//
// Gatekeeper remembers answers by their keys, 3 minutes long unless its
// --external-data-provider-response-cache-ttl says otherwise, and does not ask
// again until then, whatever becomes of policies, signatures and tags.
package externaldata
