package match_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
)

// value names a result: yes, no, or unknown.
func value(v logic.Value) string {
	switch {
	case v.True():
		return "yes"
	case v.False():
		return "no"
	}
	return "unknown"
}

func metadata(meta map[string]any) func(*policy.Subject) {
	return func(s *policy.Subject) { s.Object = policy.ContentOf(map[string]any{"metadata": meta}) }
}

func labels(value any) func(*policy.Subject) { return metadata(map[string]any{"labels": value}) }

// at makes the subject a request for a subresource with a body of a kind.
func at(subresource, kind string) func(*policy.Subject) {
	return func(s *policy.Subject) {
		s.Subresource = subresource
		s.Object = policy.ContentOf(map[string]any{"kind": kind, "metadata": map[string]any{"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"a": "b"}}})
	}
}

func clusterScoped(s *policy.Subject) {
	s.Kind, s.Group, s.Namespace, s.NamespaceKnown, s.NamespaceLabels = "ClusterRole", "rbac.authorization.k8s.io", "", false, nil
}

// scaleOf makes the subject a Scale that is sent to foos/scale of a group, as long as it is
// not known which kind foos are of.
func scaleOf(group string) func(*policy.Subject) {
	return func(s *policy.Subject) {
		s.Group, s.Version, s.Kind, s.Subresource = "autoscaling", "v1", "Scale", "scale"
		s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": group, "version": "v1", "resource": "foos"}})
	}
}

func deleted(s *policy.Subject) {
	s.Operation, s.Object, s.OldObject = "DELETE", policy.Content{}, s.Object
}

// TestPolarity: what each field means where its value is unknown, absent, of a foreign type,
// of a subresource, of the cluster or deleted, for a rule and for what takes one away.
func TestPolarity(t *testing.T) {
	one := func(more string) string { return "any: [{resources: {" + more + "}}]" }
	const (
		byLabel     = "selector: {matchLabels: {app: web}}"
		byNoLabel   = "selector: {matchExpressions: [{key: app, operator: NotIn, values: [api]}]}"
		byGone      = "selector: {matchExpressions: [{key: app, operator: DoesNotExist}]}"
		byKey       = "selector: {matchExpressions: [{key: app, operator: Exists}]}"
		byNamespace = "namespaceSelector: {matchLabels: {env: prod}}"
		notProd     = "namespaceSelector: {matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}"
	)
	for _, c := range []struct {
		reason, text             string
		change                   func(*policy.Subject)
		selecting, taking, given string // for match, exclude and exception
	}{
		{"kinds: known", one("kinds: [Pod]"), nil, "yes", "yes", "yes"},
		{"kinds: a subresource is not its object", one("kinds: [Pod]"), at("exec", "PodExecOptions"), "no", "no", "no"},
		{"kinds: status is not its object", one("kinds: ['*']"), at("status", "Pod"), "no", "no", "no"},
		{"kinds: later containers are the pod's, as in Kyverno, which asks exceptions to name them", one("kinds: [Pod]"), at("ephemeralcontainers", "Pod"), "yes", "yes", "no"},
		{"kinds: later containers that are named", one("kinds: [Pod/ephemeralcontainers]"), at("ephemeralcontainers", "Pod"), "yes", "yes", "yes"},
		{"kinds: the object of a Scale is not known", one("kinds: [Deployment/scale]"), func(s *policy.Subject) { s.Group, s.Kind, s.Subresource = "autoscaling", "Scale", "scale" }, "unknown", "unknown", "unknown"},
		{"kinds: the scale of every kind", one("kinds: ['*/scale']"), func(s *policy.Subject) { s.Group, s.Kind, s.Subresource = "autoscaling", "Scale", "scale" }, "yes", "yes", "yes"},
		{"kinds: the scale of a custom kind, by its resource alone", one("kinds: [Foo/scale]"), scaleOf("example.com"), "unknown", "unknown", "unknown"},
		{"kinds: in its group and version", one("kinds: [example.com/v1/Foo/scale]"), scaleOf("example.com"), "unknown", "unknown", "unknown"},
		{"kinds: in another group", one("kinds: [example.net/v1/Foo/scale]"), scaleOf("example.com"), "no", "no", "no"},
		{"kinds: in another version", one("kinds: [example.com/v2/Foo/scale]"), scaleOf("example.com"), "unknown", "no", "no"},
		{"kinds: a version that Kubernetes serves is not converted here; Kyverno sees it converted, and excludes that version alone", one("kinds: [autoscaling/v1/HorizontalPodAutoscaler]"), autoscaler("v2"), "unknown", "no", "no"},
		{"kinds: the version itself", one("kinds: [autoscaling/v1/HorizontalPodAutoscaler]"), autoscaler("v1"), "yes", "yes", "yes"},
		{"kinds: one of two versions", one("kinds: [autoscaling/v1/HorizontalPodAutoscaler, autoscaling/v2/HorizontalPodAutoscaler]"), autoscaler("v2"), "yes", "yes", "yes"},
		{"kinds: a pattern of versions", one("kinds: [autoscaling/v*/HorizontalPodAutoscaler]"), autoscaler("v2"), "yes", "yes", "yes"},
		{"kinds: a version that is not served any more", one("kinds: [autoscaling/v2beta2/HorizontalPodAutoscaler]"), autoscaler("v2"), "no", "no", "no"},
		{"kinds: another version of another group", one("kinds: [example.com/v1/HorizontalPodAutoscaler]"), autoscaler("v2"), "no", "no", "no"},
		{"kinds: another version, of another name", one("kinds: [autoscaling/v1/HorizontalPodAutoscaler], names: [other]"), autoscaler("v2"), "no", "no", "no"},

		{"kinds: of every kind of the group", one("kinds: ['example.com/*/*/scale']"), scaleOf("example.com"), "yes", "yes", "yes"},
		{"kinds: another subresource", one("kinds: [Foo/status]"), scaleOf("example.com"), "no", "no", "no"},
		{"kinds: without a subresource", one("kinds: [Foo]"), scaleOf("example.com"), "no", "no", "no"},
		{"kinds: the scale of another kind", one("kinds: [Deployment/scale]"), func(s *policy.Subject) { s.Group, s.Kind, s.Subresource = "apps", "StatefulSet", "scale" }, "no", "no", "no"},
		{"kinds: a deletion", one("kinds: [Pod]"), deleted, "yes", "yes", "yes"},

		{"names: known", one("names: [web]"), nil, "yes", "yes", "yes"},
		{"names: a generated one begins with it; Kyverno compares that, and the object gets another", one("names: [web]"), func(s *policy.Subject) { s.Name = ""; metadata(map[string]any{"generateName": "web"})(s) }, "yes", "no", "no"},
		{"names: one that may be generated", one("names: [web-bcdfg]"), func(s *policy.Subject) { s.Name = ""; metadata(map[string]any{"generateName": "web-"})(s) }, "unknown", "unknown", "unknown"},
		{"names: one that cannot be, for it has a vowel", one("names: [web-abcde]"), func(s *policy.Subject) { s.Name = ""; metadata(map[string]any{"generateName": "web-"})(s) }, "no", "no", "no"},
		{"names: each that may be generated", one("names: ['web-*']"), func(s *policy.Subject) { s.Name = ""; metadata(map[string]any{"generateName": "web-"})(s) }, "yes", "yes", "yes"},
		{"names: absent", one("names: [web]"), func(s *policy.Subject) { s.Name = ""; metadata(nil)(s) }, "no", "no", "no"},
		{"names: absent, and any will do", one("names: ['*']"), func(s *policy.Subject) { s.Name = ""; metadata(nil)(s) }, "yes", "yes", "yes"},
		{"names: unknown", one("names: [web]"), func(s *policy.Subject) { s.Name, s.Object = "", policy.Content{} }, "unknown", "unknown", "unknown"},
		{"names: in the object alone", one("names: [web]"), func(s *policy.Subject) { s.Name = ""; metadata(map[string]any{"name": "web"})(s) }, "yes", "yes", "yes"},
		{"names: a foreign type", one("names: [web]"), func(s *policy.Subject) { s.Name = ""; metadata(map[string]any{"name": 7, "generateName": 7})(s) }, "no", "no", "no"},
		{"names: of the request, at a subresource", one("names: [web]"), at("exec", "PodExecOptions"), "yes", "yes", "yes"},
		{"names: a deletion", one("name: web"), deleted, "yes", "yes", "yes"},

		{"namespaces: known", one("namespaces: [prod]"), nil, "yes", "yes", "yes"},
		{"namespaces: of the cluster", one("namespaces: [prod]"), clusterScoped, "no", "no", "no"},
		{"namespaces: of the cluster, as in Kyverno", one("namespaces: ['*']"), clusterScoped, "yes", "yes", "yes"},
		{"namespaces: a Namespace is in itself", one("namespaces: [web]"), func(s *policy.Subject) { s.Kind = "Namespace" }, "yes", "yes", "yes"},
		{"namespaces: a Namespace with a name that may be generated", one("namespaces: [web-bcdfg]"), func(s *policy.Subject) {
			s.Kind, s.Name = "Namespace", ""
			metadata(map[string]any{"generateName": "web-"})(s)
		}, "unknown", "unknown", "unknown"},

		{"namespaceSelector: known", one(byNamespace), nil, "yes", "yes", "yes"},
		{"namespaceSelector: another", one(notProd), nil, "no", "no", "no"},
		{"namespaceSelector: unknown", one(byNamespace), func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }, "unknown", "unknown", "unknown"},
		{"namespaceSelector: unknown, negated", one(notProd), func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }, "unknown", "unknown", "unknown"},
		{"namespaceSelector: unknown, and it wants none", one("namespaceSelector: {}"), func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }, "yes", "yes", "yes"},
		{"namespaceSelector: of the cluster, which has no labels of a namespace", one(byNamespace), clusterScoped, "no", "no", "no"},
		{"namespaceSelector: of the cluster, by a wildcard", one("kinds: ['*'], " + byNamespace), clusterScoped, "no", "no", "no"},
		{"namespaceSelector: of the cluster, by a wildcard, negated", one("kinds: ['*'], " + notProd), clusterScoped, "yes", "no", "no"},
		{"namespaceSelector: of the cluster, by its kind", one("kinds: ['*', ClusterRole], " + byNamespace), clusterScoped, "yes", "no", "no"},
		{"namespaceSelector: of the cluster, by another kind", one("kinds: ['*', ClusterRoleBinding], " + byNamespace), clusterScoped, "no", "no", "no"},
		{"namespaceSelector: of the cluster, negated", one(notProd), clusterScoped, "yes", "no", "no"},
		{"namespaceSelector: of the cluster, empty", one("namespaceSelector: {}"), clusterScoped, "yes", "no", "no"},
		{"namespaceSelector: of a Namespace: the requester writes its labels", one(byNamespace), func(s *policy.Subject) { s.Kind = "Namespace" }, "no", "no", "no"},
		{"namespaceSelector: of a Namespace, by a wildcard, negated", one("kinds: ['*'], " + notProd), func(s *policy.Subject) { s.Kind = "Namespace" }, "no", "no", "no"},
		{"namespaceSelector: of a Namespace, by its kind", one("kinds: [Namespace], " + byNamespace), func(s *policy.Subject) { s.Kind = "Namespace" }, "yes", "no", "no"},
		{"namespaceSelector: at a subresource", one(byNamespace), at("exec", "PodExecOptions"), "yes", "yes", "yes"},
		{"namespaceSelector: a deletion", one(byNamespace), deleted, "yes", "yes", "yes"},

		{"selector: known", one(byLabel), nil, "yes", "yes", "yes"},
		{"selector: absent", one(byLabel), labels(nil), "no", "no", "no"},
		{"selector: absent, negated", one(byNoLabel), labels(nil), "yes", "yes", "yes"},
		{"selector: absent, and it is to be", one(byGone), labels(nil), "yes", "yes", "yes"},
		{"selector: unknown", one(byLabel), func(s *policy.Subject) { s.Object = policy.Content{} }, "unknown", "unknown", "unknown"},
		{"selector: a value of a foreign type", one(byLabel), labels(map[string]any{"app": 7}), "unknown", "unknown", "unknown"},
		{"selector: a value of a foreign type, negated", one(byNoLabel), labels(map[string]any{"app": 7}), "unknown", "unknown", "unknown"},
		{"selector: a value of a foreign type is there", one(byKey), labels(map[string]any{"app": nil}), "yes", "yes", "yes"},
		{"selector: and is not gone", one(byGone), labels(map[string]any{"app": nil}), "no", "no", "no"},
		{"selector: behind a pattern for keys", one("selector: {matchLabels: {'a*': w*}}"), labels(map[string]any{"app": 7}), "unknown", "unknown", "unknown"},
		{"selector: another one matches", one("selector: {matchLabels: {'a*': w*}}"), labels(map[string]any{"app": 7, "area": "west"}), "yes", "yes", "yes"},
		{"selector: labels of a foreign type", one(byLabel), labels([]any{"app"}), "unknown", "unknown", "unknown"},
		{"selector: labels of a foreign type, negated", one(byGone), labels("app"), "unknown", "unknown", "unknown"},
		{"selector: metadata of a foreign type", one(byGone), func(s *policy.Subject) { s.Object = policy.ContentOf(map[string]any{"metadata": "x"}) }, "unknown", "unknown", "unknown"},
		{"selector: an Eviction is not the pod", one(byLabel), at("eviction", "Eviction"), "unknown", "unknown", "unknown"},
		{"selector: an Eviction is not the pod, negated", one(byGone), at("eviction", "Eviction"), "unknown", "unknown", "unknown"},
		{"selector: a Binding is not the pod", one(byLabel), at("binding", "Binding"), "unknown", "unknown", "unknown"},
		{"selector: a Scale is not the object", one(byLabel), at("scale", "Scale"), "unknown", "unknown", "unknown"},
		{"selector: options are not the pod", one(byGone), at("exec", "PodExecOptions"), "unknown", "unknown", "unknown"},
		{"selector: an eviction with the kind of a pod", one(byLabel), at("eviction", "Pod"), "unknown", "unknown", "unknown"},
		{"selector: a status comes with the whole object", one(byLabel), at("status", "Pod"), "yes", "yes", "yes"},
		{"selector: later containers come with the whole pod", one(byLabel), at("ephemeralcontainers", "Pod"), "yes", "yes", "yes"},
		{"selector: a status of another kind", one(byLabel), at("status", "Scale"), "unknown", "unknown", "unknown"},
		{"selector: a deletion", one(byLabel), deleted, "yes", "yes", "yes"},

		{"annotations: known", one("annotations: {a: b}"), nil, "yes", "yes", "yes"},
		{"annotations: absent", one("annotations: {a: b}"), metadata(nil), "no", "no", "no"},
		{"annotations: a value of a foreign type", one("annotations: {a: '*'}"), metadata(map[string]any{"annotations": map[string]any{"a": true}}), "unknown", "unknown", "unknown"},
		{"annotations: an Eviction is not the pod", one("annotations: {a: b}"), at("eviction", "Eviction"), "unknown", "unknown", "unknown"},
		{"annotations: a deletion", one("annotations: {a: b}"), deleted, "yes", "yes", "yes"},

		{"operations: known", one("operations: [CREATE]"), nil, "yes", "yes", "yes"},
		{"operations: another", one("operations: [UPDATE]"), nil, "no", "no", "no"},
		{"operations: a deletion", one("operations: [DELETE]"), deleted, "yes", "yes", "yes"},

		{"roles: known", "any: [{roles: ['prod:writer']}]", nil, "yes", "yes", "yes"},
		{"roles: unknown", "any: [{roles: ['prod:writer']}]", func(s *policy.Subject) { s.User.RolesKnown, s.User.Roles = false, nil }, "unknown", "unknown", "unknown"},
		{"roles: none", "any: [{roles: ['prod:writer']}]", func(s *policy.Subject) { s.User.Roles = nil }, "no", "no", "no"},
		{"roles: no user", "any: [{roles: ['prod:writer']}]", func(s *policy.Subject) { s.User = policy.User{} }, "yes", "no", "no"},
		{"clusterRoles: known", "any: [{clusterRoles: [view]}]", nil, "yes", "yes", "yes"},
		{"clusterRoles: a pattern", "any: [{clusterRoles: ['vie*']}]", nil, "yes", "no", "no"},
		{"roles: a pattern", "any: [{roles: ['prod:*']}]", nil, "yes", "no", "no"},
		{"roles: known", "any: [{roles: ['prod:writer']}]", nil, "yes", "yes", "yes"},
		{"clusterRoles: unknown", "any: [{clusterRoles: [view]}]", func(s *policy.Subject) { s.User.RolesKnown = false }, "unknown", "unknown", "unknown"},
		{"clusterRoles: unknown, of another user", "any: [{clusterRoles: [view], subjects: [{kind: User, name: bob}]}]", func(s *policy.Subject) { s.User.RolesKnown = false }, "no", "no", "no"},
		{"clusterRoles: of a user without a name", "any: [{clusterRoles: [view]}]", func(s *policy.Subject) { s.User = policy.User{ClusterRoles: []string{"view"}, RolesKnown: true} }, "yes", "yes", "yes"},
		{"clusterRoles: another one of a user without a name", "any: [{clusterRoles: [view]}]", func(s *policy.Subject) { s.User = policy.User{ClusterRoles: []string{"edit"}, RolesKnown: true} }, "no", "no", "no"},
		{"subjects: known", "any: [{subjects: [{kind: User, name: ann}]}]", nil, "yes", "yes", "yes"},
		{"subjects: no user, in a file or a scan", "any: [{subjects: [{kind: User, name: '*'}]}]", func(s *policy.Subject) { s.User = policy.User{} }, "yes", "no", "no"},

		{"unknown and another: one of all that fails decides", "all: [{resources: {" + byLabel + "}}, {resources: {namespaces: [test]}}]", at("eviction", "Eviction"), "no", "no", "no"},
		{"unknown or another: one of any that matches decides", "any: [{resources: {" + byLabel + "}}, {resources: {namespaces: [prod]}}]", at("eviction", "Eviction"), "yes", "yes", "yes"},
	} {
		s := subject("Pod", c.change)
		block := compile(t, c.text)
		for polarity, want := range map[match.Polarity]string{match.Selecting: c.selecting, match.Excluding: c.taking, match.Excepting: c.given} {
			got := block.Matches(s, polarity)
			if value(got) != want {
				t.Errorf("%s: %s at polarity %d: %s, want %s", c.reason, c.text, polarity, value(got), want)
			}
			if cause := got.Cause(); cause != nil && !strings.HasPrefix(cause.Error(), "the rule selects ") {
				t.Errorf("%s: the cause does not name the missing value: %v", c.reason, cause)
			}
		}
	}
}

