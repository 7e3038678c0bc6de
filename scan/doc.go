// Package scan answers: what would the policies say of what runs already?
//
// A Scanner looks at all objects of the kinds that policies speak of, page by page, puts
// each to the gate as if it came now and nobody asked for it, and hands the outcomes to
// the same sinks as admission does. It keeps no object beyond its page, so that its
// memory does not grow with the cluster, and an image of many pods is proved once: the
// gate remembers. A Controller makes rounds, at an interval and when what is decided by
// changes, and goes on where the last leader was.
//
// Package scan/follow finds beside the rounds what changes between them.
//
// Rules that ask who asks, and those whose author does not want it, are left out
// (policy.Policy.Unscanned). Lists follow the Kubernetes API's limit and continue,
// those that are too old included.
package scan
