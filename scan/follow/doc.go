// Package follow evaluates objects that changed since a scan listed them.
//
// A Follower watches the kinds that rounds of package scan list, from the resourceVersion of the
// list on, and evaluates each created or changed object within seconds, including objects that
// bypassed the webhooks. It receives only metadata, stores no object, and reads an object when it
// evaluates it. For kinds with a generation, a change of the status alone is ignored. The queue
// is bounded: a round lists a kind again if it has more changes than can be read individually.
//
// Watches use the Kubernetes API's resourceVersion, bookmarks and 410 Gone.
package follow
