package audit

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

var podKind = scan.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}

// TestScanMemory: the position survives in a Lease, and an unreadable one is ignored.
func TestScanMemory(t *testing.T) {
	client := fake.NewClientset().CoordinationV1()
	m := NewPositionStore(client, "quaymaster", "one")
	if p, err := m.Load(t.Context()); err != nil || !p.Began.IsZero() {
		t.Errorf("before anything was saved: %+v, %v", p, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, want := range []scan.Position{
		{Began: at, Whole: at, Basis: scan.Basis{Policies: "p", Trust: "t"}, Only: []scan.Kind{podKind}, Kind: podKind, Continue: "token"},
		{Began: at, Whole: at, Ended: at.Add(time.Minute), Basis: scan.Basis{Policies: "q", Trust: "t"}},
	} {
		if err := m.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		got, err := m.Load(t.Context())
		if err != nil || !got.Began.Equal(want.Began) || !got.Ended.Equal(want.Ended) || got.Basis != want.Basis || got.Kind != want.Kind || got.Continue != want.Continue || !slices.Equal(got.Only, want.Only) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	lease, err := client.Leases("quaymaster").Get(t.Context(), scanLease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Annotations[scanPosition] = "{"
	if _, err := client.Leases("quaymaster").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if p, err := m.Load(t.Context()); err != nil || !p.Began.IsZero() {
		t.Errorf("what cannot be read: %+v, %v", p, err)
	}
}

// TestListDeleted: what reports list of objects that a round did not find, and nothing else.
func TestListDeleted(t *testing.T) {
	const text = `{"scope":{"apiVersion":"apps/v1","kind":"Deployment","namespace":"n","name":"web","uid":"d"},"results":[
		{"policy":"p"},
		{"policy":"p","resources":[{"apiVersion":"v1","kind":"Pod","namespace":"n","name":"deleted","uid":"1"}]},
		{"policy":"p","resources":[{"apiVersion":"v1","kind":"Pod","namespace":"n","name":"there","uid":"2"}]},
		{"policy":"p","resources":[{"apiVersion":"apps/v1","kind":"ReplicaSet","namespace":"n","name":"other","uid":"3"}]},
		{"policy":"p","resources":[{"apiVersion":"v1","kind":"Pod","namespace":"n","name":"nameless"}]}]}`
	deleted := map[string]report.Resource{}
	if err := listDeleted([]byte(text), *scan.NewPass(podKind, time.Now(), "2"), deleted); err != nil {
		t.Fatal(err)
	}
	if got := slices.Collect(maps.Keys(deleted)); !slices.Equal(got, []string{"1"}) || deleted["1"].Owner == nil || deleted["1"].Owner.UID != "d" {
		t.Errorf("deleted: %+v", deleted)
	}
	if err := listDeleted([]byte("{"), *scan.NewPass(podKind, time.Now()), deleted); err == nil {
		t.Error("a report that cannot be read")
	}
}

// TestScanLog: policies that are left out are logged once, kinds that cannot be listed with the
// missing permission, and rounds are counted by whether they were complete.
func TestScanLog(t *testing.T) {
	var log strings.Builder
	counted := metrics.New(metrics.Build{})
	l := &scanLog{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: counted, leftOut: func(context.Context) ([]scan.LeftOut, error) {
		return []scan.LeftOut{{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "p"}, Why: "spec.background is false"}}, nil
	}}
	l.Began(scan.Position{})
	l.Began(scan.Position{})
	l.Looked(podKind, 250, 0)
	l.Refused(podKind, errors.New("forbidden"))
	l.Ended(scan.Summary{Objects: 250}, nil)
	l.Ended(scan.Summary{Refused: []scan.RefusedKind{{Kind: podKind}}}, nil)
	if strings.Count(log.String(), "spec.background is false") != 1 || !strings.Contains(log.String(), "grant the gateway's service account list on it") {
		t.Error(log.String())
	}
	scraped := httptest.NewRecorder()
	counted.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"quaymaster_scan_objects_total 250", `quaymaster_scan_rounds_total{result="complete"} 1`, `quaymaster_scan_rounds_total{result="incomplete"} 1`} {
		if !strings.Contains(scraped.Body.String(), want) {
			t.Errorf("no series %s", want)
		}
	}
}
