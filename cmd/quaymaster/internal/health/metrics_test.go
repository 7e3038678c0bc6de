package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metricsOf are the metrics of a replica, with further lines.
func metricsOf(t *testing.T, lines ...string) samples {
	t.Helper()
	read, err := parseSamples([]byte(strings.Join(append([]string{
		`quaymaster_build_info{version="v1.0.0",revision="a",go="go1.27"} 1`, `quaymaster_ready{roles="admission,scan,report,background"} 1`,
	}, lines...), "\n") + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestReadMetrics: the worst replica counts, and without metrics nothing is good.
func TestReadMetrics(t *testing.T) {
	s := &State{Replicas: Replicas{Items: []Replica{{Name: "a"}, {Name: "b"}}}}
	s.Replicas.Items[0].metrics = metricsOf(t, "quaymaster_certificate_expiry_timestamp_seconds 1.8e+09", "quaymaster_trust_age_seconds 100",
		"quaymaster_webhook_configurations_kept_timestamp_seconds 0", `quaymaster_registry_requests_total{host="a.example",status="2xx"} 10`, `quaymaster_trust_expiry_timestamp_seconds{part="rekor"} 1.9e+09`)
	s.Replicas.Items[1].metrics = metricsOf(t, "quaymaster_certificate_expiry_timestamp_seconds 1.7999e+09", "quaymaster_trust_age_seconds 200", "quaymaster_trust_refresh_failed 1",
		"quaymaster_trust_stale_keys 2", "quaymaster_webhook_configurations_kept_timestamp_seconds 1.796e+09", `quaymaster_registry_requests_total{host="a.example",status="none"} 3`,
		`quaymaster_registry_requests_total{host="a.example",status="5xx"} 1`, `quaymaster_mirror_target_resting{registry="m.example"} 1`, `quaymaster_mirror_target_resting{registry="n.example"} 0`,
		`quaymaster_trust_expiry_timestamp_seconds{part="rekor"} 1.85e+09`, `quaymaster_trust_expiry_timestamp_seconds{part="ct"} 0`, `quaymaster_policy_broken{policy="ClusterPolicy/x"} 1`)
	s.readMetrics()
	if !s.Certificate.Expires.Equal(time.Unix(1799900000, 0)) || s.Certificate.Replica != "b" || s.Trust.AgeSeconds != 200 || !s.Trust.RefreshFailed || s.Trust.StaleKeys != 2 {
		t.Errorf("%+v %+v", s.Certificate, s.Trust)
	}
	if len(s.Trust.Expires) != 1 || !s.Trust.Expires["rekor"].Equal(time.Unix(1850000000, 0)) || !s.Webhooks.Confirmed.Equal(time.Unix(1796000000, 0)) || !slices.Equal(s.Policies.Broken, []string{"ClusterPolicy/x"}) {
		t.Errorf("%+v %+v %+v", s.Trust, s.Webhooks, s.Policies)
	}
	if want := []Registry{{Host: "a.example", Requests: 14, Unanswered: 4}, {Host: "m.example", Resting: true}}; !slices.Equal(s.Registries.Items, want) {
		t.Errorf("%+v, want %+v", s.Registries.Items, want)
	}

	for _, age := range []string{"", "quaymaster_trust_age_seconds +Inf", "quaymaster_trust_age_seconds NaN", "quaymaster_trust_age_seconds -1"} {
		s = &State{Replicas: Replicas{Items: []Replica{{Name: "a", metrics: metricsOf(t, age, "quaymaster_certificate_expiry_timestamp_seconds +Inf", `quaymaster_trust_expiry_timestamp_seconds{part="ct"} 1e18`)}}}}
		s.readMetrics()
		if s.Trust.Unknown == "" || s.Trust.AgeSeconds != 0 || len(s.Trust.Expires) != 0 || !s.Certificate.Expires.IsZero() {
			t.Errorf("%q: %+v %+v", age, s.Trust, s.Certificate)
		}
	}

	s = &State{Replicas: Replicas{Items: []Replica{{Name: "a", Metrics: Unread{"refused", "open it"}}}}}
	s.readMetrics()
	for part, u := range map[string]Unread{"certificate": s.Certificate.Unread, "trust": s.Trust.Unread, "registries": s.Registries.Unread} {
		if u != s.UnreadMetrics() {
			t.Errorf("%s: %+v", part, u)
		}
	}
}

// TestParseSamples: the metrics of another program are no metrics of a gateway.
func TestParseSamples(t *testing.T) {
	for reason, text := range map[string]string{"another program": "up 1\n", "a page": "<html>", "nothing": ""} {
		if got, err := parseSamples([]byte(text)); err == nil {
			t.Errorf("%s: %v", reason, got)
		}
	}
	if m := metricsOf(t, "quaymaster_trust_age_seconds 1.5"); m.label("build_info", "version") != "v1.0.0" {
		t.Error("no version")
	} else if age, ok := m.value("trust_age_seconds"); !ok || age != 1.5 {
		t.Errorf("%v, %t", age, ok)
	} else if _, ok := m.value("trust_stale_keys"); ok {
		t.Error("a metric that is not there")
	}
}

// TestManagedFields: without them, the time of a renewal is the holder's own.
func TestManagedFields(t *testing.T) {
	at, holder := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), "a"
	renewed := metav1.NewMicroTime(at)
	l := coordination.Lease{Spec: coordination.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed}}
	if got := leaderOf(&l); !got.Renewed.Equal(at) {
		t.Errorf("renewed at %s", got.Renewed)
	}
	if got := clockOf(&l, leaderOf(&l)); got != nil {
		t.Errorf("a clock without the API server's time: %+v", got)
	}
	later := metav1.NewTime(at.Add(time.Minute))
	l.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &later}}
	if got := clockOf(&l, leaderOf(&l)); len(got) != 1 || got[0].AheadSeconds != -60.5 {
		t.Errorf("%+v", got)
	}
}
