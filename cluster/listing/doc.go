// Package listing lists the objects of a cluster, of any kind.
//
// A Lister reads them for package scan, page by page, with a client that has its own rate limit.
// It stores none. A page that exceeds the client's limit is requested again with fewer objects.
// It follows the API of Kubernetes 1.37: discovery, limit and continue, and the continue token of
// 410 Gone.
package listing
