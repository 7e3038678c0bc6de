package constraint_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
)

// request is a subject as the API server sends it.
func request(group, kind string, change ...func(*policy.Subject)) *policy.Subject {
	s := &policy.Subject{
		Group: group, Version: "v1", Kind: kind, Namespace: "shop", Name: "web", Operation: "UPDATE",
		NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"team": "a"}}, User: policy.User{Name: "eve"},
	}
	s.Object = content(kind, map[string]any{"env": "prod"})
	s.OldObject = s.Object
	for _, c := range change {
		c(s)
	}
	return s
}

func content(kind string, labels any) policy.Content {
	return policy.ContentOf(map[string]any{"kind": kind, "metadata": map[string]any{"name": "web", "labels": labels}})
}

// TestPolarity crosses fields with polarities: a field that selects is read widely, one
// that excludes narrowly, and one that is not known decides nothing.
func TestPolarity(t *testing.T) {
	all := "resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*', '*/*']}]\n"
	rule := func(more string) string {
		return "resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], " + more + "}]\n"
	}
	except := func(more string) string { return all + excluding(rule(more)) }
	sub := func(name, operation string) func(*policy.Subject) {
		return func(s *policy.Subject) { s.Subresource, s.Operation = name, operation }
	}
	deleted := func(s *policy.Subject) { s.Operation, s.Object = "DELETE", policy.Content{} }
	created := func(s *policy.Subject) { s.Operation, s.OldObject = "CREATE", policy.Content{} }
	none := func(s *policy.Subject) { s.Object, s.OldObject = policy.Content{}, policy.Content{} }
	unnamed := func(s *policy.Subject) { s.Name = "" }
	file := func(s *policy.Subject) { s.User, s.Namespace, s.NamespaceKnown = policy.User{}, "", false }
	unread := func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }
	bare := func(s *policy.Subject) {
		s.Bare, s.Name, s.Object, s.OldObject = true, "", policy.Content{}, policy.Content{}
	}
	labelled := func(now, before any) func(*policy.Subject) {
		return func(s *policy.Subject) { s.Object, s.OldObject = content(s.Kind, now), content(s.Kind, before) }
	}
	sent := func(kind string, labels any) func(*policy.Subject) {
		return func(s *policy.Subject) { s.Object, s.OldObject = content(kind, labels), policy.Content{} }
	}
	own := func(s *policy.Subject) { s.Namespace, s.NamespaceKnown = "web", false }
	on, off := map[string]any{"keep": "yes"}, map[string]any{"env": "prod"}
	const (
		keepNamespace = "namespaceSelector: {matchLabels: {keep: 'yes'}}\n"
		keepObject    = "objectSelector: {matchLabels: {keep: 'yes'}}\n"
		freeNamespace = "namespaceSelector: {matchExpressions: [{key: keep, operator: DoesNotExist}]}\n"
		freeObject    = "objectSelector: {matchExpressions: [{key: keep, operator: DoesNotExist}]}\n"
		added         = "ephemeralcontainers"
	)
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         string // yes, no, or a part of the error
	}{
		// Subresources: the widening of pods to added containers is of matches alone.
		{"added containers are matched as pods", rule("resources: [pods]"), request("", "Pod", sub(added, "UPDATE")), "yes"},
		{"and are not excluded as pods", except("resources: [pods]"), request("", "Pod", sub(added, "UPDATE")), "yes"},
		{"but as themselves", except("resources: [pods/ephemeralcontainers]"), request("", "Pod", sub(added, "UPDATE")), "no"},
		{"and as any subresource", except("resources: ['pods/*']"), request("", "Pod", sub(added, "UPDATE")), "no"},
		{"not as anything without a subresource", except("resources: ['*']"), request("", "Pod", sub(added, "UPDATE")), "yes"},
		{"an exclusion of pods by name takes back the widening", rule("resources: [pods]") + excluding(rule("resources: [pods], resourceNames: [web]")), request("", "Pod", sub(added, "UPDATE")), "no"},
		{"of other pods it does not", rule("resources: [pods]") + excluding(rule("resources: [pods], resourceNames: [db]")), request("", "Pod", sub(added, "UPDATE")), "yes"},
		{"an exclusion of added containers holds against the widening", rule("resources: [pods]") + excluding(rule("resources: [pods/ephemeralcontainers]")), request("", "Pod", sub(added, "UPDATE")), "no"},
		{"and leaves the pod", rule("resources: [pods]") + excluding(rule("resources: [pods/ephemeralcontainers]")), request("", "Pod"), "yes"},
		{"another kind of that subresource", rule("resources: [widgets]"), request("example.com", "Widget", sub(added, "UPDATE")), "no"},
		{"connections are not the pod", rule("resources: [pods]"), request("", "Pod", sub("exec", "CONNECT")), "no"},
		{"nor excluded as the pod", except("resources: [pods]"), request("", "Pod", sub("exec", "CONNECT")), "yes"},
		{"an exclusion by operation", all + excluding(strings.Replace(rule("resources: [pods]"), "operations: ['*']", "operations: [DELETE]", 1)), request("", "Pod"), "yes"},
		{"at that operation", all + excluding(strings.Replace(rule("resources: [pods]"), "operations: ['*']", "operations: [DELETE]", 1)), request("", "Pod", deleted), "no"},
		{"an image may be of an added container, which is excluded", rule("resources: [pods]") + excluding(rule("resources: [pods/ephemeralcontainers]")), request("", "Pod", bare), "only images"},
		{"or which alone is not excluded", rule("resources: ['pods', 'pods/*']") + excluding(rule("resources: [pods]")), request("", "Pod", bare), "only images"},
		{"all of it is excluded", rule("resources: [pods, services]") + excluding(rule("resources: ['pods', 'pods/*']")), request("", "Pod", bare), "no"},

		// The body of a subresource may be of another kind than the object.
		{"a Scale of the resource", rule("resources: [widgets/scale]"), scaled("example.com", "widgets"), "yes"},
		{"of another resource", rule("resources: [widgets/scale]"), scaled("example.com", "gadgets"), "no"},
		{"of another group", strings.Replace(rule("resources: [widgets/scale]"), "apiGroups: ['*']", "apiGroups: [example.com]", 1), scaled("example.net", "widgets"), "no"},
		{"of a resource that is not known", rule("resources: [widgets/scale]"), scaled("", ""), "does not name the resource"},
		{"of any subresource", rule("resources: ['*/scale']"), scaled("", ""), "yes"},
		{"of any in a group", strings.Replace(rule("resources: ['*/*']"), "apiGroups: ['*']", "apiGroups: [example.com]", 1), scaled("example.com", "gadgets"), "yes"},
		{"options of a resource that is not known", rule("resources: [pods/exec]"), body("", "PodExecOptions", "exec", ""), "does not name the resource"},
		{"and of one that is", rule("resources: [pods/exec]"), body("", "PodExecOptions", "exec", "pods"), "yes"},
		{"of another one", rule("resources: [pods/proxy]"), body("", "ServiceProxyOptions", "proxy", "services"), "no"},
		{"excluded options of a resource that is not known", except("resources: [pods/exec]"), body("", "PodExecOptions", "exec", ""), "does not name the resource"},
		{"options at another subresource", rule("resources: [pods/attach]"), body("", "PodExecOptions", "exec", ""), "no"},
		{"an Eviction", rule("resources: [pods/eviction]"), body("policy", "Eviction", "eviction", ""), "does not name the resource"},
		{"a Binding", rule("resources: [pods/binding]"), body("", "Binding", "binding", ""), "does not name the resource"},
		{"a request for a token", rule("resources: [serviceaccounts/token]"), body("authentication.k8s.io", "TokenRequest", "token", ""), "does not name the resource"},
		{"another kind than that of the resource", rule("resources: [pods/exec]"), body("", "ExecRequest", "exec", "pods"), "yes"},
		{"options without a subresource", rule("resources: [pods/exec]"), body("", "PodExecOptions", "", ""), "no"},
		{"the object is not its Scale", rule("resources: [widgets]"), scaled("example.com", "widgets"), "no"},
		{"nor is its status", rule("resources: [widgets/status]"), scaled("example.com", "widgets"), "no"},
		{"an excluded Scale", except("resources: [widgets/scale]"), scaled("example.com", "widgets"), "no"},
		{"that of another resource is not excluded", except("resources: [widgets/scale]"), scaled("example.com", "gadgets"), "yes"},
		{"nor is one of an unknown resource for certain", except("resources: [widgets/scale]"), scaled("", ""), "does not name the resource"},
		{"the version is the resource's", strings.Replace(rule("resources: [widgets/scale]"), "apiVersions: ['*']", "apiVersions: [v1beta2]", 1) + "matchPolicy: Exact\n", scaled("example.com", "widgets"), "yes"},
		{"not the body's", strings.Replace(rule("resources: [widgets/scale]"), "apiVersions: ['*']", "apiVersions: [v1]", 1) + "matchPolicy: Exact\n", scaled("example.com", "widgets"), "no"},
		{"a resource of which no kind is known", strings.Replace(rule("resources: [things/scale]"), "apiGroups: ['*']", "apiGroups: [example.org]", 1), scaled("example.org", "things"), "yes"},
		{"another of its group", strings.Replace(rule("resources: [things/scale]"), "apiGroups: ['*']", "apiGroups: [example.org]", 1), scaled("example.org", "others"), "no"},
		{"a label on the Scale does not deselect the object", rule("resources: ['*/scale']") + freeObject, scaled("example.com", "widgets", sent("Scale", on)), "yes"},

		// Names.
		{"a generated name may follow", rule("resources: [pods], resourceNames: [web-x7kd2]"), generated(), "yet to be generated"},
		{"one with other letters may not", rule("resources: [pods], resourceNames: [web-abcde, web-X7KD2]"), generated(), "no"},
		{"one of another length may not", rule("resources: [pods], resourceNames: [web, web-, web-x, web-x7kd22]"), generated(), "no"},
		{"and is not excluded", except("resources: [pods], resourceNames: [web, web-, web-x7kd2]"), generated(), "yes"},
		{"an excluded name", except("resources: [pods], resourceNames: [web]"), request("", "Pod"), "no"},
		{"the deletion of a collection names its objects", rule("resources: [pods], resourceNames: [web]"), request("", "Pod", deleted, unnamed), "yes"},
		{"in exclusions, too", except("resources: [pods], resourceNames: [web]"), request("", "Pod", deleted, unnamed), "no"},
		{"a name that is not known", rule("resources: [pods], resourceNames: [web]"), request("", "Pod", none, unnamed), "name"},
		{"excludes nothing for certain", except("resources: [pods], resourceNames: [web]"), request("", "Pod", none, unnamed), "name"},
		{"the name that an Eviction has is the requester's", except("resources: ['pods/*'], resourceNames: [web]"), request("", "Pod", sub("eviction", "CREATE"), unnamed, sent("Eviction", on)), "name"},

		// Versions.
		{"another version is not converted", version("v1"), request("autoscaling", "HorizontalPodAutoscaler", in("v2")), "write the object in version v1"},
		{"the version that is named", version("v1"), request("autoscaling", "HorizontalPodAutoscaler", in("v1")), "yes"},
		{"one of those", version("v1, v2"), request("autoscaling", "HorizontalPodAutoscaler", in("v2")), "yes"},
		{"any", version("'*'"), request("autoscaling", "HorizontalPodAutoscaler", in("v2")), "yes"},
		{"not another one, exactly", version("v1") + "matchPolicy: Exact\n", request("autoscaling", "HorizontalPodAutoscaler", in("v2")), "no"},
		{"a version that Kubernetes does not serve any more means no object", strings.Replace(rule("resources: [cronjobs]"), "apiVersions: ['*']", "apiVersions: [v1beta1]", 1), request("batch", "CronJob"), "no"},
		{"and excludes none", all + excluding(strings.Replace(rule("resources: [cronjobs]"), "apiVersions: ['*']", "apiVersions: [v1beta1]", 1)), request("batch", "CronJob"), "yes"},
		{"a version of a custom resource", strings.Replace(rule("resources: [widgets]"), "apiVersions: ['*']", "apiVersions: [v2]", 1), request("example.com", "Widget"), "write the object in version v2"},
		{"that the API server serves", strings.Replace(rule("resources: [widgets]"), "apiVersions: ['*']", "apiVersions: [v2]", 1), request("example.com", "Widget", serving("v1", "v2")), "write the object in version v2"},
		{"that it does not serve", strings.Replace(rule("resources: [widgets]"), "apiVersions: ['*']", "apiVersions: [v2]", 1), request("example.com", "Widget", serving("v1")), "no"},
		{"another one excluded", all + excluding(version("v1")), request("autoscaling", "HorizontalPodAutoscaler", in("v2")), "equivalent"},
		{"a namespace that is not selected decides before", version("v1") + "namespaceSelector: {matchLabels: {team: b}}\n", request("autoscaling", "HorizontalPodAutoscaler", in("v2")), "no"},
		{"a name that is not known does not hide it", strings.Replace(rule("resources: [horizontalpodautoscalers], resourceNames: [web]"), "apiVersions: ['*']", "apiVersions: [v1]", 1), request("autoscaling", "HorizontalPodAutoscaler", in("v2"), none, unnamed), "write the object in version v1"},
		{"the version itself is excluded", all + excluding(strings.Replace(rule("resources: [cronjobs]"), "apiVersions: ['*']", "apiVersions: [v1]", 1)), request("batch", "CronJob"), "no"},
		{"no other version, exactly", all + excluding(strings.Replace(rule("resources: [cronjobs]"), "apiVersions: ['*']", "apiVersions: [v1beta1]", 1)) + "matchPolicy: Exact\n", request("batch", "CronJob"), "yes"},
		{"events of the other group are not excluded for certain", all + excluding(strings.Replace(rule("resources: [events]"), "apiGroups: ['*']", "apiGroups: ['']", 1)), request("events.k8s.io", "Event"), "equivalent"},

		// Scope.
		{"a file without a namespace may be of a kind that is in one", rule("resources: ['*'], scope: Cluster"), request("other.example.com", "Thing", file), "scope"},
		{"and is not excluded for certain", except("resources: ['*'], scope: Cluster"), request("other.example.com", "Thing", file), "scope"},
		{"a request shows it", except("resources: ['*'], scope: Cluster"), request("other.example.com", "Thing", func(s *policy.Subject) { s.Namespace = "" }), "no"},
		{"a kind of the cluster shows it", except("resources: ['*'], scope: Cluster"), request("example.com", "Widget", file), "no"},
		{"a Namespace is in none", except("resources: ['*'], scope: Namespaced"), request("", "Namespace", own), "yes"},

		// Labels of namespaces.
		{"a Namespace that goes", rule("resources: [namespaces]") + keepNamespace, request("", "Namespace", own, labelled(nil, on), deleted), "yes"},
		{"another that goes", rule("resources: [namespaces]") + keepNamespace, request("", "Namespace", own, labelled(nil, off), deleted), "no"},
		{"one that is deleted, selected by a label that it does not have", rule("resources: [namespaces]") + freeNamespace, request("", "Namespace", own, labelled(nil, on), deleted), "no"},
		{"one of which nothing is known", rule("resources: [namespaces]") + keepNamespace, request("", "Namespace", own, none), "not known"},
		{"or its stored labels alone, which a deletion keeps", rule("resources: [namespaces]") + keepNamespace, request("", "Namespace", none, deleted), "no"},
		{"and an update changes", rule("resources: [namespaces]") + keepNamespace, request("", "Namespace", none), "not known"},
		{"a label taken away with the request", rule("resources: [namespaces]") + keepNamespace, request("", "Namespace", own, labelled(off, on)), "yes"},
		{"an exempting label added with the request", rule("resources: [namespaces]") + freeNamespace, request("", "Namespace", own, labelled(on, off)), "yes"},
		{"an exempting label that was there", rule("resources: [namespaces]") + freeNamespace, request("", "Namespace", own, labelled(on, on)), "no"},
		{"a new Namespace has new labels alone", rule("resources: [namespaces]") + freeNamespace, request("", "Namespace", own, labelled(on, nil), created), "no"},
		{"the subresource of a Namespace", rule("resources: ['namespaces/*']") + keepNamespace, request("", "Namespace", own, labelled(on, on), sub("finalize", "UPDATE")), "yes"},
		{"labels that are not text are not absent", rule("resources: [namespaces]") + freeNamespace, request("", "Namespace", own, labelled(map[string]any{"keep": 1}, nil), created), "not text"},
		{"unread labels of a namespace", rule("resources: [pods]") + freeNamespace, request("", "Pod", unread), "not known"},
		{"of an object in none", rule("resources: [nodes]") + freeNamespace, request("", "Node", unread, func(s *policy.Subject) { s.Namespace = "" }), "yes"},
		{"of a deletion", rule("resources: [pods]") + freeNamespace, request("", "Pod", unread, deleted), "not known"},
		{"do not matter where the name is excluded", except("resources: [pods], resourceNames: [web]") + freeNamespace, request("", "Pod", unread), "no"},

		// Labels of objects.
		{"an object that goes", rule("resources: [pods]") + keepObject, request("", "Pod", labelled(nil, on), deleted), "yes"},
		{"of which nothing is known", rule("resources: [pods]") + keepObject, request("", "Pod", none, deleted), "not known"},
		{"an exempting label added", rule("resources: [pods]") + freeObject, request("", "Pod", labelled(on, off)), "yes"},
		{"a label on the Eviction does not deselect the pod", rule("resources: ['pods/*']") + freeObject, request("", "Pod", sub("eviction", "CREATE"), sent("Eviction", on)), "yes"},
		{"a label on the Eviction selects", rule("resources: ['pods/*']") + keepObject, request("", "Pod", sub("eviction", "CREATE"), sent("Eviction", on)), "yes"},
		{"an Eviction without labels is selected by their absence, as in Kubernetes", rule("resources: ['pods/*']") + keepObject, request("", "Pod", sub("eviction", "CREATE"), sent("Eviction", nil)), "no"},
		{"a label on the pod deselects it", rule("resources: [pods]") + freeObject, request("", "Pod", labelled(on, on)), "no"},
		{"labels that are a list", rule("resources: [pods]") + freeObject, request("", "Pod", labelled([]any{"keep"}, nil), created), "not an object"},
	} {
		matched, err := compile(t, c.text).Matches(c.subject)
		got := map[bool]string{true: "yes", false: "no"}[matched]
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || c.want == "yes" || c.want == "no" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// version is a rule for autoscalers in some versions.
func version(named string) string {
	return "resourceRules:\n- {apiGroups: ['*'], apiVersions: [" + named + "], operations: ['*'], resources: [horizontalpodautoscalers]}\n"
}

func in(version string) func(*policy.Subject) { return func(s *policy.Subject) { s.Version = version } }

// kindsIn are the versions of every resource.
type kindsIn []string

func (k kindsIn) KindOf(_, version, _ string) (string, bool) {
	return "Widget", slices.Contains(k, version)
}

func serving(versions ...string) func(*policy.Subject) {
	return func(s *policy.Subject) {
		s.Served = kindsIn(versions)
		s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": s.Group, "version": s.Version, "resource": "widgets"}})
	}
}

// scaled is a request for the scale of a resource, which brings a Scale.
func scaled(group, resource string, change ...func(*policy.Subject)) *policy.Subject {
	return request("autoscaling", "Scale", append(change, func(s *policy.Subject) {
		s.Subresource = "scale"
		if resource != "" {
			s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": group, "version": "v1beta2", "resource": resource}})
		}
	})...)
}

// body is a request with a body of a kind of its own, for a resource of the core group.
func body(group, kind, subresource, resource string) *policy.Subject {
	return request(group, kind, func(s *policy.Subject) {
		s.Subresource = subresource
		if resource != "" {
			s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": "", "version": "v1", "resource": resource}})
		}
	})
}

// generated is a pod with generateName and no name.
func generated() *policy.Subject {
	return request("", "Pod", func(s *policy.Subject) {
		s.Name, s.Operation, s.OldObject = "", "CREATE", policy.Content{}
		s.Object = policy.ContentOf(map[string]any{"kind": "Pod", "metadata": map[string]any{"generateName": "web-"}})
	})
}

// TestLessKnowledge: an exclusion never grows when knowledge shrinks. A constraint that
// matches a request matches it, or is indeterminate, whatever is no longer known.
func TestLessKnowledge(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	one := func(list ...string) string { return list[random.IntN(len(list))] }
	rule := func() string {
		return fmt.Sprintf("{apiGroups: [%s], apiVersions: [%s], operations: [%s], resources: [%s], scope: %s, resourceNames: [%s]}",
			one("'*'", "''", "'', apps"), one("'*'", "v1", "v1beta1"), one("'*'", "CREATE", "UPDATE", "DELETE", "UPDATE, DELETE"),
			one("pods", "'*'", "'*/*'", "pods, pods/ephemeralcontainers", "pods/ephemeralcontainers", "namespaces"), one("'*'", "Cluster", "Namespaced"), one("", "", "web", "db"))
	}
	selector := func(name string) string {
		return one("", "", name+": {matchLabels: {keep: 'yes'}}\n", name+": {matchExpressions: [{key: keep, operator: DoesNotExist}]}\n")
	}
	labels := func() any {
		return []any{nil, map[string]any{"keep": "yes"}, map[string]any{"env": "prod"}}[random.IntN(3)]
	}
	forget := []func(*policy.Subject){
		func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil },
		func(s *policy.Subject) { s.Object, s.OldObject = policy.Content{}, policy.Content{} },
		func(s *policy.Subject) { s.User = policy.User{} },
		func(s *policy.Subject) {
			if s.Kind == "Pod" && s.Operation != "DELETE" && (s.Subresource == "" || s.Operation == "UPDATE") {
				s.Bare, s.Subresource, s.Operation, s.Name = true, "", "CREATE", ""
				s.Object, s.OldObject = policy.Content{}, policy.Content{}
			}
		},
	}
	kept := 0
	for range 5_000 {
		text := fmt.Sprintf("resourceRules: [%s, %s]\nexcludeResourceRules: [%s]\nmatchPolicy: %s\n", rule(), rule(), rule(), one("Exact", "Equivalent")) + selector("namespaceSelector") + selector("objectSelector")
		c, err := constraint.Compile(read(t, text), "spec", widgets{})
		if err != nil {
			continue
		}
		s := request("", one("Pod", "Pod", "Namespace"), func(s *policy.Subject) {
			s.Operation = one("CREATE", "UPDATE", "DELETE")
			s.Subresource = one("", "", "ephemeralcontainers")
			s.NamespaceLabels = map[string]string{"keep": one("yes", "no")}
			s.Object, s.OldObject = content(s.Kind, labels()), content(s.Kind, labels())
			switch s.Operation {
			case "CREATE":
				s.OldObject, s.Subresource = policy.Content{}, ""
			case "DELETE":
				s.Object, s.Subresource = policy.Content{}, ""
			}
			if s.Kind == "Namespace" {
				s.Namespace, s.Subresource, s.NamespaceKnown = s.Name, "", false
			}
		})
		if matched, err := c.Matches(s); err != nil || !matched {
			continue
		}
		kept++
		less := *s
		for _, i := range slices.Sorted(slices.Values(random.Perm(len(forget))[:1+random.IntN(len(forget))])) {
			forget[i](&less)
		}
		if matched, err := c.Matches(&less); err == nil && !matched {
			t.Fatalf("it matches %+v, and not %+v:\n%s", s, less, text)
		}
	}
	if kept < 200 {
		t.Errorf("only %d cases match", kept)
	}
}
