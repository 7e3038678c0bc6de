package metrics

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// busy returns Metrics in which every series has a value.
func busy(t *testing.T) *Metrics {
	t.Helper()
	m := New(Build{Version: "v1.2.3", Revision: "abc"})
	err := m.Watch(Readings{
		Working: func() int64 { return 3 }, Waiting: func() int64 { return 4 }, WaitingForShare: func() int64 { return 2 },
		RegistriesLimited: func() int { return 7 }, RegistriesKept: func() int { return 8 },
		Roles: "admission,scan", Lease: "quaymaster", Ready: func() bool { return true }, Leads: func() bool { return false },
		ConfigurationsKept: func() time.Time { return time.Time{} },
		TrustAge:           func() time.Duration { return time.Minute }, TrustFailed: func() bool { return true },
		TrustExpires: func() map[string]time.Time {
			return map[string]time.Time{"fulcio": time.Unix(1900000000, 0), "rekor": {}}
		},
		StaleKeys: func() int { return 2 }, UnreadRoots: func() int { return 1 },
		CertificateExpires: func() time.Time { return time.Unix(1800000000, 0) }, AuthorityExpires: func() time.Time { return time.Unix(1850000000, 0) },
		ScanInterval: func() time.Duration { return time.Hour },
		Overrides: func() []Override {
			return []Override{{"incident", "allow", time.Unix(1700000000, 0)}, {"torn", "deny", time.Time{}}, {"incident", "deny", time.Unix(1700000001, 0)}}
		},
		OpenNamespaces: func() []OpenNamespace {
			return []OpenNamespace{{"shop", time.Unix(1700000000, 0)}, {"bank", time.Time{}}}
		},
		EventsDropped:   func() uint64 { return 5 },
		CredentialsHeld: func() uint64 { return 6 }, ReportsPending: func() int64 { return 6 },
		GlobalContext: func() []GlobalContext {
			return []GlobalContext{{"teams", time.Minute, true}, {"stale", time.Hour, false}, {"unread", -1, false}, {"unknown", 0, true}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetDryVerdicts(1, 2)
	m.SetWithheld(1, 1)
	m.SetPolicies([]Policy{{ID: "ClusterPolicy/signed", State: Ours}, {ID: "ClusterPolicy/lenient", State: Ours, FailOpen: true}, {ID: "ClusterPolicy/labels", State: NotOurs}, {ID: "ClusterPolicy/typo", State: Broken}})
	_, done := m.Enter(httptest.NewRequest(http.MethodPost, "/mutate", nil), "mutate")
	done(http.StatusOK)
	m.Panicked("mutate")
	m.Admitted("mutate", "decided", true)
	_, end := m.Begin(t.Context(), gate.PhaseProve)
	end()
	m.Asked(claims.LayerFacts, true)
	m.Asked(claims.LayerFacts, false)
	m.RegistryAnswered("registry.example", 200, time.Millisecond)
	m.Decided(decided("signed", policy.Pass))
	m.Decided(decided("signed", policy.Fail))
	m.DecidedInShadow(decided("signed", policy.Fail))
	m.Shadowed("validate", "decided", false)
	m.Shadowed("mutate", "queue-full", true)
	m.ConfigurationWritten("validating", "foreign")
	m.BreakGlass("opened")
	m.SetMirrors([]Mirror{{"RegistryMirror/hub", MirrorActive}, {"RegistryMirror/typo", MirrorBroken}, {"RegistryMirror/old", MirrorOutdated}})
	m.SetTargets([]string{"mirror.example", "other.example:5000"})
	m.TargetChanged("mirror.example", true)
	m.Decided(mirrored(t, "RegistryMirror/hub[1]", true, ""))
	m.SharedMemory("hit", 2)
	err = m.WatchDecisionLog(func() DecisionLog {
		return DecisionLog{Written: 7, Lost: 2, Flushed: time.Unix(1800000000, 0), Sinks: []DecisionLogSink{{Name: "webhook", Delivered: 6, Behind: 1}}}
	})
	if err != nil {
		t.Fatal(err)
	}
	m.ReportWritten("written")
	m.ReportDropped("full", 2)
	m.Worked("created", WorkDone)
	m.CleanedUp("policy", "deleted")
	m.CleanupEnded("ttl", "limit-reached", 120)
	m.NativePolicies(3, 2)
	m.NativeRestored()
	m.Worked("", WorkGivenUp)
	m.SetGlobalContext([]string{"teams", "stale", "unread"})
	m.GlobalContextFailed("stale")
	m.Scanned(250)
	m.Followed("looked", 3)
	m.ScanEnded(time.Minute, true, time.Unix(1800000000, 0))
	return m
}

// mirrored is the outcome of an image that a mirror matches.
func mirrored(t *testing.T, mirror string, chosen bool, code policy.Code) gate.Outcome {
	t.Helper()
	v := gate.Verdict{Redirect: &gate.Redirect{Mirror: mirror}, Reasons: []policy.Reason{{Code: code}}, Result: gate.Allow}
	if code == policy.NoMirror || code == policy.MissingDigest {
		v.Result = gate.Deny
	}
	if chosen {
		ref, err := image.Parse("mirror.example/app@sha256:" + strings.Repeat("a", 64))
		if err != nil {
			t.Fatal(err)
		}
		v.Redirect.Target, err = ref.Pin(image.Descriptor{Digest: ref.Digest()})
		if err != nil {
			t.Fatal(err)
		}
	}
	return gate.Outcome{Verdicts: []gate.Verdict{v}}
}

func decided(name string, result policy.Result) gate.Outcome {
	check := &policy.Check{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: name}}
	return gate.Outcome{Verdicts: []gate.Verdict{{Decisions: []policy.Decision{{Check: check, Result: result}}}}}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(recorder.Body)
	if err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("HTTP %d, %v", recorder.Code, err)
	}
	return string(body)
}

func TestSeries(t *testing.T) {
	text := scrape(t, busy(t))
	for _, want := range []string{
		`quaymaster_requests_total{endpoint="mutate",status="200"} 1`,
		`quaymaster_request_duration_seconds_count{endpoint="mutate"} 1`,
		`quaymaster_requests_in_flight 0`,
		`quaymaster_panics_total{endpoint="mutate"} 1`,
		`quaymaster_admissions_total{answer="allow",cause="decided",endpoint="mutate"} 1`,
		`quaymaster_decisions_total{outcome="pass",policy="ClusterPolicy/signed"} 1`,
		`quaymaster_phase_duration_seconds_count{phase="prove"} 1`,
		`quaymaster_phase_duration_seconds_count{phase="resolve"} 0`,
		`quaymaster_cache_lookups_total{layer="facts",result="hit"} 1`,
		`quaymaster_cache_lookups_total{layer="facts",result="miss"} 1`,
		`quaymaster_registry_requests_total{host="registry.example",status="2xx"} 1`,
		`quaymaster_policies{state="ours"} 2`,
		`quaymaster_policies{state="not-ours"} 1`,
		`quaymaster_policies{state="broken"} 1`,
		`quaymaster_policy_broken{policy="ClusterPolicy/typo"} 1`,
		`quaymaster_outcomes_total{result="allow"} 0`,
		`quaymaster_outcomes_total{result="error"} 0`,
		`quaymaster_failed_open_total{policy="ClusterPolicy/lenient"} 0`,
		`quaymaster_violations_total{action="enforce",policy="ClusterPolicy/signed"} 1`,
		`quaymaster_violations_total{action="shadow",policy="ClusterPolicy/signed"} 1`,
		`quaymaster_shadow_admissions_total{cause="decided",endpoint="validate",result="deny"} 1`,
		`quaymaster_shadow_admissions_total{cause="queue-full",endpoint="mutate",result="allow"} 1`,
		`quaymaster_webhook_configuration_writes_total{configuration="validating",reason="foreign"} 1`,
		`quaymaster_webhook_configuration_writes_total{configuration="mutating",reason="missing"} 0`,
		`quaymaster_ready{roles="admission,scan"} 1`,
		`quaymaster_leader{lease="quaymaster"} 0`,
		`quaymaster_webhook_configurations_kept_timestamp_seconds 0`,
		`quaymaster_trust_refresh_failed 1`,
		`quaymaster_trust_expiry_timestamp_seconds{part="fulcio"} 1.9e+09`,
		`quaymaster_trust_expiry_timestamp_seconds{part="rekor"} 0`,
		`quaymaster_trust_stale_keys 2`,
		`quaymaster_trust_unread_repositories 1`,
		`quaymaster_certificate_authority_expiry_timestamp_seconds 1.85e+09`,
		`quaymaster_scan_interval_seconds 3600`,
		`quaymaster_override_expiry_timestamp_seconds{effect="allow",override="incident"} 1.7e+09`,
		`quaymaster_override_expiry_timestamp_seconds{effect="deny",override="torn"} 0`,
		`quaymaster_break_glass_open 2`,
		`quaymaster_break_glass_expiry_timestamp_seconds{open_namespace="shop"} 1.7e+09`,
		`quaymaster_break_glass_expiry_timestamp_seconds{open_namespace="bank"} 0`,
		`quaymaster_break_glass_total{event="opened"} 1`,
		`quaymaster_queue_working 3`,
		`quaymaster_queue_waiting 4`,
		`quaymaster_queue_waiting_for_share 2`,
		`quaymaster_registries_limited 7`,
		`quaymaster_registries_kept 8`,
		`quaymaster_trust_age_seconds 60`,
		`quaymaster_certificate_expiry_timestamp_seconds 1.8e+09`,
		`quaymaster_events_dropped_total 5`,
		`quaymaster_credentials_held_total 6`,
		`quaymaster_build_info{go="go`,
		`quaymaster_mirrors{state="active"} 1`,
		`quaymaster_mirrors{state="outdated"} 1`,
		`quaymaster_mirrors{state="broken"} 1`,
		`quaymaster_mirror_broken{mirror="RegistryMirror/old"} 1`,
		`quaymaster_mirror_broken{mirror="RegistryMirror/typo"} 1`,
		`quaymaster_redirects_total{mirror="RegistryMirror/hub",outcome="chosen"} 1`,
		`quaymaster_mirror_target_resting{registry="mirror.example"} 1`,
		`quaymaster_mirror_target_resting{registry="other.example:5000"} 0`,
		`quaymaster_mirror_target_transitions_total{registry="mirror.example",to="resting"} 1`,
		`quaymaster_shared_cache_total{result="hit"} 2`,
		`quaymaster_decision_log_records_total 7`,
		`quaymaster_decision_log_lost_total 2`,
		`quaymaster_decision_log_flushed_timestamp_seconds 1.8e+09`,
		`quaymaster_decision_log_sink_behind{sink="webhook"} 1`,
		`quaymaster_background_work_total{action="created",outcome="done"} 1`,
		`quaymaster_cleanup_objects_total{cause="policy",outcome="deleted"} 1`,
		`quaymaster_native_policies{side="native"} 3`,
		`quaymaster_native_policies{side="webhook"} 2`,
		`quaymaster_native_policies_restored_total 1`,
		`quaymaster_cleanup_runs_total{cause="ttl",end="limit-reached"} 1`,
		`quaymaster_cleanup_run_duration_seconds_bucket{cause="ttl",le="60"} 0`,
		`quaymaster_cleanup_run_duration_seconds_bucket{cause="ttl",le="600"} 1`,
		`quaymaster_background_work_total{action="none",outcome="given-up"} 1`,
		`quaymaster_global_context_age_seconds{entry="teams"} 60`,
		`quaymaster_global_context_usable{entry="teams"} 1`,
		`quaymaster_global_context_age_seconds{entry="stale"} 3600`,
		`quaymaster_global_context_usable{entry="stale"} 0`,
		`quaymaster_global_context_usable{entry="unread"} 0`,
		`quaymaster_global_context_failures_total{entry="stale"} 1`,
		`quaymaster_global_context_failures_total{entry="teams"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no series %s", want)
		}
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestHostileLabels counts the series that authors of image references,
// policies and requests can cause.
func TestHostileLabels(t *testing.T) {
	m := New(Build{})
	var policies []Policy
	for i := range 3 * maxPolicies {
		policies = append(policies, Policy{ID: fmt.Sprintf("ClusterPolicy/p%05d", i), State: Broken, FailOpen: true})
	}
	m.SetPolicies(policies)
	var mirrors []Mirror
	var targets []string
	for i := range 3 * maxMirrors {
		mirrors = append(mirrors, Mirror{fmt.Sprintf("RegistryMirror/m%05d", i), MirrorBroken})
		targets = append(targets, fmt.Sprintf("target%05d.example", i))
	}
	m.SetMirrors(mirrors)
	m.SetTargets(targets)
	m.SetGlobalContext(targets)
	m.TargetChanged(targets[0], true)
	hostile := []string{"", "\xff\xfe", "a\nb", "a\"} 1\nquaymaster_faked 1", strings.Repeat("x", maxLabel+1), "\x00"}
	for i := range 1000 {
		hostile = append(hostile, fmt.Sprintf("host%d.example:5000", i))
	}
	for _, text := range hostile {
		m.RegistryAnswered(text, 200, 0)
		m.RegistryAnswered(text, -7, 0)
		m.Panicked(text)
		m.Admitted(text, text, false)
		m.Asked(claims.Layer(text), true)
		m.Begin(t.Context(), gate.Phase(text))
		m.Decided(decided(text, policy.Fail))
		m.violated(&policy.Policy{Kind: "ClusterPolicy", Name: text}, policy.Fail, policy.Action(text), false)
		m.Decided(decided("p00000", policy.Result(text)))
		m.Decided(mirrored(t, text, false, policy.Code(text)))
		m.TargetChanged(text, true)
		m.SharedMemory(text, 1)
		m.ConfigurationWritten(text, text)
		m.BreakGlass(text)
		m.Followed(text, -1)
		m.Worked(text, WorkOutcome(text))
		m.GlobalContextFailed(text)
		_, done := m.Enter(httptest.NewRequest(http.MethodPost, "/", nil), text)
		done(len(text))
	}
	text := scrape(t, m)
	for metric, most := range map[string]int{
		"quaymaster_registry_requests_total": 2 * (maxHosts + 1),
		"quaymaster_panics_total":            maxWords + 1,
		"quaymaster_admissions_total":        (maxWords + 1) * (4*maxWords + 1),
		"quaymaster_cache_lookups_total":     4*maxWords + 1,
		"quaymaster_decisions_total":         4*maxWords + 2,
		"quaymaster_requests_total":          (maxWords + 1) * 2,
		"quaymaster_policy_broken":           maxPolicies,
		"quaymaster_failed_open_total":       maxPolicies + 1,
		"quaymaster_violations_total":        4, // of one policy, and of those that are gone
		"quaymaster_mirror_broken":           maxMirrors,
		"quaymaster_mirror_target_resting":   maxTargets,
		"quaymaster_redirects_total":         1,
		"quaymaster_shared_cache_total":      4*maxWords + 1,
		"quaymaster_scan_changes_total":      4*maxWords + 1,
		"quaymaster_background_work_total":   (4*maxWords + 2) * (4*maxWords + 1),
		// The first of them are the entries, the others are other.
		"quaymaster_global_context_failures_total": maxEntries + 1,
		// Any other target is counted as other.
		"quaymaster_mirror_target_transitions_total": 2,
	} {
		if n := strings.Count(text, "\n"+metric+"{"); n > most || n == 0 {
			t.Errorf("%s has %d series, want 1 to %d", metric, n, most)
		}
	}
	if !strings.Contains(text, `quaymaster_registry_requests_total{host="other",status="2xx"}`) {
		t.Error("further hosts are not counted as other")
	}
	if strings.Contains(text, "\nquaymaster_faked") {
		t.Error("a label wrote a series of its own")
	}
	if len(text) > 2<<20 {
		t.Errorf("a scrape of %d bytes", len(text))
	}
}

func TestGonePoliciesLeaveNoSeries(t *testing.T) {
	m := busy(t)
	m.SetPolicies([]Policy{{ID: "ClusterPolicy/next", State: Ours}})
	text := scrape(t, m)
	for _, gone := range []string{"ClusterPolicy/signed", "ClusterPolicy/typo"} {
		if strings.Contains(text, gone) {
			t.Errorf("%s is gone and has series still", gone)
		}
	}
	m.Decided(decided("signed", policy.Pass))
	if text := scrape(t, m); !strings.Contains(text, `policy="other"`) || !strings.Contains(text, `quaymaster_policies{state="broken"} 0`) {
		t.Error("a late decision of a policy that is gone is not other")
	}
}

func TestGoneMirrorsLeaveNoSeries(t *testing.T) {
	m := busy(t)
	m.SetMirrors([]Mirror{{"RegistryMirror/next", MirrorActive}})
	m.SetTargets([]string{"next.example"})
	text := scrape(t, m)
	for _, gone := range []string{"RegistryMirror/hub", "RegistryMirror/typo", `registry="mirror.example"`} {
		if strings.Contains(text, gone) {
			t.Errorf("%s is gone and has series still", gone)
		}
	}
	m.TargetChanged("mirror.example", false)
	if text := scrape(t, m); !strings.Contains(text, `quaymaster_mirror_target_transitions_total{registry="other",to="answering"} 1`) || strings.Contains(text, `resting{registry="other"`) {
		t.Error("a late change of a target that is gone is not other")
	}
}

func TestGoneEntriesLeaveNoSeries(t *testing.T) {
	m := busy(t)
	if text := scrape(t, m); strings.Contains(text, `entry="unknown"`) || strings.Contains(text, `age_seconds{entry="unread"}`) {
		t.Error("an entry that was never set, or never read, has an age")
	}
	m.SetGlobalContext([]string{"teams"})
	m.GlobalContextFailed("stale")
	text := scrape(t, m)
	if strings.Contains(text, `entry="stale"`) {
		t.Error("an entry is gone and has series still")
	}
	if !strings.Contains(text, `quaymaster_global_context_failures_total{entry="other"} 1`) {
		t.Error("a late failure of an entry that is gone is not other")
	}
}

func TestRedirectOutcomes(t *testing.T) {
	for _, c := range []struct {
		reason  string
		chosen  bool
		code    policy.Code
		outcome string
	}{
		{"a target serves it", true, policy.Verified, "chosen"},
		{"it stays where it is", false, policy.NotMirrored, "not-mirrored"},
		{"it is denied for that", false, policy.NoMirror, "denied"},
		{"it is denied for something else", false, policy.MissingDigest, ""},
	} {
		m := New(Build{})
		m.SetMirrors([]Mirror{{"RegistryMirror/hub", MirrorActive}})
		m.Decided(mirrored(t, "RegistryMirror/hub[0]", c.chosen, c.code))
		text := scrape(t, m)
		if c.outcome == "" && strings.Contains(text, "\nquaymaster_redirects_total{") || c.outcome != "" && !strings.Contains(text, `quaymaster_redirects_total{mirror="RegistryMirror/hub",outcome="`+c.outcome+`"} 1`) {
			t.Errorf("%s: not counted as %q", c.reason, c.outcome)
		}
	}
}

func TestWatchTwice(t *testing.T) {
	if err := busy(t).Watch(Readings{Working: func() int64 { return 0 }}); err == nil {
		t.Error("the same reading twice")
	}
}

// TestReference compares docs/metrics.md with the registered metrics.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, registered []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(quaymaster_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| ([^|]*) \\|$").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, strings.Join([]string{row[1], row[2], row[3], row[4]}, "|"))
	}
	families, err := busy(t).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		registered = append(registered, strings.Join([]string{f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), f.GetHelp()}, "|"))
	}
	slices.Sort(documented)
	slices.Sort(registered)
	for _, line := range registered {
		if !slices.Contains(documented, line) {
			parts := strings.SplitN(line, "|", 4)
			t.Errorf("docs/metrics.md lacks this line:\n| `%s` | %s | %s | %s |", parts[0], parts[1], parts[2], parts[3])
		}
	}
	for _, line := range documented {
		if !slices.Contains(registered, line) {
			t.Errorf("docs/metrics.md has a line that is not true: %s", line)
		}
	}
}
