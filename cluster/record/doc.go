// Package record writes Events and policy conditions to the cluster.
//
// Events are for users (kubectl events), and a condition in a policy's status is for the policy's
// author. Both are best effort: bounded queues with a rate limit never block the caller, and
// dropped items are counted. It follows events.k8s.io/v1 and the conditions of meta/v1.
package record
