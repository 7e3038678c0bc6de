// Package cluster answers: what does the Kubernetes API server know that a
// decision rests on?
//
// It and its children are the only packages, beside cmd, that use client-go.
// What is asked rarely is looked up and kept for seconds (Lookups), what is
// asked all the time is watched (Namespaces, Roles; policies in
// cluster/document). Absent, forbidden and could-not-look are three errors
// everywhere, and none of them is an empty answer. What is written, Events and
// the status of policies, goes through bounded queues that never hold up a
// request. Pods and ConfigMaps are watched only where a GlobalContextEntry or a rule
// about other objects names them, and Secrets never. It follows the API of Kubernetes
// 1.36.
package cluster
