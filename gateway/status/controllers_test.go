package status

import (
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// TestControllers: a policy without a rule for admission is ready while a process leads that
// may run it.
func TestControllers(t *testing.T) {
	lease := func(name, holder string, age time.Duration) *coordination.Lease {
		seconds, renewed := int32(12), metav1.NewMicroTime(time.Now().Add(-age))
		return &coordination.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "quaymaster", Name: name},
			Spec:       coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed},
		}
	}
	for _, row := range []struct {
		reason string
		own    bool
		lease  *coordination.Lease
		want   string
	}{
		{"this process has the role", true, nil, "True Active"},
		{"no other process leads", false, nil, "Unknown ControllerNotRunning"},
		{"a controller leads", false, lease("scan", "x", 0), "True Active"},
		{"one of background alone", false, lease("background", "x", 10*time.Second), "True Active"},
		{"it ended long ago", false, lease("scan", "x", time.Minute), "Unknown ControllerNotRunning"},
		{"it gave the lead back", false, lease("scan", "", 0), "Unknown ControllerNotRunning"},
		{"the Lease of admission", false, lease("admission", "x", 0), "Unknown ControllerNotRunning"},
	} {
		client := fake.NewClientset()
		if row.lease != nil {
			client = fake.NewClientset(row.lease)
		}
		c := &Controllers{Own: row.own, Leases: client.CoordinationV1(), Namespace: "quaymaster", Names: []string{"scan", "background"}}
		c.run.Store(c.look(t.Context()))
		entry := catalog.Entry{State: catalog.Ours, Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "a"}}
		got, settled := Reporter{Controllers: c}.condition(entry, Object{})
		if text := string(got.Status) + " " + got.Reason; text != row.want || !settled {
			t.Errorf("%s: %s, settled %t", row.reason, text, settled)
		}
	}
}
