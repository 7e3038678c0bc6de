package kyverno_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// compile compiles minimal with one text replaced.
func compile(t *testing.T, lookup configMaps, before, after string) *policy.Policy {
	t.Helper()
	text := strings.Replace(minimal, before, after, 1)
	if before != "" && !strings.Contains(minimal, before) {
		t.Fatalf("%q is not in the policy", before)
	}
	p, err := newCompiler(t, lookup).Compile([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// applies returns the effect of a rule on a subject: "checks", "skips", or an error.
func applies(t *testing.T, r policy.Rule, s *policy.Subject) string {
	t.Helper()
	plan, err := r.Plan(t.Context(), s, []policy.Image{container("nginx")})
	switch {
	case err != nil:
		return "error: " + err.Error()
	case plan.Skip != "":
		return "skips"
	case len(plan.Checks) == 0:
		return "nothing"
	case plan.Checks[0].Unsure != nil:
		return "indeterminate: " + plan.Checks[0].Unsure.Error()
	}
	return "checks"
}

func TestMatch(t *testing.T) {
	user := func(name string, groups ...string) policy.User { return policy.User{Name: name, Groups: groups} }
	generated := func(base string) func(*policy.Subject) {
		return func(s *policy.Subject) {
			s.Name = ""
			s.Object = policy.ContentOf(map[string]any{"metadata": map[string]any{"generateName": base}})
		}
	}
	long := strings.Repeat("a", 58)
	ann := policy.User{Name: "ann", RolesKnown: true, Roles: []string{"team:dev"}, ClusterRoles: []string{"view"}}
	tests := []struct {
		filter string // of match.any
		change func(*policy.Subject)
		want   string
		reason string
	}{
		{"resources: {kinds: [Pod]}", nil, "checks", "the kind"},
		{"resources: {kinds: [Deployment]}", nil, "skips", "another kind"},
		{"resources: {kinds: [v1/Pod]}", nil, "checks", "with the version"},
		{"resources: {kinds: ['*/v2*/Pod']}", nil, "skips", "another version"},
		{"resources: {kinds: ['*/Pod']}", nil, "checks", "any version"},
		{"resources: {kinds: [example.com/v1/Pod]}", nil, "skips", "another group"},
		{"resources: {kinds: ['*/*/P?d']}", nil, "checks", "wildcards"},
		{"resources: {kinds: ['?*']}", nil, "checks", "everything"},
		{"resources: {kinds: [Pod/exec]}", nil, "skips", "a subresource alone"},
		{"resources: {kinds: [Pod/exec]}", func(s *policy.Subject) { s.Subresource = "exec" }, "checks", "the subresource"},
		{"resources: {kinds: [Pod]}", func(s *policy.Subject) { s.Subresource = "exec" }, "skips", "a subresource is not its object"},
		{"resources: {kinds: ['Pod/*']}", func(s *policy.Subject) { s.Subresource = "exec" }, "checks", "any subresource"},
		{"resources: {kinds: [Pod]}", func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, "checks", "containers that are added later are the pod's"},
		{"resources: {kinds: [v1/Pod/ephemeralcontainers]}", func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, "checks", "named"},
		{"resources: {name: 'we*'}", nil, "checks", "a name"},
		{"resources: {names: [db, web]}", nil, "checks", "names"},
		{"resources: {names: [db]}", nil, "skips", "another name"},
		{"resources: {names: ['web-*']}", generated("web-"), "checks", "a name that will be made"},
		{"resources: {names: ['web-?*']}", generated("web-"), "checks", "a name that will be made has more behind it"},
		{"resources: {name: 'web-?????'}", generated("web-"), "checks", "and as much"},
		{"resources: {names: ['web-??????']}", generated("web-"), "skips", "and no more"},
		{"resources: {names: ['web-b*']}", generated("web-"), "indeterminate: the rule selects by the name web-b*, and the object's name is yet to be generated from web-", "it may be made or not"},
		{"resources: {names: ['db-?*']}", generated("web-"), "skips", "another name will be made"},
		{"resources: {names: ['" + long + "?????']}", generated(long + "x"), "checks", "of a long one the end is cut"},
		{"resources: {names: ['?*']}", generated(""), "skips", "no name at all"},
		{"resources: {namespaces: ['prod-*']}", nil, "checks", "the namespace"},
		{"resources: {namespaces: [test]}", nil, "skips", "another namespace"},
		{"resources: {operations: [CREATE]}", nil, "checks", "the operation"},
		{"resources: {operations: [UPDATE]}", nil, "skips", "another operation"},
		{"resources: {selector: {matchLabels: {owner: 'a*'}}}", nil, "checks", "a label"},
		{"resources: {selector: {matchLabels: {'own*': '?nn'}}}", nil, "checks", "wildcards in the key"},
		{"resources: {selector: {matchLabels: {owner: bob}}}", nil, "skips", "another value"},
		{"resources: {selector: {matchExpressions: [{key: owner, operator: In, values: [ann]}]}}", nil, "checks", "in"},
		{"resources: {selector: {matchExpressions: [{key: owner, operator: NotIn, values: [ann]}]}}", nil, "skips", "not in"},
		{"resources: {selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}", nil, "checks", "there is none"},
		{"resources: {selector: {matchExpressions: [{key: team, operator: Exists}]}}", nil, "skips", "there is none"},
		{"resources: {annotations: {a: b}}", nil, "skips", "no annotation"},
		{"resources: {namespaceSelector: {matchLabels: {env: prod}}}", func(s *policy.Subject) { s.NamespaceLabels = map[string]string{"env": "prod"} }, "checks", "a label of the namespace"},
		{"resources: {namespaceSelector: {matchLabels: {env: prod}}}", nil, "skips", "no label of the namespace"},
		{"resources: {namespaceSelector: {matchLabels: {env: prod}}}", func(s *policy.Subject) { s.NamespaceKnown = false }, "indeterminate: the rule selects by labels of the object's namespace, and they are not known; on the command line, give the Namespace with --resource FILE", "unknown labels"},
		{"resources: {kinds: [Service], namespaceSelector: {matchLabels: {env: prod}}}", func(s *policy.Subject) { s.NamespaceKnown = false }, "skips", "the labels are not needed"},
		{"subjects: [{kind: User, name: 'a*'}]", func(s *policy.Subject) { s.User = user("ann") }, "checks", "the user"},
		{"subjects: [{kind: User, name: bob}]", func(s *policy.Subject) { s.User = user("ann") }, "skips", "another user"},
		{"subjects: [{kind: Group, name: dev}]", func(s *policy.Subject) { s.User = user("ann", "ops", "dev") }, "checks", "a group"},
		{"subjects: [{kind: ServiceAccount, namespace: ci, name: '*'}]", func(s *policy.Subject) { s.User = user("system:serviceaccount:ci:bot") }, "checks", "a service account"},
		{"subjects: [{kind: ServiceAccount, namespace: ci, name: '*'}]", func(s *policy.Subject) { s.User = user("system:serviceaccount:ci2:bot") }, "skips", "of another namespace"},
		{"subjects: [{kind: User, name: bob}]", nil, "checks", "no requester, as in a file"},
		{"roles: ['team:*']", func(s *policy.Subject) { s.User = ann }, "checks", "a role"},
		{"roles: ['other:*']", func(s *policy.Subject) { s.User = ann }, "skips", "another role"},
		{"clusterRoles: [view]", func(s *policy.Subject) { s.User = ann }, "checks", "a cluster role"},
		{"clusterRoles: [admin]", func(s *policy.Subject) { s.User = ann }, "skips", "another cluster role"},
		{"clusterRoles: [view]", func(s *policy.Subject) { s.User = user("ann") }, "indeterminate: the rule selects by the user's roles, and they are not known", "unknown roles"},
		{"resources: {kinds: [Pod]}", func(s *policy.Subject) { s.Operation = "DELETE" }, "skips", "nothing will run"},
	}
	for _, test := range tests {
		r := ruleOf(t, compile(t, nil, "resources:\n          kinds: [Pod]", test.filter), "signed")
		s := pod("prod-eu")
		if test.change != nil {
			test.change(s)
		}
		if got := applies(t, r, s); got != test.want {
			t.Errorf("%s: %s, want %s: %s", test.filter, got, test.want, test.reason)
		}
	}
}

func TestExclude(t *testing.T) {
	tests := []struct {
		match, exclude string
		user           policy.User
		want, reason   string
	}{
		{"any: [{resources: {kinds: [Job]}}, {resources: {kinds: [Pod]}}]", "{}", policy.User{}, "checks", "one of any"},
		{"all: [{resources: {kinds: [Pod]}}, {resources: {namespaces: [prod-eu]}}]", "{}", policy.User{}, "checks", "each of all"},
		{"all: [{resources: {kinds: [Pod]}}, {resources: {namespaces: [test]}}]", "{}", policy.User{}, "skips", "not each of all"},
		{"resources: {kinds: [Pod]}", "{}", policy.User{}, "checks", "the old form"},
		{"resources: {kinds: [Pod]}", "{resources: {namespaces: [prod-eu]}}", policy.User{}, "skips", "excluded, in the old form"},
		{"resources: {kinds: [Pod]}", "{any: [{resources: {namespaces: [test]}}, {resources: {names: [web]}}]}", policy.User{}, "skips", "one of any"},
		{"resources: {kinds: [Pod]}", "{all: [{resources: {namespaces: [test]}}, {resources: {names: [web]}}]}", policy.User{}, "checks", "not each of all"},
		{"resources: {kinds: [Pod]}", "{subjects: [{kind: User, name: ann}]}", policy.User{Name: "ann"}, "skips", "an exception for a user"},
		{"resources: {kinds: [Pod]}", "{subjects: [{kind: User, name: ann}]}", policy.User{}, "checks", "which holds for no other user"},
		{"resources: {kinds: [Pod]}", "{resources: {namespaces: [prod-eu]}, subjects: [{kind: User, name: bob}]}", policy.User{Name: "ann"}, "checks", "both must match"},
	}
	for _, test := range tests {
		r := ruleOf(t, compile(t, nil, "any:\n      - resources:\n          kinds: [Pod]", test.match+"\n    exclude: "+test.exclude), "signed")
		s := pod("prod-eu")
		s.User = test.user
		if got := applies(t, r, s); got != test.want {
			t.Errorf("match %s, exclude %s: %s, want %s: %s", test.match, test.exclude, got, test.want, test.reason)
		}
	}
}

func TestReferences(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	tests := []struct {
		pattern, ref string
		want         bool
		reason       string
	}{
		{"*", "nginx", true, "everything"},
		{"docker.io/nginx:*", "nginx", true, "the registry is docker.io"},
		{"docker.io/nginx:latest", "nginx", true, "and the tag is latest"},
		{"docker.io/library/nginx:*", "nginx", true, "library/ is written out, too"},
		{"docker.io/nginx*", "docker.io/library/nginx:1", true, "or left out"},
		{"index.docker.io/nginx:*", "nginx", true, "another name of Docker Hub"},
		{"nginx:*", "docker.io/library/nginx:1", true, "a short pattern"},
		{"nginx:*", "ghcr.io/nginx:1", false, "which means Docker Hub"},
		{"ghcr.io/org/*", "ghcr.io/org/team/app:v1", true, "a star crosses slashes"},
		{"ghcr.io/org/*", "ghcr.io/organisation/app", false, "another organisation"},
		{"ghcr.io/org/*", "evil.example/ghcr.io/org/app", false, "another registry"},
		{"GHCR.io/org/*", "ghcr.io/org/app", true, "hosts have no case"},
		{"ghcr.io/org/app:*", "ghcr.io/org/app" + digest, true, "every tag means every digest as well"},
		{"ghcr.io/org/app:v*", "ghcr.io/org/app" + digest, false, "one tag does not"},
		{"ghcr.io/org/app:v*", "ghcr.io/org/app:v1" + digest, true, "the tag is written"},
		{"ghcr.io/org/app@sha256:*", "ghcr.io/org/app:v1" + digest, true, "the digest is"},
		{"ghcr.io/org/app", "ghcr.io/org/app:v1", true, "a pattern without tag is for every tag"},
		{"ghcr.io/org/app", "ghcr.io/org/app" + digest, true, "and every digest"},
		{"ghcr.io/org/app", "ghcr.io/org/app2:v1", false, "of that repository"},
		{"ghcr.io/org/app", "ghcr.io/org/app/side:v1", false, "and of none below it"},
		{"nginx", "docker.io/library/nginx:1", true, "a short name without tag"},
		{"nginx", "ghcr.io/nginx:1", false, "which means Docker Hub"},
		{"*.example.com/app", "eu.example.com/app:v1", true, "a wildcard in the host matches no tag"},
		{"*.example.com/app", "eu.example.com/app2:v1", false, "another repository"},
		{"*.Example.com/*", "reg.example.com/app:v1", true, "hosts have no case, with a wildcard either"},
		{"*.Example.com/*", "reg.example.org/app:v1", false, "another host"},
		{"*:V1", "ghcr.io/org/app:V1", true, "tags have upper case"},
		{"*:V1", "ghcr.io/org/app:v1", false, "and differ in it"},
		{"ghcr.io/org/app*RC", "ghcr.io/org/app:1-RC", true, "a wildcard may reach into the tag"},
		{"[2001:db8::1]/*", "[2001:db8:0::1]:443/app:v1", true, "an address has one spelling"},
	}
	for _, test := range tests {
		r := ruleOf(t, compile(t, nil, `["*"]`, fmt.Sprintf("[%q]", test.pattern)), "signed")
		plan, err := r.Plan(t.Context(), pod("x"), []policy.Image{container(test.ref)})
		if err != nil || (len(plan.Checks) == 1) != test.want {
			t.Errorf("%s and %s: %d checks, %v; want %v: %s", test.pattern, test.ref, len(plan.Checks), err, test.want, test.reason)
		}
	}
}

func TestSkipImageReferences(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	for _, test := range []struct {
		pattern, ref string
		want         bool
		reason       string
	}{
		{"ghcr.io/org/*", "ghcr.io/org/app:v1", true, "the repository is exempt"},
		{"ghcr.io/org/*", "ghcr.io/org/app" + digest, true, "whatever it is called by"},
		{"ghcr.io/org/*", "ghcr.io/other/app:v1", false, "another is not"},
		{"*:debug", "ghcr.io/org/app:debug", true, "the tag is exempt"},
		{"*:debug", "ghcr.io/org/app:debug" + digest, false, "a tag next to a digest does not match"},
		{"index.docker.io/org/*", "org/app", true, "names are normal"},
		{"org/*", "org/app", false, "no short patterns: they would exempt more than they say"},
	} {
		r := ruleOf(t, compile(t, nil, `["*"]`, fmt.Sprintf("['*']\n      skipImageReferences: [%q]", test.pattern)), "signed")
		check := only(t, r, pod("x"), test.ref)
		if got := check.Skip != ""; got != test.want {
			t.Errorf("%s and %s: %q; want %v: %s", test.pattern, test.ref, check.Skip, test.want, test.reason)
		}
	}
}

func TestAutogen(t *testing.T) {
	tests := []struct {
		old, new string
		want     []string
		reason   string
	}{
		{"", "", []string{"signed", "autogen-signed", "autogen-cronjob-signed"}, "a rule about pods"},
		{"kinds: [Pod]", "kinds: [v1/Pod]", []string{"signed", "autogen-signed", "autogen-cronjob-signed"}, "with its version"},
		{"kinds: [Pod]", "kinds: [Pod]\n          namespaces: [a]", []string{"signed", "autogen-signed", "autogen-cronjob-signed"}, "in a namespace"},
		{"kinds: [Pod]", "kinds: [Pod, Task]", []string{"signed"}, "and about others"},
		{"kinds: [Pod]", "kinds: [Pod]\n      - resources: {kinds: [Task]}", []string{"signed", "autogen-signed", "autogen-cronjob-signed"}, "and about others in another filter"},
		{"    verifyImages:", "    exclude: {any: [{resources: {kinds: [Pod], namespaces: [a]}}, {resources: {kinds: [Task]}}]}\n    verifyImages:", []string{"signed", "autogen-signed", "autogen-cronjob-signed"}, "with an exclusion of others beside one of pods"},
		{"    verifyImages:", "    exclude: {any: [{resources: {kinds: [Task]}}]}\n    verifyImages:", []string{"signed"}, "with an exclusion of others alone, as in Kyverno"},
		{"kinds: [Pod]", "kinds: [Pod, v1/Pod]", []string{"signed", "autogen-signed", "autogen-cronjob-signed"}, "named twice"},
		{"kinds: [Pod]", "kinds: [Pod/exec]", []string{"signed"}, "not about pods themselves"},
		{"kinds: [Pod]", "kinds: [Pod]\n          names: [a]", []string{"signed"}, "by name"},
		{"kinds: [Pod]", "kinds: [Pod]\n          selector: {matchLabels: {a: b}}", []string{"signed"}, "by label"},
		{"kinds: [Pod]", "kinds: [Pod]\n          annotations: {a: b}", []string{"signed"}, "by annotation"},
		{"    verifyImages:", "    exclude: {any: [{resources: {names: [a]}}]}\n    verifyImages:", []string{"signed"}, "with an exception by name"},
		{"  name: minimal", "  name: minimal\n  annotations: {pod-policies.kyverno.io/autogen-controllers: none}", []string{"signed"}, "switched off"},
		{"  name: minimal", "  name: minimal\n  annotations: {pod-policies.kyverno.io/autogen-controllers: 'Deployment, StatefulSet'}", []string{"signed", "autogen-signed"}, "for some"},
		{"  name: minimal", "  name: minimal\n  annotations: {pod-policies.kyverno.io/autogen-controllers: CronJob}", []string{"signed", "autogen-cronjob-signed"}, "for one"},
		{"name: signed", "name: " + strings.Repeat("s", 60), []string{strings.Repeat("s", 60), "autogen-" + strings.Repeat("s", 55), "autogen-cronjob-" + strings.Repeat("s", 47)}, "long names are cut"},
	}
	for _, test := range tests {
		var names []string
		for _, r := range compile(t, nil, test.old, test.new).Rules {
			names = append(names, r.Name())
		}
		equal(t, test.reason, names, test.want)
	}
}

func TestAutogenKinds(t *testing.T) {
	p := compile(t, nil, "    verifyImages:", `    exclude: {any: [{resources: {kinds: [Pod], namespaces: [free]}}]}
    preconditions:
      all:
      - {key: "{{ request.object.metadata.labels.tier }}", operator: Equals, value: front}
      - {key: "{{ request.object.spec.containers[0].name }}", operator: Equals, value: web}
    verifyImages:`)
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"tier": "front"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web"}}},
	}
	deployment := map[string]any{"metadata": map[string]any{"name": "d"}, "spec": map[string]any{"template": template}}
	job := map[string]any{"metadata": map[string]any{"name": "c"}, "spec": map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}}
	for _, test := range []struct {
		rule, group, kind, namespace string
		object                       map[string]any
		want, reason                 string
	}{
		{"autogen-signed", "apps", "Deployment", "a", deployment, "checks", "its template is a pod's"},
		{"autogen-signed", "apps", "ReplicaSet", "a", deployment, "checks", "its template is a pod's"},
		{"autogen-signed", "", "ReplicationController", "a", deployment, "checks", "its template is a pod's"},
		{"autogen-signed", "batch", "Job", "a", deployment, "checks", "its template is a pod's"},
		{"autogen-signed", "apps", "Deployment", "free", deployment, "skips", "the exception holds, too"},
		{"autogen-signed", "batch", "CronJob", "a", job, "skips", "it has a rule of its own"},
		{"autogen-cronjob-signed", "batch", "CronJob", "a", job, "checks", "its template is deeper"},
		{"signed", "apps", "Deployment", "a", deployment, "skips", "the rule itself is about pods"},
		{"autogen-signed", "example.com", "Deployment", "a", deployment, "skips", "another group's Deployment"},
	} {
		s := &policy.Subject{Object: policy.ContentOf(test.object), Group: test.group, Version: "v1", Kind: test.kind, Namespace: test.namespace, NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Operation: "CREATE"}
		if got := applies(t, ruleOf(t, p, test.rule), s); got != test.want {
			t.Errorf("%s on %s/%s in %s: %s, want %s: %s", test.rule, test.group, test.kind, test.namespace, got, test.want, test.reason)
		}
	}
}

func TestActions(t *testing.T) {
	const overrides = "  validationFailureAction: Audit\n  validationFailureActionOverrides:\n  - {action: Enforce, namespaces: ['prod-*']}\n  - {action: Enforce, namespaceSelector: {matchLabels: {env: prod}}}\n  rules:"
	p := compile(t, nil, "  rules:", overrides)
	equal(t, "it may enforce", p.AuditOnly, false)
	for _, test := range []struct {
		namespace string
		labels    map[string]string
		want      policy.Action
	}{
		{"prod-eu", nil, policy.Enforce},
		{"test", nil, policy.Audit},
		{"test", map[string]string{"env": "prod"}, policy.Enforce},
	} {
		s := pod(test.namespace)
		s.NamespaceLabels = test.labels
		equal(t, test.namespace, only(t, ruleOf(t, p, "signed"), s, "nginx").Action, test.want)
	}
	s := pod("test")
	s.NamespaceKnown = false
	if check := only(t, ruleOf(t, p, "signed"), s, "nginx"); check.Action != policy.Enforce || check.Unsure == nil {
		t.Errorf("the action depends on labels that are not known: %s, unsure %v", check.Action, check.Unsure)
	}
	const enforces, audits = "\n      failureAction: Enforce", "\n      failureAction: Audit\n      mutateDigest: false"
	const more = "\n      attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]\n    - imageReferences: ['*']"
	for _, test := range []struct {
		usual, entries string
		audit          bool
		reason         string
	}{
		{"Audit", "", true, "the policy audits"},
		{"Enforce", "", false, "the policy enforces"},
		{"Audit", enforces, false, "the entry enforces"},
		{"Enforce", audits, true, "the entry audits"},
		{"Audit", enforces + more, false, "the first of two entries enforces"},
		{"Audit", audits + more + enforces, false, "the second does"},
	} {
		text := strings.NewReplacer("  rules:", "  validationFailureAction: "+test.usual+"\n  rules:", `["*"]`, "['*']"+test.entries).Replace(minimal)
		p, err := newCompiler(t, nil).Compile([]byte(text), "test")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, test.reason, p.AuditOnly, test.audit)
	}
}

