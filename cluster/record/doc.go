// Package record answers: how does the cluster learn what the gateway did and
// thinks?
//
// Events are for people (kubectl events), a condition in a policy's status is
// for who wrote the policy. Both are best effort: they go through bounded queues
// with a rate limit, never hold up who reports, and what is dropped is counted.
// It follows events.k8s.io/v1 and the conditions of meta/v1.
package record
