// Package election names the Leases (coordination.k8s.io/v1) of the leader elections.
package election

// The names. A process with admission uses Leader, whatever other roles it has, so processes with
// admission alone and with all roles compete for the same Lease. The other roles have Leases of their
// own: no leader blocks the work of another Deployment. The cleanup always leads by its own, so that
// two Deployments with the role never delete at the same time.
const (
	Leader     = "quaymaster"
	Scan       = "quaymaster-scan-leader"
	Background = "quaymaster-background-leader"
	Cleanup    = "quaymaster-cleanup-leader"
	Native     = "quaymaster-native-leader"
)