// TestLookedUpAtOnce: where something of a rule is asked, all of its context is looked
// up, and what cannot be makes the rule indeterminate. Where nothing is asked, nothing is.
func TestLookedUpAtOnce(t *testing.T) {
	const gone = "    context: [{name: keys, configMap: {name: gone}}]\n"
	const asks = "    preconditions: {all: [{key: '{{ request.name }}', operator: Equals, value: web}]}\n"
	const other = "    - imageReferences: ['ghcr.io/*']\n      attestors: [{entries: [{keyless: {issuer: a, subject: '{{ request.name }}'}}]}]\n"
	const statement = "      attestations: [{type: a, conditions: [{all: [{key: '{{ keys.data.x }}', operator: Equals, value: x}]}], attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]}]\n"
	for _, test := range []struct {
		before, after, want, reason string
	}{
		{"    verifyImages:\n", gone + "    verifyImages:\n", "checks", "nothing is asked"},
		{"    verifyImages:\n", asks + "    verifyImages:\n", "checks", "a precondition, and nothing is looked up"},
		{"    verifyImages:\n", gone + asks + "    verifyImages:\n", "error", "a precondition on something else"},
		{"    verifyImages:\n", gone + "    verifyImages:\n" + other, "error", "an entry that asks, about another image"},
		{"    verifyImages:\n", "    verifyImages:\n" + other, "checks", "an entry that asks, and nothing is looked up"},
		{"    verifyImages:\n    - imageReferences: [\"*\"]\n", gone + "    verifyImages:\n    - imageReferences: ['*']\n" + statement, "error", "a condition on a statement"},
	} {
		got, _, _ := strings.Cut(applies(t, ruleOf(t, compile(t, configMaps{}, test.before, test.after), "signed"), pod("a")), ":")
		equal(t, test.reason, got, test.want)
	}
}

