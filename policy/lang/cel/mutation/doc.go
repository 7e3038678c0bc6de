// Package mutation makes the changes that CEL expressions describe: operations of RFC 6902, and
// configurations that are merged as server-side apply merges (KEP 3962, Kubernetes 1.37).
// Objects are never modified: changed parts are copied, the rest is shared.
package mutation
