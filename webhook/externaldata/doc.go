// Package externaldata implements external data providers for Gatekeeper.
//
// A Handler is one provider of externaldata.gatekeeper.sh/v1beta1. Verify serves a constraint's
// template; Mutate serves an Assign with the data source ValueAtLocation. All keys of a request are
// evaluated together, against one snapshot. Each has its own item, in order, with a value or an
// error. An item's error is a denial or a failed verification. The template or the Assign decides
// its effect (failurePolicy Fail). systemError reports requests that could not be read.
//
// A key is an image, [namespace]image or [namespace/serviceaccount]image. It contains nothing else
// of the object, so a rule that needs more cannot be evaluated, and denies the images that it
// matches. The trust in the namespace depends on its possible writers: see Keys.
//
// Gatekeeper caches responses by key, for 3 minutes unless its flag
// --external-data-provider-response-cache-ttl changes that. Changes of policies, signatures and
// tags take effect after that time.
package externaldata
