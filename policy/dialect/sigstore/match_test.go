package sigstore_test

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/set"
)

// outcome returns the effect of a policy on a subject: "checks", "skips", "nothing" or
// "error".
func outcome(made set.Plan) string {
	switch {
	case len(made.Checks) > 0:
		return "checks"
	case len(made.Results) == 0:
		return "nothing"
	case made.Results[0].Err != nil:
		return "error"
	}
	return "skips"
}

func TestMatch(t *testing.T) {
	deployment := func(s *policy.Subject) { s.Group, s.Kind = "apps", "Deployment" }
	of := func(group, kind string) func(*policy.Subject) {
		return func(s *policy.Subject) { s.Group, s.Kind = group, kind }
	}
	bare := func(s *policy.Subject) { s.Bare, s.Object = true, policy.Content{} }
	labelled := func(value any) func(*policy.Subject) {
		return func(s *policy.Subject) {
			s.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": value}}})
		}
	}
	for _, c := range []struct {
		match  string
		change func(*policy.Subject)
		want   string
		reason string
	}{
		{"", nil, "checks", "none: pods"},
		{"", deployment, "checks", "none: what makes pods"},
		{"", of("batch", "CronJob"), "checks", "none: what makes what makes pods"},
		{"", of("", "ReplicationController"), "skips", "a kind that policy-controller leaves alone"},
		{"", of("example.com", "Pod"), "skips", "a custom kind of that name"},
		{"", func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, "checks", "containers that are added later"},
		{"", func(s *policy.Subject) { s.Subresource = "exec" }, "skips", "another subresource"},
		{"", func(s *policy.Subject) { s.Operation = "DELETE" }, "skips", "a deletion"},
		{"", bare, "checks", "only images are known"},
		{"[{resource: pods, version: v1}]", nil, "checks", "a resource"},
		{"[{resource: pods, version: '*'}]", nil, "checks", "any version"},
		{"[{resource: pods, version: v1}]", deployment, "skips", "another resource"},
		{"[{resource: pods, version: v1}, {resource: deployments, group: apps, version: v1}]", deployment, "checks", "one of two"},
		{"[{resource: daemonsets, version: v1}]", of("apps", "DaemonSet"), "checks", "daemonsets where policy-controller looks for them"},
		{"[{resource: daemonsets, group: apps, version: v1}]", of("apps", "DaemonSet"), "checks", "daemonsets where they are"},
		{"[{resource: replicasets, group: apps, version: v1}]", of("apps", "ReplicaSet"), "checks", "replicasets, which policy-controller misspells"},
		{"[{resource: pods, version: v1, selector: {matchLabels: {app: web}}}]", nil, "checks", "a label"},
		{"[{resource: pods, version: v1, selector: {matchLabels: {app: db}}}]", nil, "skips", "another label"},
		{"[{resource: pods, version: v1, selector: {matchLabels: {app: db}}}]", labelled("db"), "checks", "the label of the object"},
		{"[{resource: pods, version: v1, selector: {matchLabels: {app: db}}}]", labelled(true), "error", "a label that is no text"},
		{"[{resource: pods, version: v1, selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}]", labelled(nil), "error", "a label that is null"},
		{"[{resource: pods, version: v1}]", labelled(true), "checks", "no selector, and a label that is no text"},
		{"[{resource: pods, version: v1, selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}]", nil, "checks", "in"},
		{"[{resource: pods, version: v1, selector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}]", nil, "skips", "not in"},
		{"[{resource: pods, version: v1, selector: {matchExpressions: [{key: app, operator: Exists}]}}]", nil, "checks", "exists"},
		{"[{resource: pods, version: v1, selector: {matchExpressions: [{key: app, operator: DoesNotExist}]}}]", nil, "skips", "does not exist"},
		{"[{resource: pods, version: v1, selector: {}}]", bare, "checks", "an empty selector selects all"},
		{"[{resource: pods, version: v1, selector: {matchLabels: {app: web}}}]", bare, "error", "unknown labels"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			match := ""
			if c.match != "" {
				match = "  match: " + c.match + "\n"
			}
			p := compile(t, sigstore.Options{}, head+match+signedByKey)
			s := pod("prod")
			if c.change != nil {
				c.change(s)
			}
			if got := outcome(plan(t, s, "ghcr.io/org/app:v1", p)); got != c.want {
				t.Errorf("%s; want %s", got, c.want)
			}
		})
	}
}

