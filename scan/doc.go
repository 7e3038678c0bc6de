// Package scan evaluates policies for the objects that exist in a cluster.
//
// A Scanner lists all objects of the kinds that policies match, page by page. It evaluates each
// as if it were created now, without a requesting user, and passes the outcomes to the same sinks
// as admission. It holds no object beyond its page, so its memory is independent of the size of
// the cluster, and an image of many pods is verified once through the cache of the gate. A
// Controller runs rounds at an interval and after changes of the configuration, and continues
// where the previous leader stopped.
//
// Package scan/follow evaluates changes between rounds.
//
// Rules that depend on the requesting user, and rules with background evaluation disabled, are
// left out (policy.Policy.Unscanned). Lists use the Kubernetes API's limit and continue
// parameters, and handle expired lists.
package scan