// TestImagesThatAreLeftAlone: a rule that none of the images concerns asks nothing, and
// so nothing can go wrong.
func TestImagesThatAreLeftAlone(t *testing.T) {
	const asks = "    imageExtractors: {Task: [{path: /spec/image}]}\n    preconditions: {all: [{key: '{{ request.object.none }}', operator: Equals, value: x}]}\n    verifyImages:"
	r := ruleOf(t, compile(t, nil, "          kinds: [Pod]\n    verifyImages:", "          kinds: [Pod, Task]\n"+asks), "signed")
	changed, unchanged := container("nginx"), container("nginx")
	unchanged.Unchanged = true
	task := pod("a")
	task.Kind = "Task"
	for _, test := range []struct {
		s      *policy.Subject
		images []policy.Image
		good   bool
		reason string
	}{
		{pod("a"), []policy.Image{changed}, false, "an image, and a precondition that cannot be evaluated"},
		{pod("a"), []policy.Image{unchanged}, true, "an image that was there before"},
		{pod("a"), []policy.Image{unchanged, changed}, false, "one that was, and one that was not"},
		{task, []policy.Image{changed}, false, "an image at a place of the rule's own"},
		{task, nil, true, "no image at a place of the rule's own"},
	} {
		plan, err := r.Plan(t.Context(), test.s, test.images)
		if (err == nil) != test.good || len(plan.Checks) != 0 {
			t.Errorf("%s: %+v, %v", test.reason, plan, err)
		}
	}
}

