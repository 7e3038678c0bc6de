package lease_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/lease"
)

// leases is a fake that does not support streaming lists.
type leases struct{ coordination.LeasesGetter }

func (leases) IsWatchListSemanticsUnSupported() bool { return true }

// wait lets the bubble's clock run.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

type running struct {
	leader *lease.Leader
	leads  atomic.Int32 // how often it began
	stop   func()
}

func lead(t *testing.T, client *fake.Clientset, identity string, work func(context.Context)) *running {
	t.Helper()
	l, err := lease.NewLeader(lease.LeaderOptions{Client: client.CoordinationV1(), Namespace: "gate", Name: "leader", Identity: identity})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{leader: l}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := l.Run(ctx, func(ctx context.Context) { r.leads.Add(1); work(ctx) }); err != nil {
			t.Error(err)
		}
	}()
	r.stop = func() { cancel(); <-done }
	return r
}

func idle(ctx context.Context) { <-ctx.Done() }

func TestOneLeadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a := lead(t, client, "a", idle)
		wait(time.Second)
		b := lead(t, client, "b", idle)
		wait(time.Minute)
		if !a.leader.Leads() || b.leader.Leads() || a.leads.Load() != 1 || b.leads.Load() != 0 {
			t.Fatalf("a leads %t, b leads %t", a.leader.Leads(), b.leader.Leads())
		}
		if a.leader.Holder() != "a" || b.leader.Holder() != "a" {
			t.Errorf("a sees %q lead, and b %q", a.leader.Holder(), b.leader.Holder())
		}
		a.stop()
		if a.leader.Leads() {
			t.Error("a leads after its end")
		}
		wait(5 * time.Second) // less than the lease: it was given back
		if !b.leader.Leads() {
			t.Error("b does not lead although the lead was given back")
		}
		if b.leader.Holder() != "b" {
			t.Errorf("b sees %q lead", b.leader.Holder())
		}
		b.stop()
	})
}

func TestLeadIsGivenBackOnlyAfterTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		release := make(chan struct{})
		a := lead(t, client, "a", func(context.Context) { <-release })
		wait(time.Second)
		b := lead(t, client, "b", idle)
		stopped := make(chan struct{})
		go func() { defer close(stopped); a.stop() }()
		wait(time.Minute)
		if b.leads.Load() != 0 {
			t.Error("b leads while a still works")
		}
		close(release)
		<-stopped
		wait(5 * time.Second)
		if b.leads.Load() != 1 {
			t.Error("b does not lead after a's work")
		}
		b.stop()
	})
}

func TestLeadIsLostWithTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var down atomic.Bool
		client.PrependReactor("*", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("connection refused")
		})
		a := lead(t, client, "a", idle)
		wait(time.Second)
		if !a.leader.Leads() {
			t.Fatal("a does not lead")
		}
		down.Store(true)
		wait(12 * time.Second)
		if a.leader.Leads() {
			t.Error("a leads although another may by now")
		}
		down.Store(false)
		wait(30 * time.Second)
		if !a.leader.Leads() || a.leads.Load() != 2 {
			t.Errorf("a leads %t, for the %d. time; want it to lead again", a.leader.Leads(), a.leads.Load())
		}
		a.stop()
	})
}

func member(t *testing.T, client *fake.Clientset, id string) (*lease.Members, func()) {
	t.Helper()
	m, err := lease.NewMembers(lease.MembersOptions{
		Client: leases{client.CoordinationV1()}, Namespace: "gate", Identity: id, Address: "https://" + id + ":9443",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.Run(ctx) }()
	<-m.Ready()
	synctest.Wait()
	return m, func() { cancel(); <-done }
}

func TestMembersKnowOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a, stopA := member(t, client, "a")
		b, stopB := member(t, client, "b")
		if got := fmt.Sprint(a.Others(), b.Others()); got != "[{b https://b:9443}] [{a https://a:9443}]" {
			t.Errorf("a and b see %s", got)
		}
		wait(10 * time.Minute)
		if got := len(a.Others()); got != 1 {
			t.Errorf("a sees %d others after a while, want b, which renews", got)
		}
		stopB()
		synctest.Wait()
		if got := a.Others(); len(got) != 0 {
			t.Errorf("a sees %v after b has signed off", got)
		}
		if _, err := client.CoordinationV1().Leases("gate").Get(t.Context(), "quaymaster-replica-b", metav1.GetOptions{}); err == nil {
			t.Error("b's lease is still there")
		}
		stopA()
	})
}

func foreign(client *fake.Clientset, name, address string, renewed time.Time) error {
	seconds, at := int32(1<<30), metav1.NewMicroTime(renewed)
	_, err := client.CoordinationV1().Leases("gate").Create(context.Background(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "gate", Name: name,
			Labels:      map[string]string{lease.ComponentLabel: lease.ReplicaComponent},
			Annotations: map[string]string{lease.AddressAnnotation: address},
		},
		Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, RenewTime: &at},
	}, metav1.CreateOptions{})
	return err
}

func TestMembersThatVanishAreLeftOutAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		for name, renewed := range map[string]time.Time{"killed": time.Now(), "skewed": time.Now().Add(-40 * time.Second), "old": time.Now().Add(-time.Hour)} {
			if err := foreign(client, "quaymaster-replica-"+name, name, renewed); err != nil {
				t.Fatal(err)
			}
		}
		if err := foreign(client, "quaymaster-replica-mute", "", time.Now()); err != nil {
			t.Fatal(err)
		}
		a, stop := member(t, client, "a")
		if got := fmt.Sprint(a.Others()); got != "[{killed killed} {skewed skewed}]" {
			t.Errorf("at first a sees %s, want those that may be alive and have an address", got)
		}
		sweeping, end := context.WithCancel(t.Context())
		swept := make(chan struct{})
		go func() { defer close(swept); a.Sweep(sweeping) }()
		wait(31 * time.Second)
		if got := a.Others(); len(got) != 0 {
			t.Errorf("a sees %v, which was not renewed", got)
		}
		count := func() int {
			list, err := client.CoordinationV1().Leases("gate").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return len(list.Items)
		}
		wait(time.Minute)
		if got := count(); got != 4 {
			t.Errorf("%d leases, want 4: only the old one is removed", got)
		}
		wait(10 * time.Minute)
		if got := count(); got != 1 {
			t.Errorf("%d leases, want a's own alone", got)
		}
		end()
		<-swept
		stop()
	})
}

func TestConstructorsRefuse(t *testing.T) {
	client := fake.NewClientset().CoordinationV1()
	for _, row := range []struct {
		reason string
		make   func() error
		ok     bool
	}{
		{"a leader", func() error {
			_, err := lease.NewLeader(lease.LeaderOptions{Client: client, Namespace: "n", Name: "l", Identity: "i"})
			return err
		}, true},
		{"a leader without an identity", func() error {
			_, err := lease.NewLeader(lease.LeaderOptions{Client: client, Namespace: "n", Name: "l"})
			return err
		}, false},
		{"a member", func() error {
			_, err := lease.NewMembers(lease.MembersOptions{Client: client, Namespace: "n", Identity: "i", Address: "a"})
			return err
		}, true},
		{"a member without an address", func() error {
			_, err := lease.NewMembers(lease.MembersOptions{Client: client, Namespace: "n", Identity: "i"})
			return err
		}, false},
	} {
		if err := row.make(); (err == nil) != row.ok {
			t.Errorf("%s: got %v", row.reason, err)
		}
	}
}