// TestOptIn: the label policy.sigstore.dev/include of policy-controller's webhooks.
func TestOptIn(t *testing.T) {
	for _, c := range []struct {
		label string
		known bool
		want  string
	}{{"true", true, "checks"}, {"false", true, "skips"}, {"", true, "skips"}, {"true", false, "error"}} {
		s := pod("prod")
		s.NamespaceKnown, s.NamespaceLabels = c.known, map[string]string{"policy.sigstore.dev/include": c.label}
		p := compile(t, sigstore.Options{OptIn: true}, head+signedByKey)
		if got := outcome(plan(t, s, "ghcr.io/org/app:v1", p)); got != c.want {
			t.Errorf("label %q, known %t: %s; want %s", c.label, c.known, got, c.want)
		}
		if got := outcome(plan(t, s, "quay.io/org/app:v1", p)); got == "error" || got == "checks" {
			t.Errorf("label %q, known %t: an image that the policy does not name: %s", c.label, c.known, got)
		}
		broken := map[string]string{"checks": "error"}
		for optIn, want := range map[bool]string{true: cmp.Or(broken[c.want], c.want), false: "error"} {
			stand := sigstore.New(sigstore.Options{OptIn: optIn}).Broken([]byte(head), "x", errors.New("why"))
			if got := outcome(plan(t, s, "quay.io/org/app:v1", stand)); got != want {
				t.Errorf("label %q, known %t, opt-in %t: a broken policy: %s; want %s", c.label, c.known, optIn, got, want)
			}
		}
		everywhere := compile(t, sigstore.Options{}, head+signedByKey)
		if got := outcome(plan(t, s, "ghcr.io/org/app:v1", everywhere)); got != "checks" {
			t.Errorf("without the option, label %q: %s", c.label, got)
		}
	}
}

// TestNoMatch: what becomes of images that no policy names.
func TestNoMatch(t *testing.T) {
	named := compile(t, sigstore.Options{}, head+"  match: [{resource: pods, version: v1, selector: {matchLabels: {app: web}}}]\n"+signedByKey)
	for _, c := range []struct {
		choice sigstore.Unmatched
		ref    string
		label  string
		want   policy.Result
		action policy.Action
		reason string
	}{
		{"", "quay.io/org/app:v1", "web", policy.Fail, policy.Enforce, "denied by default"},
		{sigstore.UnmatchedDeny, "quay.io/org/app:v1", "web", policy.Fail, policy.Enforce, "denied"},
		{sigstore.UnmatchedWarn, "quay.io/org/app:v1", "web", policy.Fail, policy.Warn, "warned of"},
		{sigstore.UnmatchedDeny, "ghcr.io/org/app:v1", "web", "", "", "named by a policy"},
		{sigstore.UnmatchedDeny, "ghcr.io/org/app:v1", "db", policy.Fail, policy.Enforce, "named by a policy that leaves the object alone"},
	} {
		none, err := sigstore.New(sigstore.Options{}).NoMatch(c.choice, []*policy.Policy{named})
		if err != nil {
			t.Fatal(err)
		}
		s := pod("prod")
		s.Object.Map()["metadata"].(map[string]any)["labels"].(map[string]any)["app"] = c.label
		made := plan(t, s, c.ref, none)
		if c.want == "" {
			if len(made.Checks) != 0 {
				t.Errorf("%s: %+v", c.reason, made.Checks)
			}
			continue
		}
		if len(made.Checks) != 1 {
			t.Errorf("%s: %+v", c.reason, made.Results)
			continue
		}
		check := &made.Checks[0]
		if d := decision(t, check, answers()); d.Result != c.want || check.Action != c.action || check.NeedsDigest() {
			t.Errorf("%s: %s by %s, asks the registry %t", c.reason, d.Result, check.Action, check.NeedsDigest())
		}
	}
	digests := compile(t, sigstore.Options{}, strings.Replace(head, "ghcr.io/org/**", "'ghcr.io/org/app@*'", 1)+signedByKey)
	for ref, named := range map[string]bool{"ghcr.io/org/app:v1": false, "ghcr.io/org/app@" + digest: true} {
		none, err := sigstore.New(sigstore.Options{}).NoMatch("", []*policy.Policy{digests})
		if err != nil {
			t.Fatal(err)
		}
		if made := plan(t, pod("prod"), ref, none); (len(made.Checks) == 0) != named {
			t.Errorf("a glob with any digest names %s: %t, want %t", ref, !named, named)
		}
	}
	if none, err := sigstore.New(sigstore.Options{}).NoMatch(sigstore.UnmatchedAllow, nil); none != nil || err != nil {
		t.Errorf("allow: %v %v", none, err)
	}
	if _, err := sigstore.New(sigstore.Options{}).NoMatch("Allow", nil); err == nil {
		t.Error("an unknown value was taken")
	}
	none, err := sigstore.New(sigstore.Options{}).NoMatch("", []*policy.Policy{named})
	if err != nil {
		t.Fatal(err)
	}
	s := pod("prod")
	s.Bare, s.Object = true, policy.Content{}
	if got := outcome(plan(t, s, "ghcr.io/org/app:v1", none)); got != "error" {
		t.Errorf("unknown labels: %s", got)
	}
	s.Group, s.Kind = "", "ConfigMap"
	if got := outcome(plan(t, s, "ghcr.io/org/app:v1", none)); got != "skips" {
		t.Errorf("no pod: %s", got)
	}
}