// TestKeysThatAreLookedUp: a key of a ConfigMap concerns the images of its entry alone.
func TestKeysThatAreLookedUp(t *testing.T) {
	r := ruleOf(t, compile(t, configMaps{}, "    verifyImages:\n    - imageReferences: [\"*\"]\n",
		"    context: [{name: keys, configMap: {name: gone}}]\n    verifyImages:\n    - imageReferences: ['ghcr.io/*']\n"+
			"      attestors: [{entries: [{keys: {publicKeys: '{{ keys.data.key }}'}}]}]\n    - imageReferences: ['quay.io/*']\n"), "signed")
	for image, good := range map[string]bool{"nginx": true, "ghcr.io/team/web:v1": false, "quay.io/team/web:v1": false} {
		plan, err := r.Plan(t.Context(), pod("a"), []policy.Image{container(image)})
		if (err == nil) != good || len(plan.Checks) != 0 {
			t.Errorf("%s: %+v, %v", image, plan, err)
		}
	}
}

// TestImagePatterns: the images that a rule matches, as far as they are known without an
// object.
func TestImagePatterns(t *testing.T) {
	for _, test := range []struct {
		before, after string
		want          []string
		known         bool
		reason        string
	}{
		{`["*"]`, "[ghcr.io/org/*, quay.io/*]", []string{"ghcr.io/org/*", "quay.io/*"}, true, "patterns"},
		{`    - imageReferences: ["*"]`, "    - {imageReferences: [ghcr.io/*], required: false}\n    - imageReferences: [quay.io/*]", []string{"ghcr.io/*", "quay.io/*"}, true, "patterns of two entries"},
		{`["*"]`, "['{{ request.namespace }}.example/*']", nil, false, "a pattern with a variable"},
		{"    verifyImages:", "    imageExtractors: {Pod: [{path: /spec/image}]}\n    verifyImages:", nil, false, "images at places of its own"},
	} {
		patterns, known := ruleOf(t, compile(t, nil, test.before, test.after), "signed").(policy.Selective).ImagePatterns()
		equal(t, test.reason, patterns, test.want)
		equal(t, test.reason, known, test.known)
	}
}

