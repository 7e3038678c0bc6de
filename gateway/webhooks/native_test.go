package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration/reconcile"
)

// recorded is a ConfigMap of the record, with a version.
func recorded(name, text string) *core.ConfigMap {
	return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, ResourceVersion: "7"}, Data: map[string]string{record.Key: text}}
}

const isNative = `{"ValidatingPolicy/p": {"hash": "h", "native": true, "objects": "o"}}`

// TestNatives: a policy is left out for the recorded version alone, and while the role native runs.
func TestNatives(t *testing.T) {
	p := &policy.Policy{Kind: "ValidatingPolicy", Name: "p", Hash: "h"}
	later, other := *p, *p
	later.Hash, other.Name = "later", "q"
	runs := &status.Controllers{Own: true}
	for _, row := range []struct {
		reason  string
		natives *natives
		have    *core.ConfigMap
		fails   bool
		of      *policy.Policy
		want    bool
	}{
		{"the version that is native", &natives{controllers: runs}, recorded(record.Enforced, isNative), false, p, true},
		{"a later version", &natives{controllers: runs}, recorded(record.Enforced, isNative), false, &later, false},
		{"another policy", &natives{controllers: runs}, recorded(record.Enforced, isNative), false, &other, false},
		{"the role does not run", &natives{controllers: &status.Controllers{}}, recorded(record.Enforced, isNative), false, p, false},
		{"a shadow", &natives{controllers: runs, shadow: true}, recorded(record.Enforced, isNative), false, p, false},
		{"no setting", &natives{}, recorded(record.Enforced, isNative), false, p, false},
		{"it waits", &natives{controllers: runs}, recorded(record.Enforced, `{"ValidatingPolicy/p": {"hash": "h", "native": false, "reason": "waits"}}`), false, p, false},
		{"a malformed record", &natives{controllers: runs}, recorded(record.Enforced, `{"ValidatingPolicy/p": {"hash": "h", "native": true, "objects": "o", "x": 1}}`), false, p, false},
		{"no record", &natives{controllers: runs}, recorded(record.Covered, isNative), false, p, false},
		{"no answer", &natives{controllers: runs}, recorded(record.Enforced, isNative), true, p, false},
	} {
		client := fake.NewClientset(row.have)
		if row.fails {
			client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
		}
		n := row.natives
		n.client, n.namespace, n.log = client.CoreV1(), "n", slog.New(slog.DiscardHandler)
		if got := n.read(t.Context()).LeftOut(row.of); got != row.want {
			t.Errorf("%s: it is left out: %t", row.reason, got)
		}
	}
}

// TestCoverage: a policy is covered once configurations that hold it were observed in use, with the version of the states
// by which they were made, and no longer after another client changed them.
func TestCoverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		client := fake.NewClientset(recorded(record.Enforced, isNative))
		readiness := status.NewReadiness(log, func() {})
		readiness.Begin(true)
		n := &natives{client: client.CoreV1(), namespace: "n", controllers: &status.Controllers{Own: true}, readiness: readiness, log: log}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { n.publish(ctx) })
		servers := &answers{}
		running.Go(func() { readiness.Run(ctx, servers) })
		policies := []*policy.Policy{{Kind: "ValidatingPolicy", Name: "p", Hash: "h"}, {Kind: "ValidatingPolicy", Name: "q", Hash: "g"}}
		kept := func(mark string, native status.Native) {
			readiness.Kept(reconcile.Round{Mutating: mark, Validating: mark}, 1, policies, native)
			n.changed.Notify()
			time.Sleep(time.Second) //nolint:forbidigo // the clock of the bubble
		}
		covered := func() *record.Coverage {
			have, err := client.CoreV1().ConfigMaps("n").Get(t.Context(), record.Covered, metav1.GetOptions{})
			if err != nil {
				return nil
			}
			coverage, err := record.DecodeCoverage(have.Data)
			if err != nil {
				t.Fatal(err)
			}
			return &coverage
		}
		servers.answer(errors.New("not yet"))
		kept("1", n.read(ctx))
		if got := covered(); got != nil {
			t.Errorf("before API servers use them: %+v", got)
		}
		servers.answer(nil)
		time.Sleep(20 * time.Second) //nolint:forbidigo // the clock of the bubble
		if got := covered(); got == nil || got.States != "7" || !maps.Equal(got.Policies, map[string]string{"ValidatingPolicy/q": "g"}) {
			t.Errorf("in use, without the native policy: %+v", got)
		}
		servers.answer(errors.New("not yet"))
		webhook := status.Native{Version: "8", States: record.States{"ValidatingPolicy/p": {Hash: "h", Reason: "waits"}}}
		kept("2", webhook)
		if got := covered(); got.States != "7" {
			t.Errorf("new configurations, before API servers use them: %+v", got)
		}
		servers.answer(nil)
		time.Sleep(20 * time.Second) //nolint:forbidigo // the clock of the bubble
		if got := covered(); !got.Covers("8", "ValidatingPolicy/p", "h") || got.Covers("7", "ValidatingPolicy/p", "h") {
			t.Errorf("new configurations in use: %+v", got)
		}
		if err := client.CoreV1().ConfigMaps("n").Delete(ctx, record.Covered, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(coverageInterval + time.Second) //nolint:forbidigo // the clock of the bubble
		if got := covered(); got == nil || !got.Covers("8", "ValidatingPolicy/p", "h") {
			t.Errorf("deleted by another client: %+v", got)
		}
		readiness.Lost()
		if _, known := readiness.Holding(); known {
			t.Error("another client changed the configurations, and the policies are covered")
		}
		cancel()
		running.Wait()
	})
}

// answers are those of API servers to probes.
type answers struct {
	mu  sync.Mutex
	err error
}

func (a *answers) answer(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *answers) Probe(context.Context, ...string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}
