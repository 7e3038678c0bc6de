// Package gateway runs the components of the gateway.
//
// A Component is a part that works in the background, in every replica or on the leader only. A
// Group holds the components of one process, the conditions under which its endpoints respond, and
// what is closed last; Run drains the endpoints before it ends the components that pending
// requests need. The sub-packages are the components; the command serve composes them.
//
// The form of a component follows Runnable and LeaderElectionRunnable of
// sigs.k8s.io/controller-runtime.
package gateway