// TestMetadata: what reports and lists say of a policy.
func TestMetadata(t *testing.T) {
	for _, test := range []struct {
		before, after, id string
		unscored          bool
		created           int
	}{
		{"", "", "ClusterPolicy/minimal", false, 1},
		{"  name: minimal", "  name: minimal\n  annotations: {policies.kyverno.io/scored: 'false'}", "ClusterPolicy/minimal", true, 1},
		{"  name: minimal", "  name: minimal\n  annotations: {policies.kyverno.io/scored: 'true'}", "ClusterPolicy/minimal", false, 1},
		{"  name: minimal", "  name: minimal\n  creationTimestamp: '2026-02-03T04:05:06Z'", "ClusterPolicy/minimal", false, 2026},
		{"  name: minimal", "  name: minimal\n  creationTimestamp: null", "ClusterPolicy/minimal", false, 1},
		{"kind: ClusterPolicy\nmetadata:", "kind: Policy\nmetadata:", "Policy/default/minimal", false, 1},
		{"kind: ClusterPolicy\nmetadata:", "kind: Policy\nmetadata:\n  namespace: team", "Policy/team/minimal", false, 1},
	} {
		p := compile(t, nil, test.before, test.after)
		equal(t, test.after, []any{p.ID(), p.Unscored, p.Created.Year()}, []any{test.id, test.unscored, test.created})
	}
}

