// Package difference compares an object of an API server with the manifest that was signed.
//
// Everything in the object must be in the manifest with the same value, and the other way round,
// except for four kinds of fields. Those that the API server itself owns. Those that its defaults
// (Kubernetes 1.37) and its own admission plugins add, with exactly the value that they add: the author
// of an object cannot choose another one. Those that a policy ignores. And the annotations with the
// evidence, which no signature can cover. Values that the API server allocates or that a cluster
// configures (addresses and ports of Services, priorities, classes) are differences, because their
// author could have chosen them.
//
// The package bounds its own work by the sizes of the two objects, which their parsers bound, and the
// number of differences that it reports.
package difference