// autoscaler is one in a version.
func autoscaler(version string) func(*policy.Subject) {
	return func(s *policy.Subject) {
		s.Group, s.Version, s.Kind = "autoscaling", version, "HorizontalPodAutoscaler"
	}
}

// TestUnconvertedPrevails: a rule that cannot be evaluated on an object in its version is not
// evaluated because something else is not known either.
func TestUnconvertedPrevails(t *testing.T) {
	const unknown, version = "{resources: {kinds: ['*'], namespaceSelector: {matchLabels: {env: prod}}}}", "{resources: {kinds: [autoscaling/v1/HorizontalPodAutoscaler]}}"
	for _, c := range []struct {
		text string
		want bool
	}{
		{"any: [" + unknown + ", " + version + "]", true},
		{"all: [" + unknown + ", " + version + "]", true},
		{"any: [{resources: {kinds: [autoscaling/v1/HorizontalPodAutoscaler], namespaceSelector: {matchLabels: {env: prod}}}}]", true},
		{"any: [" + unknown + "]", false},
	} {
		block := compile(t, c.text)
		s := subject("Pod", autoscaler("v2"))
		s.NamespaceKnown = false
		if got := block.Matches(s, match.Selecting); policy.IsUnconverted(got.Cause()) != c.want {
			t.Errorf("%s: %v", c.text, got.Cause())
		}
	}
}

