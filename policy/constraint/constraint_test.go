package constraint_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
)

// widgets knows one kind more.
type widgets struct{}

func (widgets) Named(group, name string) []constraint.Resource {
	if name != "widgets" || group != "*" && group != "example.com" {
		return nil
	}
	return []constraint.Resource{{Name: "widgets", Group: "example.com", Kind: "Widget", Cluster: true}}
}

func read(t testing.TB, text string) *admission.MatchResources {
	t.Helper()
	var doc admission.MatchResources
	if err := yaml.UnmarshalStrict([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return &doc
}

func compile(t testing.TB, text string) *constraint.Constraint {
	t.Helper()
	c, err := constraint.Compile(read(t, text), "spec.matchConstraints", widgets{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rules writes one rule about resources, with more fields.
func rules(resources, more string) string {
	return fmt.Sprintf("resourceRules: [{apiGroups: ['*'], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%s]%s}]\n", resources, more)
}

func pod(change ...func(*policy.Subject)) *policy.Subject {
	s := &policy.Subject{
		Object:  policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": map[string]any{"env": "prod"}, "generateName": "web-"}}),
		Version: "v1", Kind: "Pod", Namespace: "shop", Operation: "CREATE",
		NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"team": "a"}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// excluding writes the rule as one that excludes.
func excluding(rules string) string { return "excludeR" + rules[1:] }

// of has a rule be about other operations.
func of(rules, operations string) string {
	return strings.Replace(rules, "CREATE, UPDATE", operations, 1)
}

func TestMatches(t *testing.T) {
	named := func(s *policy.Subject) { s.Name = "web" }
	bare := func(s *policy.Subject) { s.Bare, s.Object = true, policy.Content{} }
	nowhere := func(s *policy.Subject) { s.Namespace, s.NamespaceKnown = "", false }
	deployment := func(s *policy.Subject) { s.Group, s.Kind = "apps", "Deployment" }
	widget := func(s *policy.Subject) { s.Group, s.Kind, s.Namespace = "example.com", "Widget", "" }
	namespace := func(s *policy.Subject) { s.Kind, s.Namespace, s.NamespaceKnown = "Namespace", "", false }
	ephemeral := func(s *policy.Subject) { s.Subresource, s.Operation = "ephemeralcontainers", "UPDATE" }
	unlabelled := func(s *policy.Subject) { s.OldObject, s.Object = s.Object, policy.ContentOf(map[string]any{}) }
	unknown := func(s *policy.Subject) { s.NamespaceKnown = false }
	other := func(s *policy.Subject) { s.Version = "v2" }
	kind := func(group, kind, namespace string) func(*policy.Subject) {
		return func(s *policy.Subject) { s.Group, s.Kind, s.Namespace = group, kind, namespace }
	}
	status := func(s *policy.Subject) { s.Subresource = "status" }
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         string // yes, no, or a part of the error if indeterminate
	}{
		{"the resource", rules("pods", ""), pod(), "yes"},
		{"another resource", rules("deployments", ""), pod(), "no"},
		{"one of several", rules("deployments, pods", ""), pod(deployment), "yes"},
		{"any resource", rules("'*'", ""), pod(deployment), "yes"},
		{"any resource, and no subresource", rules("'*'", ""), pod(ephemeral), "no"},
		{"any subresource", rules("'*/*'", ""), pod(ephemeral), "yes"},
		{"containers that are added to pods", rules("pods", ""), pod(ephemeral), "yes"},
		{"named for themselves", rules("pods/ephemeralcontainers", ""), pod(ephemeral), "yes"},
		{"and nothing else", rules("pods/ephemeralcontainers", ""), pod(), "no"},
		{"another group", strings.Replace(rules("pods", ""), "'*'", "apps", 1) + "", pod(), "refused"},
		{"a kind that the cluster has", rules("widgets", ""), pod(widget), "yes"},
		{"another version is an equivalent one, and is not converted here", rules("pods", ""), pod(other), "write the object in version v1"},
		{"with matchPolicy Exact", rules("pods", "") + "matchPolicy: Exact\n", pod(other), "no"},
		{"with matchPolicy Equivalent", rules("pods", "") + "matchPolicy: Equivalent\n", pod(other), "write the object in version v1"},
		{"with an empty matchPolicy", rules("pods", "") + "matchPolicy: ''\n", pod(other), "write the object in version v1"},
		{"the very version", rules("pods", "") + "matchPolicy: Exact\n", pod(), "yes"},
		{"another kind of the group", rules("deployments", ""), pod(kind("apps", "StatefulSet", "shop")), "no"},
		{"a kind of one name in two groups", rules("events", ""), pod(kind("events.k8s.io", "Event", "shop")), "yes"},
		{"and in one of them, which is stored as the other", strings.Replace(rules("events", ""), "'*'", "''", 1), pod(kind("events.k8s.io", "Event", "shop")), "equivalent one"},
		{"but not exactly", strings.Replace(rules("events", ""), "'*'", "''", 1) + "matchPolicy: Exact\n", pod(kind("events.k8s.io", "Event", "shop")), "no"},
		{"and in that one", strings.Replace(rules("events", ""), "'*'", "''", 1), pod(kind("", "Event", "shop")), "yes"},
		{"anything in a group", strings.Replace(rules("'*'", ""), "'*'", "apps", 1), pod(deployment), "yes"},
		{"and nothing of another", strings.Replace(rules("'*'", ""), "'*'", "apps", 1), pod(), "no"},
		{"the status of a pod", rules("pods/status", ""), pod(status), "yes"},
		{"which is not the pod", rules("pods", ""), pod(status), "no"},
		{"another operation", rules("pods", ""), pod(func(s *policy.Subject) { s.Operation = "DELETE" }), "no"},
		{"the name", rules("pods", ", resourceNames: [web]"), pod(named), "yes"},
		{"another name", rules("pods", ", resourceNames: [other]"), pod(named), "no"},
		{"a generated name", rules("pods", ", resourceNames: [web-x7kd2]"), pod(), "yet to be generated"},
		{"the name that another is generated from", rules("pods", ", resourceNames: [web]"), pod(), "no"},
		{"another generated name", rules("pods", ", resourceNames: [other]"), pod(), "no"},
		{"a name, beside one that was generated from", rules("pods", ", resourceNames: [web]"), pod(kind("", "Pod", "shop"), func(s *policy.Subject) { s.Name = "db" }), "no"},
		{"no name at all", rules("pods", ", resourceNames: [web]"), pod(func(s *policy.Subject) { s.Object = policy.ContentOf(map[string]any{}) }), "no"},
		{"in a namespace", rules("'*'", ", scope: Namespaced"), pod(), "yes"},
		{"in none", rules("'*'", ", scope: Cluster"), pod(), "no"},
		{"a file names no namespace", rules("pods", ", scope: Namespaced"), pod(nowhere), "yes"},
		{"of the cluster", rules("widgets", ", scope: Cluster"), pod(widget), "yes"},
		{"anything of the cluster", rules("'*'", ", scope: Cluster"), pod(widget), "yes"},
		{"anything of the cluster, of a kind that is known", rules("'*'", ", scope: Cluster"), pod(kind("", "Node", "")), "yes"},
		{"a Namespace is of the cluster, though the request names it", rules("'*'", ", scope: Cluster"), pod(kind("", "Namespace", "shop")), "yes"},
		{"anything in a namespace, from a file that names none", rules("'*'", ", scope: Namespaced"), pod(nowhere), "yes"},
		{"anything in a namespace, and a kind of the cluster", rules("'*'", ", scope: Namespaced"), pod(kind("", "Node", "")), "no"},
		{"the name of a kind of the cluster, in another group", rules("'*'", ", scope: Namespaced"), pod(kind("example.com", "Node", "shop")), "yes"},
		{"excluded", rules("pods, services", "") + excluding(rules("pods", "")), pod(), "no"},
		{"excluded by name", rules("pods", "") + "excludeR" + rules("pods", ", resourceNames: [web]")[1:], pod(named), "no"},
		{"a generated name excludes nothing", rules("pods", "") + "excludeR" + rules("pods", ", resourceNames: [web]")[1:], pod(), "yes"},
		{"labels", rules("pods", "") + "objectSelector: {matchLabels: {env: prod}}\n", pod(), "yes"},
		{"other labels", rules("pods", "") + "objectSelector: {matchLabels: {env: dev}}\n", pod(), "no"},
		{"no label", rules("pods", "") + "objectSelector: {matchExpressions: [{key: other, operator: DoesNotExist}]}\n", pod(), "yes"},
		{"no label, and there was no object before", rules("pods", "") + "objectSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}\n", pod(), "no"},
		{"labels that are taken away", rules("pods", "") + "objectSelector: {matchLabels: {env: prod}}\n", pod(unlabelled), "yes"},
		{"an empty selector", rules("pods", "") + "objectSelector: {}\nnamespaceSelector: {}\n", pod(unknown), "yes"},
		{"the namespace's labels", rules("pods", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(), "yes"},
		{"other labels of it", rules("pods", "") + "namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [a]}]}\n", pod(), "no"},
		{"unknown labels", rules("pods", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(unknown), "not known"},
		{"of a file without a namespace", rules("pods", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(nowhere), "not known"},
		{"a Namespace's own labels", rules("namespaces", "") + "namespaceSelector: {matchLabels: {env: prod}}\n", pod(namespace), "yes"},
		{"a Namespace's other labels", rules("namespaces", "") + "namespaceSelector: {matchLabels: {env: dev}}\n", pod(namespace), "no"},
		{"a Namespace of another group stands in one", rules("'*'", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(kind("example.com", "Namespace", "shop")), "yes"},
		{"a known kind that is in no namespace", rules("nodes", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(kind("", "Node", ""), unknown), "yes"},
		{"an object in no namespace", rules("widgets", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(widget, unknown), "yes"},
		{"labels do not matter where the kind is another", rules("deployments", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(unknown), "no"},
		{"only images are known", rules("pods", ""), pod(bare), "yes"},
		{"and a name is asked for", rules("pods", ", resourceNames: [web]"), pod(bare), "only images"},
		{"and labels", rules("pods", "") + "objectSelector: {matchLabels: {env: prod}}\n", pod(bare), "only images"},
		{"and a namespace", rules("pods", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(bare, nowhere), "only images"},
		{"and their namespace", rules("pods", "") + "namespaceSelector: {matchLabels: {team: a}}\n", pod(bare), "yes"},
		{"and its other labels", rules("pods", "") + "namespaceSelector: {matchLabels: {team: b}}\n", pod(bare), "no"},
		{"pods that are created", of(rules("pods", ""), "CREATE"), pod(bare), "yes"},
		{"pods that are changed", of(rules("pods", ""), "UPDATE"), pod(bare), "yes"},
		{"pods that are deleted", of(rules("pods", ""), "DELETE"), pod(bare), "no"},
		{"the status of pods", rules("pods/status", ""), pod(bare), "no"},
		{"both are excluded", rules("pods, services", "") + excluding(rules("pods", "")), pod(bare), "no"},
		{"deletions are excluded", rules("pods", "") + excluding(of(rules("pods", ""), "DELETE")), pod(bare), "yes"},
		{"the images of containers that may be added", rules("pods/ephemeralcontainers", ""), pod(bare), "yes"},
		{"updates are excluded", rules("pods", "") + "excludeR" + strings.Replace(rules("pods", ""), "CREATE, UPDATE", "UPDATE", 1)[1:], pod(bare), "only images"},
	} {
		if c.want == "refused" {
			if _, err := constraint.Compile(read(t, c.text), "a", widgets{}); err == nil {
				t.Errorf("%s: it compiles", c.reason)
			}
			continue
		}
		matched, err := compile(t, c.text).Matches(c.subject)
		switch {
		case err != nil && (c.want == "yes" || c.want == "no" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		case err == nil && (c.want != "yes" && c.want != "no" || matched != (c.want == "yes")):
			t.Errorf("%s: %t, want %s", c.reason, matched, c.want)
		}
	}
}

// many writes a number of rules.
func many(n int) string {
	const rule = "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}, "
	return "resourceRules: [" + strings.Repeat(rule, n) + "]\n"
}

// names writes a number of names.
func names(n int) string { return strings.TrimSuffix(strings.Repeat("v1, ", n), ", ") }

func TestRefused(t *testing.T) {
	for _, c := range []struct{ reason, text, path string }{
		{"no rules", "{}", ".resourceRules"},
		{"no resources", rules("", ""), ".resourceRules[0].resources"},
		{"a kind", rules("Pod", ""), ".resourceRules[0].resources[0]"},
		{"a resource that Kubernetes does not have", strings.Replace(rules("gadgets", ""), "'*'", "'', apps", 1), ".resourceRules[0].resources[0]"},
		{"one that Kubernetes had in another group", strings.Replace(rules("podsecuritypolicies", ""), "'*'", "apps", 1), ".resourceRules[0].resources[0]"},
		{"one of another group alone", strings.Replace(rules("deployments", ""), "'*'", "''", 1), ".resourceRules[0].resources[0]"},
		{"one beside others that exist", strings.Replace(rules("pods, gadgets", ""), "'*'", "''", 1), ".resourceRules[0].resources[1]"},
		{"a subresource that pods do not have", rules("pods/foo", ""), ".resourceRules[0].resources[0]"},
		{"one that others have", rules("pods/scale", ""), ".resourceRules[0].resources[0]"},
		{"one that pods have", rules("deployments/exec", ""), ".resourceRules[0].resources[0]"},
		{"a subresource of nothing", rules("'/status'", ""), ".resourceRules[0].resources[0]"},
		{"an empty subresource", rules("pods/", ""), ".resourceRules[0].resources[0]"},
		{"an empty subresource of anything", rules("'*/'", ""), ".resourceRules[0].resources[0]"},
		{"a subresource of a subresource", rules("pods/status/a", ""), ".resourceRules[0].resources[0]"},
		{"too many rules", many(201), ".resourceRules: 201 rules"},
		{"too many rules that exclude", rules("pods", "") + excluding(many(201)), ".excludeResourceRules: 201 rules"},
		{"too many versions", strings.Replace(rules("pods", ""), "v1", names(501), 1), ".resourceRules[0].apiVersions: want 1 to 500"},
		{"too many names", rules("pods", ", resourceNames: ["+names(501)+"]"), ".resourceRules[0].resourceNames: 501"},
		{"an unknown scope", rules("pods", ", scope: All"), ".resourceRules[0].scope"},
		{"an unknown operation", strings.Replace(rules("pods", ""), "CREATE", "MAKE", 1), ".resourceRules[0].operations[0]"},
		{"no group", strings.Replace(rules("pods", ""), "['*']", "[]", 1), ".resourceRules[0].apiGroups"},
		{"an unknown policy", rules("pods", "") + "matchPolicy: Other\n", ".matchPolicy"},
		{"a selector that cannot be evaluated", rules("pods", "") + "objectSelector: {matchExpressions: [{key: a, operator: Is}]}\n", ".objectSelector"},
		{"an exclusion that is none", rules("pods", "") + excluding(strings.Replace(rules("podz", ""), "'*'", "''", 1)), ".excludeResourceRules[0].resources[0]"},
	} {
		_, err := constraint.Compile(read(t, c.text), "spec", widgets{})
		field, ok := errors.AsType[*constraint.FieldError](err)
		if !ok || !strings.Contains(err.Error(), "spec"+c.path) || field.Path == "" {
			t.Errorf("%s: %v; want %s", c.reason, err, c.path)
		}
	}
	for reason, text := range map[string]string{
		"as many rules as may be":              many(200) + excluding(strings.ReplaceAll(many(200), "CREATE", "DELETE")),
		"as many versions":                     strings.Replace(rules("pods", ""), "v1", names(500), 1),
		"as many names":                        rules("pods", ", resourceNames: ["+names(500)+"]"),
		"a subresource":                        rules("pods/status", ""),
		"a subresource of some":                rules("statefulsets/scale, namespaces/finalize, pods/exec, 'deployments/*'", ""),
		"a product of which one pair exists":   strings.Replace(rules("pods, deployments", ""), "'*'", "''", 1),
		"a product of which two pairs exist":   strings.Replace(rules("pods, deployments", ""), "'*'", "'', apps", 1),
		"a resource that a definition brings":  strings.Replace(rules("gadgets", ""), "'*'", "example.com", 1),
		"a resource of any group":              rules("gadgets", ""),
		"a resource that Kubernetes had":       strings.Replace(rules("podsecuritypolicies", ""), "'*'", "policy", 1),
		"one of a group that Kubernetes had":   strings.Replace(rules("ingresses", ""), "'*'", "extensions", 1),
		"a subresource of an unknown resource": strings.Replace(rules("gadgets/foo", ""), "'*'", "example.com", 1),
	} {
		if _, err := constraint.Compile(read(t, text), "spec", nil); err != nil {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if _, err := constraint.Compile(nil, "spec", nil); err == nil {
		t.Error("nothing matches everything")
	}
}

// TestLater: a resource that is not served yet matches nothing, and changes nothing for the
// resources named next to it.
func TestLater(t *testing.T) {
	task := pod(func(s *policy.Subject) { s.Group, s.Version, s.Kind = "tekton.dev", "v1", "Task" })
	lower := pod(func(s *policy.Subject) { s.Group, s.Version, s.Kind = "tekton.dev", "v1", "tasks" })
	widget := pod(func(s *policy.Subject) { s.Group, s.Kind, s.Namespace = "example.com", "Widget", "" })
	status := pod(func(s *policy.Subject) { s.Subresource = "status" })
	groups := func(text, groups string) string { return strings.Replace(text, "'*'", groups, 1) }
	both := groups(rules("pods, tasks", ""), "'', tekton.dev")
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		matches      bool
		unserved     string // where, and + if it may come
		targets      string // those that are not there, by group/kind/subresource
	}{
		{"the served resource next to it matches", both, pod(), true, "resourceRules[0].resources[1]+", "tekton.dev/tasks/"},
		{"it does not", both, task, false, "resourceRules[0].resources[1]+", "tekton.dev/tasks/"},
		{"nor does a kind of its name", both, lower, false, "resourceRules[0].resources[1]+", "tekton.dev/tasks/"},
		{"all that is named is not there", groups(rules("tasks, tasks/status", ""), "tekton.dev"), task, false, "resourceRules[0].resources[0]+ resourceRules[0].resources[1]+", "tekton.dev/tasks/ tekton.dev/tasks/status"},
		{"and matches nothing else", groups(rules("tasks", ""), "tekton.dev"), pod(), false, "resourceRules[0].resources[0]+", "tekton.dev/tasks/"},
		{"a resource of the cluster is served", rules("widgets", ""), widget, true, "", ""},
		{"anything", rules("'*'", ""), task, true, "", ""},
		{"anything of a group in which nothing is", groups(rules("'*'", ""), "tekton.dev"), task, true, "", ""},
		{"a subresource of a served resource", rules("pods/status", ""), status, true, "", ""},
		{"an exclusion of a resource that is not served", rules("pods", "") + excluding(both), pod(), false, "excludeResourceRules[0].resources[1]+", ""},
		{"and excludes nothing", rules("'*'", "") + excluding(groups(rules("tasks", ""), "tekton.dev")), task, true, "excludeResourceRules[0].resources[0]+", ""},
		{"misspelt in the groups of Kubernetes", groups(rules("pods, podz", ""), "'', apps, networking.k8s.io"), pod(), true, "resourceRules[0].resources[1]", "/podz/ apps/podz/ networking.k8s.io/podz/"},
		{"in any group", rules("pods, tasks", ""), pod(), true, "resourceRules[0].resources[1]", "*/tasks/"},
	} {
		compiled, err := constraint.Compile(read(t, c.text), "spec", constraint.Later(widgets{}))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if matched, err := compiled.Matches(c.subject); matched != c.matches || err != nil {
			t.Errorf("%s: %t %v", c.reason, matched, err)
		}
		var unserved, targets []string
		for _, u := range compiled.Unserved() {
			at, _ := errors.AsType[*constraint.FieldError](u.Err)
			unserved = append(unserved, strings.TrimPrefix(at.Path, "spec.")+map[bool]string{true: "+"}[u.MayCome])
		}
		for _, target := range compiled.TargetsOfAll() {
			if target.Unserved {
				targets = append(targets, target.Group+"/"+target.Kind+"/"+target.Subresource)
			}
		}
		if strings.Join(unserved, " ") != c.unserved || strings.Join(targets, " ") != c.targets {
			t.Errorf("%s: %q, %q", c.reason, unserved, targets)
		}
		if _, err := constraint.Compile(read(t, c.text), "spec", widgets{}); (err == nil) == strings.HasPrefix(c.reason, "misspelt") {
			t.Errorf("%s: where nothing may come: %v", c.reason, err)
		}
	}
	for reason, text := range map[string]string{
		"a kind": rules("Task", ""), "an empty subresource": rules("tasks/", ""), "an unknown scope": rules("tasks", ", scope: All"), "no resources": rules("", ""),
	} {
		if _, err := constraint.Compile(read(t, text), "spec", constraint.Later(widgets{})); err == nil {
			t.Errorf("%s: it compiles since resources may come", reason)
		}
	}
	if list, ok := constraint.Rough(read(t, both), constraint.Later(widgets{})); !ok || len(list) != 3 {
		t.Errorf("what can be read of a broken one: %v %t", list, ok)
	}
}

func TestTargets(t *testing.T) {
	kinds := func(list []policy.Target) string {
		var out []string
		for _, target := range list {
			out = append(out, strings.Join([]string{target.Group, target.Version, target.Kind, target.Subresource, strings.Join(target.Operations, "+")}, "/"))
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	for _, c := range []struct{ reason, text, want string }{
		{"pods, and containers that are added", rules("pods", ""), "*/v1/*// /v1/Pod// /v1/Pod/ephemeralcontainers/"},
		{"several", rules("deployments, cronjobs", ""), "*/v1/*// apps/v1/Deployment// batch/v1/CronJob//"},
		{"one operation", strings.Replace(rules("jobs", ""), "CREATE, UPDATE", "CREATE", 1), "*/v1/*//CREATE batch/v1/Job//CREATE"},
		{"deletions bring no images", strings.Replace(rules("jobs", ""), "CREATE, UPDATE", "DELETE", 1), ""},
		{"exact versions", rules("jobs", "") + "matchPolicy: Exact\n", "*/v1/*// batch/v1/Job//"},
		{"everything", rules("'*'", ""), "*/v1/*//"},
		{"the status of a pod", rules("pods/status", ""), "*/v1/*/status/ /v1/Pod/status/"},
		{"twice", rules("jobs, jobs", ""), "*/v1/*// batch/v1/Job//"},
		{"kinds of one name in two groups", rules("events", ""), "*/v1/*// /v1/Event// events.k8s.io/v1/Event//"},
		{"kinds of one group", rules("services, secrets", ""), "*/v1/*// /v1/Secret// /v1/Service//"},
		{"two versions", strings.Replace(rules("jobs", ""), "v1", "v1, v2", 1) + "matchPolicy: Exact\n", "*/v1/*// */v2/*// batch/v1/Job// batch/v2/Job//"},
		{
			"two operations, each by a rule of its own", `resourceRules:
- {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}
- {apiGroups: [batch], apiVersions: [v1], operations: [UPDATE], resources: [jobs]}
- {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}
`, "batch/v1/Job//CREATE batch/v1/Job//UPDATE",
		},
		{"every version", strings.Replace(rules("pods", ""), "[v1]", "[v1, '*']", 1), "*/*/*// /*/Pod// /*/Pod/ephemeralcontainers/"},
		{"a group of Kubernetes has no other of that name", strings.Replace(rules("services", ""), "'*'", "''", 1), "/v1/Service//"},
		{"a group that a definition brings may", strings.Replace(rules("services", ""), "'*'", "'', example.com", 1), "/v1/Service// example.com/v1/*//"},
	} {
		if got := kinds(compile(t, c.text).Targets()); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	if list, ok := constraint.Rough(read(t, rules("pods, gadgets", "")), nil); !ok || len(list) != 3 || list[2].Resource != "gadgets" || list[2].Kind != "*" || list[2].Unserved {
		t.Errorf("what can be read of a broken one: %v %t", list, ok)
	}
	if list, ok := constraint.Rough(read(t, strings.Replace(rules("pods, podz", ""), "'*'", "''", 1)), nil); !ok || len(list) != 3 || !list[2].Unserved {
		t.Errorf("a misspelt resource beside another: %v %t", list, ok)
	}
	for reason, doc := range map[string]*admission.MatchResources{
		"no resource":                  read(t, rules("pods/", "")),
		"no resources":                 read(t, rules("", "")),
		"a misspelt resource":          read(t, strings.Replace(rules("podz", ""), "'*'", "''", 1)),
		"nothing":                      nil,
		"no rules":                     {},
		"more rules than are compared": read(t, many(201)),
	} {
		if list, ok := constraint.Rough(doc, nil); ok || list != nil {
			t.Errorf("%s: a broken one that matches nothing for certain: %d", reason, len(list))
		}
	}
	for _, c := range []struct{ reason, text, want string }{
		{"an unknown scope", rules("secrets", ", scope: All"), "/*/Secret//"},
		{"an unknown operation may be any", strings.Replace(rules("secrets", ""), "CREATE, UPDATE", "DELET", 1), "/*/Secret//CREATE+UPDATE+DELETE+CONNECT"},
		{"a known one is that one", strings.Replace(rules("secrets", ", scope: All"), "CREATE, UPDATE", "DELETE", 1), "/*/Secret//DELETE"},
		{"a resource in upper case", rules("Secrets", ""), "/*/Secret//"},
	} {
		list, ok := constraint.RoughOfAll(read(t, c.text), nil)
		if got := kinds(list); !ok || got != c.want {
			t.Errorf("%s: %t %q, want %q", c.reason, ok, got, c.want)
		}
	}
	if list, ok := constraint.Rough(read(t, strings.Replace(rules("services", ""), "v1", "V1", 1)), nil); !ok || len(list) == 0 || list[0].Kind != "Service" || list[0].Version != "*" {
		t.Errorf("a misspelt version hides the kind: %+v", list)
	}
	if list, ok := constraint.Rough(read(t, many(200)), nil); !ok || len(list) != 400 {
		t.Errorf("as many rules as are compared: %d %t", len(list), ok)
	}
}

// TestMayBeOf: where the kind of a broken policy's resource is not known, the request names the
// resource, or the kind suggests its name.
func TestMayBeOf(t *testing.T) {
	of := func(group, kind string) *policy.Subject {
		return pod(func(s *policy.Subject) { s.Group, s.Kind = group, kind })
	}
	named := func(s *policy.Subject, group, resource string) *policy.Subject {
		s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": group, "version": "v1", "resource": resource}})
		return s
	}
	scale := func() *policy.Subject {
		s := of("autoscaling", "Scale")
		s.Subresource = "scale"
		return s
	}
	widgets := policy.Target{Group: "example.com", Kind: "*", Resource: "widgets"}
	deployments := policy.Target{Group: "apps", Kind: "Deployment", Subresource: "scale"}
	for _, c := range []struct {
		reason string
		target policy.Target
		s      *policy.Subject
		want   bool
	}{
		{"the kind suggests it", widgets, of("example.com", "Widget"), true},
		{"the kind may be it", widgets, of("example.com", "WidgetSet"), true},
		{"the kind is another", widgets, of("example.com", "Gadget"), false},
		{"the request names it", widgets, named(of("example.com", "Gadget"), "example.com", "widgets"), true},
		{"the request names another", widgets, named(of("example.com", "Widget"), "example.com", "gadgets"), false},
		{"a kind of Kubernetes", widgets, of("", "Service"), false},
		{"a body of an unknown resource", widgets, scale(), true},
		{"a body of its own", widgets, named(scale(), "example.com", "widgets"), true},
		{"a body of another", widgets, named(scale(), "example.com", "gadgets"), false},
		{"a body of a known kind", deployments, named(scale(), "apps", "deployments"), true},
		{"a body of another known kind", deployments, named(scale(), "apps", "statefulsets"), false},
		{"a target with its kind", policy.Target{Group: "example.com", Kind: "Widget"}, of("example.com", "Widget"), true},
	} {
		if got := constraint.MayBeOf(c.target, c.s); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}

// TestGuess: where no kinds are known but Kubernetes' own, a resource that a definition may
// bring is compared with the name that the kind suggests.
func TestGuess(t *testing.T) {
	of := func(group, kind string) *policy.Subject {
		return pod(func(s *policy.Subject) { s.Group, s.Kind = group, kind })
	}
	named := func(group, kind, resource string) *policy.Subject {
		return pod(func(s *policy.Subject) {
			s.Group, s.Kind = group, kind
			s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": group, "version": "v1", "resource": resource}})
		})
	}
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         string // yes, no, or a part of the cause
	}{
		{"its kind", strings.Replace(rules("gadgets", ""), "'*'", "example.com", 1), of("example.com", "Gadget"), "yes"},
		{"a kind in -y", strings.Replace(rules("policies", ""), "'*'", "example.com", 1), of("example.com", "Policy"), "yes"},
		{"a kind in a vowel and -y", strings.Replace(rules("gateways", ""), "'*'", "example.com", 1), of("example.com", "Gateway"), "yes"},
		{"another kind", strings.Replace(rules("gadgets", ""), "'*'", "example.com", 1), of("example.com", "Tool"), "no"},
		{"another group", strings.Replace(rules("gadgets", ""), "'*'", "example.com", 1), of("example.org", "Gadget"), "no"},
		{"any group", rules("gadgets", ""), of("example.org", "Gadget"), "yes"},
		{"excluded by a guess", rules("'*'", "") + excluding(rules("gadgets", "")), of("example.org", "Gadget"), "not known"},
		{"another kind is not excluded", rules("'*'", "") + excluding(rules("gadgets", "")), of("example.org", "Tool"), "yes"},
		{"excluded by the resource of the request", rules("'*'", "") + excluding(rules("gadgets", "")), named("example.org", "Tool", "gadgets"), "no"},
		{"a kind of that resource, excluded by no guess", rules("'*'", "") + excluding(rules("gadgets", "")), named("example.org", "Gadget", "tools"), "yes"},
		{"the resource of the request", rules("gadgets", ""), named("example.org", "Tool", "gadgets"), "yes"},
		{"another one than the kind suggests", rules("gadgets", ""), named("example.org", "Gadget", "tools"), "no"},
		{"a name with hyphens", rules("big-gadgets", ""), of("example.org", "BigGadget"), "not known"},
		{"excluded", rules("'*'", "") + excluding(rules("big-gadgets", "")), of("example.org", "BigGadget"), "not known"},
		{"which the request names", rules("big-gadgets", ""), named("example.org", "BigGadget", "big-gadgets"), "yes"},
		{"a plural of its own", rules("meshes", ""), of("example.org", "Mesh"), "not known"},
		{"a foreign kind of a known name", rules("services", ""), of("example.org", "Service"), "yes"},
		{"in a group that is named", strings.Replace(rules("services", ""), "'*'", "'', example.org", 1), of("example.org", "Service"), "yes"},
		{"not in one that is not", strings.Replace(rules("services", ""), "'*'", "'', example.com", 1), of("example.org", "Service"), "no"},
		{"the known kind itself", rules("services", ""), of("", "Service"), "yes"},
		{"a known kind of another name", rules("services", ""), of("", "Secret"), "no"},
		{"a foreign one is not excluded for certain", rules("'*'", "") + excluding(rules("services", "")), of("example.org", "Service"), "not known"},
		{"the known one is", rules("'*'", "") + excluding(rules("services", "")), of("", "Service"), "no"},
		{"next to a known resource", strings.Replace(rules("pods, gadgets", ""), "'*'", "'', example.com", 1), pod(), "yes"},
	} {
		compiled := must(constraint.Compile(read(t, c.text), "spec", nil))(t)
		matched, err := compiled.Matches(c.subject)
		got := map[bool]string{true: "yes", false: "no"}[matched]
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
		means := func(target policy.Target) bool { return target.Means(c.subject) }
		if c.want == "yes" && !slices.ContainsFunc(compiled.TargetsOfAll(), means) {
			t.Errorf("%s: not among the targets", c.reason)
		}
	}
}

func must(c *constraint.Constraint, err error) func(testing.TB) *constraint.Constraint {
	return func(t testing.TB) *constraint.Constraint {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func TestNameOf(t *testing.T) {
	for kind, want := range map[string]string{"Pod": "pods", "Policy": "policies", "Ingress": "ingresses", "": "", "Widget": "widgets"} {
		if got := constraint.NameOf(kind); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

func Example() {
	doc := &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create},
		Rule:       admission.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}}}}
	c, err := constraint.Compile(doc, "spec.matchConstraints", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Matches(&policy.Subject{Group: "apps", Version: "v1", Kind: "Deployment", Operation: "CREATE"}))
	// Output: true <nil>
}

// TestKnown has the guess of names be right for all that is known.
func TestKnown(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range constraint.Known() {
		if got := constraint.NameOf(r.Kind); got != r.Name {
			t.Errorf("%s: guessed as %s", r.Name, got)
		}
		if key := r.Group + "/" + r.Name; seen[key] {
			t.Errorf("%s is there twice", key)
		} else {
			seen[key] = true
		}
	}
}

// TestLabelled: a selector names namespaces by the label of their names; it selects objects of
// cluster-scoped kinds in any case.
func TestLabelled(t *testing.T) {
	const selector = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: a}}\n"
	for _, c := range []struct {
		reason, text string
		want         []string
	}{
		{"a namespaced kind", rules("services", "") + selector, []string{"a"}},
		{"a cluster-scoped kind", rules("nodes", "") + selector, nil},
		{"without the selector", rules("services", ""), nil},
		{"by another label", rules("services", "") + "namespaceSelector: {matchLabels: {team: a}}\n", nil},
	} {
		found := false
		for _, target := range compile(t, c.text).Targets() {
			if target.Kind != "Service" && target.Kind != "Node" {
				continue
			}
			found = true
			if !slices.Equal(target.Labelled, c.want) {
				t.Errorf("%s: %q, want %q", c.reason, target.Labelled, c.want)
			}
		}
		if !found {
			t.Errorf("%s: no target", c.reason)
		}
	}
}

// TestTargetsOfAll: by which operations rules about objects are asked.
func TestTargetsOfAll(t *testing.T) {
	for operations, want := range map[string][2]string{
		"CREATE, UPDATE": {"[]", "[]"}, "CREATE": {"[CREATE]", "[CREATE]"}, "UPDATE, DELETE": {"[UPDATE]", "[UPDATE DELETE]"},
		"CREATE, DELETE": {"[CREATE]", "[CREATE DELETE]"}, "CREATE, UPDATE, CONNECT": {"[]", "[CREATE UPDATE CONNECT]"},
		"'*'": {"[]", "[CREATE UPDATE DELETE CONNECT]"}, "DELETE": {"none", "[DELETE]"}, "CONNECT": {"none", "[CONNECT]"},
	} {
		text := strings.Replace(rules("services", ""), "CREATE, UPDATE", operations, 1)
		c := compile(t, text)
		rough, _ := constraint.Rough(read(t, text), nil)
		roughOfAll, _ := constraint.RoughOfAll(read(t, text), nil)
		for i, targets := range [][]policy.Target{c.Targets(), c.TargetsOfAll(), rough, roughOfAll} {
			got := "none"
			if len(targets) > 0 {
				got = fmt.Sprint(targets[0].Operations)
			}
			if got != want[i%2] {
				t.Errorf("%s: %s, want %s", operations, got, want[i%2])
			}
		}
	}
}
