// Package rollout has new versions of policies wait until they deny no running workload: which
// version of a policy is in force, the approvals of all replicas in a Secret, the dry run of
// versions that wait, on the leader, and that of the policy endpoint.
package rollout
