// Package cluster reads the state of a Kubernetes cluster on which decisions depend.
//
// It, its children and cmd are the only packages that use client-go. Rarely needed objects are
// looked up and cached for seconds (Lookups); frequently needed ones are watched (Namespaces,
// Roles; policies in cluster/document). Absent, forbidden and unavailable objects are three
// distinct errors everywhere, and none of them is an empty result. Writes of Events and policy
// status use bounded queues that never delay a request. Pods and ConfigMaps are watched only
// where a GlobalContextEntry or a rule on other objects names them, and Secrets never. It follows
// the API of Kubernetes 1.37.
package cluster
