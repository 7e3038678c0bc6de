package status

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// deleting is a rule that deletes nothing.
type deleting struct{}

func (deleting) Name() string                    { return "old" }
func (deleting) Targets() []policy.Target        { return nil }
func (deleting) Labels() string                  { return "" }
func (deleting) Propagation() policy.Propagation { return "" }
func (deleting) Next(time.Time) time.Time        { return time.Time{} }
func (deleting) Decide(context.Context, policy.Case) policy.DeletionDecision {
	return policy.DeletionDecision{}
}

// TestDeletions: a policy that deletes objects is ready while a process deletes them and may do so.
func TestDeletions(t *testing.T) {
	entry := catalog.Entry{State: catalog.Ours, Policy: &policy.Policy{
		Kind: "ClusterCleanupPolicy", Name: "old", ObjectRules: policy.ObjectRules{Deletions: []policy.Deletion{deleting{}}},
	}}
	other := catalog.Entry{State: catalog.Ours, Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "a"}}
	for _, row := range []struct {
		reason  string
		entry   catalog.Entry
		runs    bool
		lacking map[string]string
		err     error
		want    string
		settled bool
	}{
		{"it may delete", entry, true, nil, nil, "True Active", true},
		{"it may not", entry, true, map[string]string{"ClusterCleanupPolicy/old": "delete on pods"}, nil, "False PermissionMissing", true},
		{"another may not", entry, true, map[string]string{"ClusterCleanupPolicy/other": "delete on pods"}, nil, "True Active", true},
		{"nothing leads", entry, false, nil, nil, "Unknown ControllerNotRunning", true},
		{"the permissions are unknown", entry, true, nil, errors.New("no answer"), "Unknown ControllerNotRunning", false},
		{"a policy that deletes nothing", other, false, map[string]string{"ClusterPolicy/a": "x"}, errors.New("no answer"), "True Active", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			changes := 0
			d := &Deletions{
				Controllers: &Controllers{Own: row.runs, Leases: fake.NewClientset().CoordinationV1(), Namespace: "quaymaster"},
				Load:        func(context.Context) (map[string]string, error) { return row.lacking, row.err },
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*permissionsInterval)
			defer cancel()
			d.Follow(ctx, func() { changes++ })
			if want := map[bool]int{true: 1, false: 0}[row.err == nil]; changes != want {
				t.Errorf("%s: %d changes, want %d", row.reason, changes, want)
			}
			got, settled := Reporter{Deletions: d}.condition(row.entry, Object{})
			if text := string(got.Status) + " " + got.Reason; text != row.want || settled != row.settled {
				t.Errorf("%s: %s, settled %t; want %s, %t", row.reason, text, settled, row.want, row.settled)
			}
			if got.Reason == reasonPermissionMissing && !strings.Contains(got.Message, "delete on pods") {
				t.Errorf("%s: %s", row.reason, got.Message)
			}
		})
	}
}