// TestBroken: what a document that does not compile protects is undecided.
func TestBroken(t *testing.T) {
	why := errors.New("why")
	for _, c := range []struct {
		text       string
		none, warn bool
		name       string
		reason     string
	}{
		{head + "  authorities: []\n", false, false, "signed", "no authority"},
		{head + "  mode: warn\n", false, true, "signed", "one that warns"},
		{strings.Replace(head, "metadata: {name: signed}", "metadata: []", 1), false, false, "", "no name"},
		{"spec: text\nmetadata: {name: a}", false, false, "a", "no spec"},
		{"{", true, false, "", "no document"},
	} {
		dialect := sigstore.Policies{Compiler: sigstore.New(sigstore.Options{})}
		p := dialect.Broken([]byte(c.text), "test.yaml", why)
		if (p == nil) != c.none {
			t.Errorf("%s: %v", c.reason, p)
		}
		if p == nil {
			continue
		}
		if p.AuditOnly != c.warn || c.name != "" && p.Name != c.name || p.Name == "" || !errors.Is(p.Broken, why) {
			t.Errorf("%s: %+v", c.reason, p)
		}
		if got := outcome(plan(t, pod("prod"), "ghcr.io/org/app:v1", p)); got != "error" {
			t.Errorf("%s: %s; want error", c.reason, got)
		}
		s := pod("prod")
		s.Kind = "ConfigMap"
		if got := outcome(plan(t, s, "ghcr.io/org/app:v1", p)); got != "skips" {
			t.Errorf("%s, another kind: %s", c.reason, got)
		}
		s = pod("prod")
		s.Operation = "DELETE"
		if got := outcome(plan(t, s, "ghcr.io/org/app:v1", p)); got != "skips" {
			t.Errorf("%s, a deletion: %s", c.reason, got)
		}
	}
}

// TestPinsNamed: images are pinned in controllers where the policy is not sure to match the
// pods that follow.
func TestPinsNamed(t *testing.T) {
	const deployments = "{resource: deployments, group: apps, version: v1}"
	for _, c := range []struct{ reason, match, want string }{
		{"every resource", "", ""},
		{"pods and controllers", "[{resource: pods, version: v1}, " + deployments + "]", ""},
		{"controllers alone", "[" + deployments + ", {resource: cronjobs, group: batch, version: v1}]", "Deployment CronJob"},
		{"pods by their labels", "[{resource: pods, version: v1, selector: {matchLabels: {app: web}}}, " + deployments + "]", "Deployment"},
		{"pods by a selector that selects all", "[{resource: pods, version: v1, selector: {}}, " + deployments + "]", ""},
	} {
		match := ""
		if c.match != "" {
			match = "  match: " + c.match + "\n"
		}
		if got := strings.Join(compile(t, sigstore.Options{}, head+match+signedByKey).NamedKinds(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