func TestVariables(t *testing.T) {
	const context = "    context:\n    - {name: keys, configMap: {name: keys, namespace: trust}}\n    verifyImages:"
	text := strings.Replace(minimal, "    verifyImages:", context, 1)
	text = strings.Replace(text, "            subject: ann@example.com\n", "            subject: \"{{ keys.data.{{ request.namespace }} }}@example.com\"\n", 1)
	p, err := newCompiler(t, configMaps{"trust/keys": {"team": "bob"}}).Compile([]byte(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	r := ruleOf(t, p, "signed")
	identity := only(t, r, pod("team"), "nginx").Requirements[0].Members[0].Authority.Keyless.Identities[0]
	equal(t, "subject", identity.Subject.String(), "bob@example.com")
	if _, err := r.Plan(t.Context(), pod("other"), []policy.Image{container("nginx")}); err == nil || !strings.Contains(err.Error(), `Unknown key "other"`) {
		t.Errorf("no key for the namespace: %v", err)
	}
	plan, err := r.Plan(t.Context(), pod("other"), nil)
	if err != nil || len(plan.Checks) != 0 {
		t.Errorf("no image, so nothing to look up: %v", err)
	}
	for name, lookup := range map[string]configMaps{"no cluster": nil, "no ConfigMap": {}} {
		compiler := newCompiler(t, nil)
		if lookup != nil {
			compiler = newCompiler(t, lookup)
		}
		p, err := compiler.Compile([]byte(text), "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("team"), []policy.Image{container("nginx")}); err == nil || !strings.Contains(err.Error(), "ConfigMap trust/keys") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContextVariables(t *testing.T) {
	const digest = "sha256:abababababababababababababababababababababababababababababababab"
	for _, test := range []struct{ entries, key, want, reason string }{
		{"{name: a, variable: {value: {b: [1, x]}}}", "{{ a.b[1] }}", "x", "a value"},
		{"{name: a, variable: {value: {b: [1, x]}, jmesPath: 'b[1]'}}", "{{ a }}", "x", "a part of a value"},
		{"{name: a, variable: {jmesPath: request.object.metadata.labels.owner}}", "{{ a }}", "ann", "from the object"},
		{"{name: a, variable: {jmesPath: request.object.metadata.labels.team, default: none}}", "{{ a }}", "none", "a default"},
		{"{name: a, variable: {value: owner}}, {name: b, variable: {jmesPath: 'request.object.metadata.labels.{{ a }}'}}", "{{ b }}", "ann", "one in another"},
		{"{name: a, variable: {value: x}}", "{{ request.operation }}/{{ request.kind.kind }}/{{ request.namespace }}", "CREATE/Pod/team", "the request"},
		{"{name: a, variable: {value: x}}", "{{ request.userInfo.username }}/{{ serviceAccountName }}/{{ serviceAccountNamespace }}", "system:serviceaccount:ci:bot/bot/ci", "the requester"},
		{"{name: a, variable: {value: x}}", "{{ images.containers.web.registry }}|{{ images.containers.web.path }}|{{ images.containers.web.name }}|{{ images.containers.web.tag }}", "docker.io|org/app|app|v1", "the image"},
		{"{name: a, variable: {value: x}}", "{{ images.containers.web.reference }}", "docker.io/org/app@" + digest, "the image's reference"},
	} {
		p := compile(t, nil, "    verifyImages:", fmt.Sprintf("    context: [%s]\n    preconditions: {all: [{key: %q, operator: Equals, value: %q}]}\n    verifyImages:", test.entries, test.key, test.want))
		s := pod("team")
		s.User = policy.User{Name: "system:serviceaccount:ci:bot"}
		plan, err := ruleOf(t, p, "signed").Plan(t.Context(), s, []policy.Image{container("org/app:v1@" + digest)})
		if err != nil || plan.Skip != "" {
			t.Errorf("%s: %v %s: %s", test.key, err, plan.Skip, test.reason)
		}
	}
}

// A copy is judged by its source's name; what stands in the object is beside it.
func TestImagesOfACopy(t *testing.T) {
	found := container("docker.io/org/app:v1")
	found.Copy = container("mirror.example/hub/org/app:v1").Ref
	for _, test := range []struct{ key, want string }{
		{"{{ images.containers.web.registry }}", "docker.io"},
		{"{{ images.containers.web.copy.registry }}", "mirror.example"},
		{"{{ images.containers.web.copy.path }}", "hub/org/app"},
	} {
		p := compile(t, nil, "    verifyImages:", fmt.Sprintf("    preconditions: {all: [{key: %q, operator: Equals, value: %q}]}\n    verifyImages:", test.key, test.want))
		if plan, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("team"), []policy.Image{found}); err != nil || plan.Skip != "" {
			t.Errorf("%s: %v %s", test.key, err, plan.Skip)
		}
	}
}

func TestPreconditions(t *testing.T) {
	p := compile(t, nil, "    verifyImages:", "    preconditions: {any: [{key: '{{ request.object.metadata.labels.owner }}', operator: Equals, value: bob}]}\n    verifyImages:")
	plan, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("a"), []policy.Image{container("nginx")})
	if err != nil || !strings.Contains(plan.Skip, `expected {{ request.object.metadata.labels.owner }} Equals "bob", found "ann"`) {
		t.Errorf("got %q, %v", plan.Skip, err)
	}
	p = compile(t, nil, "    verifyImages:", "    preconditions: {any: [{key: '{{ request.object.metadata.labels.team }}', operator: Equals, value: bob}]}\n    verifyImages:")
	if plan, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("a"), []policy.Image{container("nginx")}); err == nil {
		t.Errorf("an undefined variable is no reason to skip: %+v", plan)
	}
}

// The author of an object must not avoid a rule with a wildcard, nor with text where a
// number is expected.
func TestPreconditionsInDoubt(t *testing.T) {
	for _, test := range []struct {
		operator, value, owner string
		skip                   bool
		reason                 string
	}{
		{"NotEquals", "{{ request.object.metadata.labels.owner }}", "web", true, "equal beyond doubt"},
		{"NotEquals", "{{ request.object.metadata.labels.owner }}", "*", false, "equal as a pattern alone"},
		{"AllNotIn", "{{ request.object.metadata.labels.owner }}", "w?b", false, "in the set as a pattern alone"},
		{"Equals", "{{ request.object.metadata.labels.owner }}", "x*", true, "equal in no reading"},
		{"AnyNotIn", "7-10", "web", false, "text has no place in a range"},
		{"LessThan", "7", "web", false, "a text has no order with a number"},
	} {
		p := compile(t, nil, "    verifyImages:", fmt.Sprintf("    preconditions: {all: [{key: '{{ request.object.metadata.name }}', operator: %s, value: %q}]}\n    verifyImages:", test.operator, test.value))
		s := pod("a")
		s.Object.Map()["metadata"].(map[string]any)["labels"] = map[string]any{"owner": test.owner}
		plan, err := ruleOf(t, p, "signed").Plan(t.Context(), s, []policy.Image{container("nginx")})
		if err != nil || (plan.Skip != "") != test.skip || (len(plan.Checks) == 0) != test.skip {
			t.Errorf("web %s %s with %q: %q, %v: %s", test.operator, test.value, test.owner, plan.Skip, err, test.reason)
		}
	}
}

// A wildcard in a value of the object is no wildcard for a statement.
func TestObjectsWriteNoPatterns(t *testing.T) {
	p := compile(t, nil, "      attestors:\n", `      attestations:
      - type: https://example.com/v1
        conditions:
        - all: [{key: "{{ commit }}", operator: Equals, value: "{{ request.object.metadata.labels.owner }}"}]
        attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]
      attestors:
`)
	for owner, want := range map[string]bool{"abc": true, "abd": false, "*": false} {
		s := pod("prod")
		s.Object.Map()["metadata"].(map[string]any)["labels"] = map[string]any{"owner": owner}
		check := only(t, ruleOf(t, p, "signed"), s, "nginx")
		holds, why, err := check.Attestations[0].Condition.Holds(map[string]any{"commit": "abc"})
		if holds != want || (err != nil) != (owner == "*") {
			t.Errorf("%s: %v, %s, %v", owner, holds, why, err)
		}
	}
}

// A statement must not override values of the request.
func TestPredicatesDoNotHideTheRequest(t *testing.T) {
	p := compile(t, nil, "      attestors:\n", `      attestations:
      - type: https://example.com/v1
        conditions:
        - all: [{key: "{{ request.namespace }}", operator: Equals, value: "{{ target }}"}]
        attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]
      attestors:
`)
	check := only(t, ruleOf(t, p, "signed"), pod("prod"), "nginx")
	forged := map[string]any{"target": "test", "request": map[string]any{"namespace": "test"}}
	if holds, _, err := check.Attestations[0].Condition.Holds(forged); holds || err != nil {
		t.Errorf("a forged request: %v, %v", holds, err)
	}
	if holds, _, err := check.Attestations[0].Condition.Holds(map[string]any{"target": "prod"}); !holds || err != nil {
		t.Errorf("an honest predicate: %v, %v", holds, err)
	}
}

// What cannot be judged in a deny condition is no permission.
func TestDenyOfTheUnknown(t *testing.T) {
	p := compile(t, nil, "      attestors:\n", `      validate: {deny: {conditions: {any: [{key: "{{ scan.score }}", operator: GreaterThan, value: 7}]}}}
      attestations:
      - name: scan
        type: https://example.com/v1
        attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]
      attestors:
`)
	check := only(t, ruleOf(t, p, "signed"), pod("prod"), "nginx")
	for _, test := range []struct {
		score      any
		denied, ok bool
	}{{5.0, false, true}, {8.0, true, true}, {"high", false, false}, {nil, false, false}} {
		denied, _, err := check.Deny.Holds(map[string]any{"scan": map[string]any{"score": test.score}})
		if (err == nil) != test.ok || test.ok && denied != test.denied {
			t.Errorf("%v: %v, %v", test.score, denied, err)
		}
	}
}

// A "true" that is a text evades no condition about true, and a verdict that is missing
// proves nothing to be absent.
func TestConditionsOfAnotherKind(t *testing.T) {
	p := compile(t, nil, "      attestors:\n", `      validate: {deny: {conditions: {any: [{key: "{{ scan.failed }}", operator: Equals, value: true}]}}}
      attestations:
      - name: scan
        type: https://example.com/v1
        attestors: [{entries: [{keys: {kms: 'awskms:///alias/x'}}]}]
        conditions: [{all: [{key: "{{ [a.verdict, b.verdict] }}", operator: AllNotIn, value: [FAIL]}]}]
      attestors:
`)
	check := only(t, ruleOf(t, p, "signed"), pod("prod"), "nginx")
	for failed, want := range map[any]bool{false: true, true: false, "true": false} {
		denied, _, err := check.Deny.Holds(map[string]any{"scan": map[string]any{"failed": failed}})
		if passes := !denied && err == nil; passes != want {
			t.Errorf("failed %#v: denied %t, %v", failed, denied, err)
		}
	}
	passed := map[string]any{"verdict": "PASS"}
	for reason, test := range map[string]struct {
		second any
		holds  bool
		doubt  bool
	}{
		"both passed": {passed, true, false}, "the second has no verdict": {map[string]any{}, false, true},
		"the second failed": {map[string]any{"verdict": "FAIL"}, false, false}, "the second failed in a list": {map[string]any{"verdict": []any{"FAIL"}}, false, true},
	} {
		holds, why, err := check.Attestations[0].Condition.Holds(map[string]any{"a": passed, "b": test.second})
		if holds != test.holds || (err != nil) != test.doubt {
			t.Errorf("%s: %t, %s, %v", reason, holds, why, err)
		}
	}
}

func TestManyImagesAndEntries(t *testing.T) {
	p := compile(t, nil, `    - imageReferences: ["*"]`, "    - imageReferences: ['ghcr.io/*']\n      required: false\n    - imageReferences: ['*']")
	images := []policy.Image{container("ghcr.io/a/b"), container("nginx")}
	plan, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("a"), images)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, check := range plan.Checks {
		got = append(got, fmt.Sprint(check.Entry, " ", check.Image.Ref, " ", check.NeedsProof()))
	}
	equal(t, "checks", got, []string{
		"verifyImages[0] ghcr.io/a/b:latest false",
		"verifyImages[1] ghcr.io/a/b:latest true",
		"verifyImages[1] docker.io/library/nginx:latest true",
	})
}