// TestEmptyFilters: an exclusion of nothing excludes nothing, as in Kyverno 1.19.
func TestEmptyFilters(t *testing.T) {
	for _, text := range []string{
		"any: [{}]", "any: [{resources: {}}]", "any: [{resources: {names: []}}]", "any: [{resources: {kinds: []}}]", "any: [{resources: {annotations: {}}}]",
		"any: [{subjects: []}]", "all: [{}, {resources: {kinds: [Pod]}}]", "all: [{resources: {kinds: [Pod]}}, {resources: {namespaces: []}}]", "any: []", "resources: {}",
	} {
		block, err := match.Compile(document(t, text), "exclude")
		if err != nil || !block.Matches(subject("Pod", nil), match.Excluding).False() {
			t.Errorf("%s: excludes, or error %v", text, err)
		}
		if _, err := match.CompileSelecting(document(t, text), "match"); err == nil || !strings.Contains(err.Error(), "match nothing") {
			t.Errorf("%s: as a match: %v", text, err)
		}
	}
	for _, text := range []string{"any: [{resources: {kinds: [Pod], names: []}}]", "any: [{}, {resources: {kinds: [Pod]}}]"} {
		block, err := match.Compile(document(t, text), "exclude")
		if err != nil || !block.Matches(subject("Pod", nil), match.Excluding).True() {
			t.Errorf("%s: excludes nothing, or error %v", text, err)
		}
	}
}

