// Package record writes Events and the status of policies, mirrors and global context entries to the
// cluster.
//
// Events are for users (kubectl events), and a condition in a status is for the object's author.
// Events are best effort: a bounded queue with a rate limit never blocks the caller, and dropped
// ones are counted. A Reporter writes the desired status of all objects of a kind in rounds, with
// a rate limit, and repeats failed writes. It follows events.k8s.io/v1 and the conditions of meta/v1.
package record