func BenchmarkPlan(b *testing.B) {
	p, err := newCompiler(b, nil).Compile([]byte(minimal), "bench")
	if err != nil {
		b.Fatal(err)
	}
	s, images := pod("prod"), []policy.Image{{Container: "web", Role: "container", Ref: image.MustParse("ghcr.io/org/app:v1")}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Rules[0].Plan(b.Context(), s, images); err != nil {
			b.Fatal(err)
		}
	}
}

// Rules are shared by all requests; the race detector watches this test.
func TestPlanConcurrently(t *testing.T) {
	r := ruleOf(t, load(t, "every-field.yaml"), "signed")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			plan, err := r.Plan(t.Context(), pod("prod-eu"), []policy.Image{container("ghcr.io/org/app:v1")})
			if err != nil || len(plan.Checks) != 1 {
				t.Errorf("%d checks, %v", len(plan.Checks), err)
				return
			}
			predicate := map[string]any{"buildDefinition": map[string]any{"buildType": "https://ci.example/1"}}
			if holds, _, err := plan.Checks[0].Attestations[0].Condition.Holds(predicate); !holds || err != nil {
				t.Errorf("%v, %v", holds, err)
			}
		})
	}
	group.Wait()
}

// TestUpdatesThatSelect: an image that the object had before is unchanged to a rule only if the
// rule matched the old object.
func TestUpdatesThatSelect(t *testing.T) {
	const pods = "kinds: [Pod]"
	object := func(labels map[string]any) policy.Content {
		return policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "web", "labels": labels}, "spec": map[string]any{}})
	}
	prod, none, skipped := map[string]any{"env": "prod"}, map[string]any{}, map[string]any{"env": "prod", "skip": "yes"}
	byLabel := compile(t, nil, pods, pods+"\n          selector: {matchLabels: {env: prod}}")
	excluded := compile(t, nil, "    verifyImages:", "    exclude: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {skip: 'yes'}}}}]}\n    verifyImages:")
	condition := compile(t, nil, "    verifyImages:", "    preconditions: {all: [{key: \"{{ request.object.metadata.labels.env || '' }}\", operator: Equals, value: prod}]}\n    verifyImages:")
	all := compile(t, nil, "", "")
	for _, c := range []struct {
		reason   string
		policy   *policy.Policy
		old, now map[string]any
		checks   bool
		selects  bool
	}{
		{"a selected label is added", byLabel, none, prod, true, true},
		{"it was there", byLabel, prod, prod, false, true},
		{"it is removed", byLabel, prod, none, false, true},
		{"an exclusion ends", excluded, skipped, prod, true, true},
		{"an exclusion begins", excluded, prod, skipped, false, true},
		{"it was not excluded before", excluded, none, prod, false, true},
		{"a precondition begins to hold", condition, none, prod, true, true},
		{"it held before", condition, prod, prod, false, true},
		{"every pod", all, none, prod, false, false},
	} {
		made, err := set.New(c.policy)
		if err != nil {
			t.Fatal(err)
		}
		s := pod("default")
		s.Operation, s.Object, s.OldObject = "UPDATE", object(c.now), object(c.old)
		stood := container("nginx")
		stood.Unchanged = true
		plan := made.Plan(t.Context(), s, func([]policy.Extractor) ([]policy.Image, error) { return []policy.Image{stood}, nil })
		if got := len(plan.Checks) > 0; got != c.checks {
			t.Errorf("%s: checked %t, want %t: %+v", c.reason, got, c.checks, plan.Results)
		}
		if got := set.RematchesIn(c.policy, s, nil); got != c.selects {
			t.Errorf("%s: may match after an update of metadata %t, want %t", c.reason, got, c.selects)
		}
	}
}

