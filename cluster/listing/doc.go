// Package listing answers: which objects are there, of any kind?
//
// A Lister reads them for package scan, page by page, with a client whose rate limit is
// its own. It keeps none. A page that is larger than the client reads is asked for again
// with fewer objects. It follows the API of Kubernetes 1.36: discovery, limit and
// continue, and the token that comes with 410 Gone.
package listing
