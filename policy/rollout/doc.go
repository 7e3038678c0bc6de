// Package rollout selects the active version of a policy during a staged rollout.
//
// A newer version stays pending until its impact on running workloads is analyzed.
// Approvals hold the last approved version of each policy. A version that denies and is
// not approved is held: the approved version stays active, and a new policy only audits.
// So a change is delayed, but enforcement never lapses. A policy that is created long
// after the deletion of one of its name is new. An annotation in the policy (Annotation)
// accepts a version at once; it requires write access to the policy.
//
// The package has no side effects: package scan/dryrun does the dry run, and the gateway
// stores the Approvals.
package rollout