// TestReportProperties: the author's words for reports are those of each check, with their variables
// resolved, and the label for reports counts with any value.
func TestReportProperties(t *testing.T) {
	p := compile(t, nil, "    verifyImages:", "    reportProperties: {team: a, object: '{{request.object.metadata.name}}', none: '{{request.object.spec.nowhere}}'}\n    verifyImages:")
	plan, err := ruleOf(t, p, "signed").Plan(t.Context(), pod("shop"), []policy.Image{container("nginx")})
	if err != nil || len(plan.Checks) != 1 {
		t.Fatalf("%+v, %v", plan, err)
	}
	if got := plan.Checks[0].Properties; len(got) != 3 || got["team"] != "a" || got["object"] != "web" || got["none"] != "{{request.object.spec.nowhere}}" {
		t.Errorf("properties %v", got)
	}
	if p.Unreported {
		t.Error("reports are disabled without the label")
	}
	if p := compile(t, nil, "  name: minimal", "  name: minimal\n  labels: {reports.kyverno.io/disabled: \"\"}"); !p.Unreported {
		t.Error("reports are not disabled with the label")
	}
	broken := strings.Replace(minimal, "    verifyImages:", "    reportProperties: {team: '{{ request.object( }}'}\n    verifyImages:", 1)
	if _, err := newCompiler(t, nil).Compile([]byte(broken), "test.yaml"); err == nil || !strings.Contains(err.Error(), "reportProperties.team") {
		t.Errorf("a variable that cannot be read: %v", err)
	}
}
