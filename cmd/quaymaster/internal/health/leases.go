package health

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
)

// leases reads the leader elections, the clocks of the processes that wrote them, and the replicas that
// have a Lease.
func (r Reader) leases(ctx context.Context) (Leaders, []ReplicaClock, []Replica) {
	leaders, clocks := Leaders{Items: []Leader{}}, []ReplicaClock{}
	list, err := r.Client.Leases.Leases(r.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		leaders.Unread = unreadOf(err, "list", "leases.coordination.k8s.io", r.Namespace)
		return leaders, clocks, nil
	}
	elections := []string{election.Leader, election.Scan, election.Background, election.Cleanup, election.Native}
	var members []Replica
	for i := range list.Items {
		one := &list.Items[i]
		isReplica := one.Labels[lease.ComponentLabel] == lease.ReplicaComponent
		if !isReplica && !slices.Contains(elections, one.Name) {
			continue
		}
		leader := leaderOf(one)
		if isReplica {
			members = append(members, Replica{Name: leader.Holder, State: UnknownState, Metrics: Unread{
				Unknown: leader.Holder + " is known by its Lease alone, and not by a pod",
				Fix:     "read /metrics and /readyz at the plain address of the process (listen.plain)",
			}})
		} else {
			leaders.Items = append(leaders.Items, leader)
		}
		clocks = append(clocks, clockOf(one, leader)...)
	}
	slices.SortFunc(clocks, func(a, b ReplicaClock) int { return cmp.Compare(a.Name, b.Name) })
	clocks = slices.CompactFunc(clocks, func(a, b ReplicaClock) bool { return a.Name == b.Name })
	return leaders, clocks, members
}

func leaderOf(l *coordination.Lease) Leader {
	found := Leader{Lease: l.Name}
	if l.Spec.HolderIdentity != nil {
		found.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseDurationSeconds != nil {
		found.Duration = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	if at := written(l); !at.IsZero() {
		found.Renewed = at
	} else if l.Spec.RenewTime != nil {
		found.Renewed = l.Spec.RenewTime.UTC()
	}
	return found
}

// written is when an object was last written, by the clock of the API server; zero if that is unknown.
func written(l *coordination.Lease) time.Time {
	var last time.Time
	for _, f := range l.ManagedFields {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.UTC()
		}
	}
	return last
}

// clockOf compares the time of a renewal, which is the holder's, with that of its write, which is the API
// server's. The latter has whole seconds: the middle of them is used.
func clockOf(l *coordination.Lease, of Leader) []ReplicaClock {
	at := written(l)
	if at.IsZero() || l.Spec.RenewTime == nil || of.Holder == "" {
		return nil
	}
	return []ReplicaClock{{Name: of.Holder, AheadSeconds: seconds(l.Spec.RenewTime.Sub(at.Add(time.Second / 2)))}}
}

// expectLeases adds the leader elections without a Lease: one for each set of roles.
func (s *State) expectLeases() {
	if s.Leaders.Unknown != "" {
		return
	}
	wanted := []string{}
	for _, d := range s.Replicas.Deployments {
		roles := d.roles
		if roles == nil {
			roles = s.Settings.Value.Roles
		}
		c := config.Configuration{Roles: roles}
		wanted = append(wanted, c.Lease())
		led := slices.ContainsFunc(s.Leaders.Items, func(l Leader) bool { return l.Lease == election.Cleanup })
		if led && c.Has(config.RoleCleanup) {
			wanted = append(wanted, election.Cleanup) // next to that of the process
		}
	}
	if len(wanted) == 0 {
		wanted = append(wanted, election.Leader)
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(s.Leaders.Items, func(l Leader) bool { return l.Lease == name }) {
			s.Leaders.Items = append(s.Leaders.Items, Leader{Lease: name})
		}
	}
	// The Lease of an earlier set of roles stays without a holder.
	s.Leaders.Items = slices.DeleteFunc(s.Leaders.Items, func(l Leader) bool { return !slices.Contains(wanted, l.Lease) })
	slices.SortFunc(s.Leaders.Items, func(a, b Leader) int { return strings.Compare(a.Lease, b.Lease) })
}