// TestSelection: a rule applies to objects that are selected and not certainly excluded.
func TestSelection(t *testing.T) {
	const pods = "any: [{resources: {kinds: [Pod]}}]"
	for _, c := range []struct {
		reason, match, exclude string
		change                 func(*policy.Subject)
		want                   string
	}{
		{"not excluded", pods, "any: [{resources: {names: [api]}}]", nil, "yes"},
		{"excluded", pods, "any: [{resources: {names: [web]}}]", nil, "no"},
		{"an exclusion that is unknown", pods, "any: [{roles: ['prod:x']}]", func(s *policy.Subject) { s.User.RolesKnown = false }, "unknown"},
		{"an unknown exclusion, of an object that is not selected", "any: [{resources: {kinds: [Job]}}]", "any: [{roles: ['prod:x']}]", func(s *policy.Subject) { s.User.RolesKnown = false }, "no"},
		{"an unknown selection, of an excluded object", "any: [{roles: ['prod:x']}]", pods, func(s *policy.Subject) { s.User.RolesKnown = false }, "no"},
		{"an update adds the excluding label", pods, "any: [{resources: {selector: {matchLabels: {app: web}}}}]", func(s *policy.Subject) {
			s.OldObject = policy.ContentOf(map[string]any{"metadata": map[string]any{}})
		}, "no"},
		{"the label was there before", pods, "any: [{resources: {selector: {matchLabels: {app: web}}}}]", func(s *policy.Subject) { s.OldObject = s.Object }, "no"},
		{"an update takes the excluding label away", pods, "any: [{resources: {selector: {matchLabels: {app: web}}}}]", func(s *policy.Subject) {
			s.OldObject, s.Object = s.Object, policy.ContentOf(map[string]any{})
		}, "yes"},
		{"the object before had labels of a foreign type", pods, "any: [{resources: {selector: {matchLabels: {app: api}}}}]", func(s *policy.Subject) {
			s.OldObject = policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": 7}})
		}, "yes"},
		{"an update takes the selecting label away", "any: [{resources: {selector: {matchLabels: {app: web}}}}]", "{}", func(s *policy.Subject) {
			s.OldObject, s.Object = s.Object, policy.ContentOf(map[string]any{})
		}, "no"},
		{"an update adds the selecting label", "any: [{resources: {selector: {matchLabels: {app: web}}}}]", "{}", func(s *policy.Subject) {
			s.OldObject = policy.ContentOf(map[string]any{})
		}, "yes"},
		{"an object with the selecting label is deleted", "any: [{resources: {selector: {matchLabels: {app: web}}}}]", "{}", func(s *policy.Subject) {
			s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
		}, "yes"},
		{"one with the excluding label is", pods, "any: [{resources: {selector: {matchLabels: {app: web}}}}]", func(s *policy.Subject) {
			s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
		}, "no"},
		{"an excluded pod and its later containers", "any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Job]}}]", pods, at("ephemeralcontainers", "Pod"), "no"},
		{"later containers that the match names, and excluded pods", "any: [{resources: {kinds: [Pod/ephemeralcontainers]}}]", pods, at("ephemeralcontainers", "Pod"), "yes"},
		{"all subresources, and excluded pods", "any: [{resources: {kinds: ['Pod/*']}}]", pods, at("ephemeralcontainers", "Pod"), "yes"},
		{"exec, and every kind is excluded", "any: [{resources: {kinds: [Pod/exec, Pod]}}]", "any: [{resources: {kinds: ['*']}}]", at("exec", "PodExecOptions"), "yes"},
		{"exec, and all subresources are excluded", "any: [{resources: {kinds: [Pod/exec, Job]}}]", "any: [{resources: {kinds: ['Pod/*']}}]", at("exec", "PodExecOptions"), "no"},
	} {
		exclude := document(t, c.exclude)
		selection, err := match.CompileSelection(document(t, c.match), &exclude, "rule", "")
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if got := value(selection.Applies(subject("Pod", c.change))); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestLessKnowledge: an exclusion never grows when knowledge shrinks, and a match never
// ceases to be one: it becomes indeterminate at most.
func TestLessKnowledge(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	filter := func() string {
		var fields []string
		add := func(text string) {
			if random.IntN(3) == 0 {
				fields = append(fields, text)
			}
		}
		add("kinds: [" + pick("Pod", "Service", "'*'", "'*/*'", "'Pod/*'", "Namespace", "Pod/eviction", "'*/scale'", "ClusterRole") + "]")
		add("names: [" + pick("web", "web-bcdfg", "'web-*'", "'*'", "api") + "]")
		add("namespaces: [" + pick("prod", "'*'", "'p*'", "test") + "]")
		add(pick("selector", "namespaceSelector") + ": {" + pick("matchLabels: {app: web}", "matchLabels: {'*': '*'}", "matchExpressions: [{key: app, operator: NotIn, values: [api]}]",
			"matchExpressions: [{key: env, operator: DoesNotExist}]", "matchExpressions: [{key: env, operator: In, values: [prod]}]") + "}")
		add("annotations: {" + pick("a: b", "a: '*'", "c: d") + "}")
		add("operations: [" + pick("CREATE", "UPDATE", "DELETE") + "]")
		text := "resources: {" + strings.Join(fields, ", ") + "}"
		for _, users := range []string{"roles: ['prod:writer']", "clusterRoles: [view]", "subjects: [{kind: User, name: " + pick("ann", "bob", "'*'") + "}]"} {
			if random.IntN(4) == 0 {
				text += ", " + users
			}
		}
		return "{" + text + "}"
	}
	shrinks := []struct {
		name string
		drop func(*policy.Subject)
	}{
		{"labels of the namespace", func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }},
		{"roles", func(s *policy.Subject) { s.User.RolesKnown, s.User.Roles, s.User.ClusterRoles = false, nil, nil }},
		{"the user", func(s *policy.Subject) { s.User = policy.User{} }},
		{"the object", func(s *policy.Subject) { s.Object, s.OldObject = policy.Content{}, policy.Content{} }},
		{"the types of labels", labels(map[string]any{"app": 7, "env": nil})},
		{"the labels", labels("unreadable")},
		{"the metadata", func(s *policy.Subject) { s.Object = policy.ContentOf(map[string]any{"metadata": 7}) }},
	}
	found := map[string]int{}
	for range 6000 {
		text := pick("any", "all") + ": [" + filter() + ", " + filter() + "]"
		block, err := match.Compile(document(t, text), "match")
		if err != nil {
			continue // filters that contradict each other
		}
		s := subject(pick("Pod", "Service", "Namespace", "ClusterRole"), func(s *policy.Subject) {
			labels(map[string]any{"app": pick("web", "api"), "env": "prod"})(s)
			if random.IntN(3) == 0 {
				s.Subresource = pick("status", "eviction", "ephemeralcontainers")
			}
			if s.Kind == "ClusterRole" {
				clusterScoped(s)
			}
		})
		less := *s
		shrink := shrinks[random.IntN(len(shrinks))]
		shrink.drop(&less)
		for _, polarity := range []match.Polarity{match.Excluding, match.Excepting} {
			before, after := value(block.Matches(s, polarity)), value(block.Matches(&less, polarity))
			found[before+after]++
			if before == "no" && after == "yes" {
				t.Fatalf("without %s the exclusion grows: %s", shrink.name, text)
			}
		}
		before, after := value(block.Matches(s, match.Selecting)), value(block.Matches(&less, match.Selecting))
		found[before+after]++
		if before == "yes" && after == "no" {
			t.Fatalf("without %s the match ends: %s", shrink.name, text)
		}
	}
	for _, seen := range []string{"yesyes", "nono", "yesunknown", "nounknown"} {
		if found[seen] == 0 {
			t.Errorf("no subject went from %s: %v", seen, found)
		}
	}
}
