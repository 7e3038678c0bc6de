package cel_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// excepted are two rules about pods, and one about Services in the same policy.
const excepted = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: excepted}
spec:
  validationFailureAction: Enforce
  rules:
  - name: no-host-network
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]}
    validate: {message: Pods have a network of their own., allowExistingViolations: false, pattern: {spec: {=(hostNetwork): false}}}
  - name: no-host-pid
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE, UPDATE]}}]}
    validate: {message: Pods have processes of their own., allowExistingViolations: false, pattern: {spec: {=(hostPID): false}}}
  - name: no-node-port
    match: {any: [{resources: {kinds: [Service]}}]}
    validate: {message: No port of nodes., allowExistingViolations: false, pattern: {spec: {type: '!NodePort'}}}
---
`

// exception leaves something out of the policy.
const exceptionHead = `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: leave, namespace: exempt}
spec:
`

// deniedBy returns the rules that deny a subject with the policies and exceptions of a text, by their message.
func deniedBy(t *testing.T, s *set.Set, subject *policy.Subject) string {
	t.Helper()
	var all []string
	for _, r := range s.Validate(t.Context(), subject, nil) {
		if r.Skip == "" && !r.Ruling.Passes() {
			all = append(all, r.Ruling.Reasons[0].Message)
		}
	}
	for i, text := range all { // the source adds the rule and the path
		for _, message := range []string{"Pods have a network of their own.", "Pods have processes of their own.", "No port of nodes."} {
			if strings.Contains(text, strings.TrimSuffix(message, ".")) {
				all[i] = message
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// sets returns the source and the result as sets.
func sets(t *testing.T, text string, result cel.Result) (source, made *set.Set) {
	t.Helper()
	objects, err := workload.ReadDocuments(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compile := func(policies []*policy.Policy, exceptions []*policy.Exception) *set.Set {
		base, err := set.New(policies...)
		if err != nil {
			t.Fatal(err)
		}
		with, err := base.With(exceptions...)
		if err != nil {
			t.Fatal(err)
		}
		return with
	}
	var policies []*policy.Policy
	var exceptions []*policy.Exception
	for _, o := range objects {
		document := o.JSON()
		if o.Content()["kind"] != "PolicyException" {
			policies = append(policies, sourcePolicy(t, document))
			continue
		}
		e, err := compilerOf(t).CompileException(document, "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		exceptions = append(exceptions, e)
	}
	source = compile(policies, exceptions)
	exceptions = nil
	result.Policies = slices.DeleteFunc(slices.Clone(result.Policies), func(p cel.Policy) bool {
		if p.Kind != "PolicyException" {
			return false
		}
		document, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		e, err := imagevalidating.New(imagevalidating.Options{Options: kyvernocel.Options{}}).CompileException(document, "test.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		exceptions = append(exceptions, e)
		return true
	})
	return source, compile(compiledResults(t, result.Policies), exceptions)
}

// violating returns requests for objects that violate the rules, of many names, labels, users and kinds.
func violating(t *testing.T) (subjects []*policy.Subject) {
	t.Helper()
	add := func(head, metadata string, change func(*policy.Subject)) {
		for _, host := range []string{"hostNetwork", "hostPID"} { // a policy in CEL shows its first failure alone
			text := strings.NewReplacer("META", metadata, "SPEC", "{"+host+": true, containers: [{name: a, image: a}]}").Replace(head)
			s := creation(policytest.Object(t, text))
			s.NamespaceLabels = map[string]string{"team": s.Namespace}
			s.User = policy.User{Name: "ann", Groups: []string{"dev", "system:authenticated"}}
			if change != nil {
				change(s)
			}
			subjects = append(subjects, s)
		}
	}
	const pod = "{apiVersion: v1, kind: Pod, metadata: META, spec: SPEC}"
	heads := []string{
		pod, "{apiVersion: apps/v1, kind: Deployment, metadata: META, spec: {template: {spec: SPEC}}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: META, spec: {jobTemplate: {spec: {template: {spec: SPEC}}}}}",
		"{apiVersion: v1, kind: Service, metadata: META, spec: {type: NodePort}}",
	}
	for _, head := range heads {
		for _, name := range []string{"name: tool", "name: tool-a", "name: a-tool", "generateName: tool-", "generateName: tool", "name: '', generateName: too", "name: other, generateName: tool-"} {
			add(head, "{namespace: shop, "+name+"}", nil)
		}
		for _, namespace := range []string{"shop", "shop-a", "a", "kube-system"} {
			add(head, "{name: x, namespace: "+namespace+"}", nil)
		}
		for _, labels := range []string{"{app: a}", "{app: ab}", "{app: ''}", "{app: b, old: x}", "{}", "null"} {
			add(head, "{name: x, namespace: shop, labels: "+labels+"}", nil)
			add(head, "{name: x, namespace: shop, annotations: "+labels+"}", nil)
		}
	}
	for _, change := range []func(*policy.Subject){
		func(s *policy.Subject) { s.User.Name = "system:serviceaccount:ci:deployer" },
		func(s *policy.Subject) { s.User.Name = "bob" },
		func(s *policy.Subject) { s.User.Groups = []string{"ops-a"} },
		func(s *policy.Subject) { s.User = policy.User{} },
		func(s *policy.Subject) { s.Operation = "UPDATE"; s.OldObject = s.Object },
		func(s *policy.Subject) { s.NamespaceLabels = nil },
		func(s *policy.Subject) { s.NamespaceKnown = false },
		func(s *policy.Subject) {
			s.Operation, s.Subresource, s.OldObject = "UPDATE", "ephemeralcontainers", s.Object
		},
		func(s *policy.Subject) { s.Time = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		add(pod, "{name: x, namespace: shop}", change)
	}
	return subjects
}

// TestExceptions: source and result exempt the same, some of the objects and not all.
func TestExceptions(t *testing.T) {
	both := "  exceptions: [{policyName: excepted, ruleNames: ['*']}]\n"
	of := func(filter string) string { return both + "  match: {any: [{" + filter + "}]}\n" }
	subjects := violating(t)
	for _, c := range []struct{ reason, spec, written string }{
		{"a kind", of("resources: {kinds: [Pod]}"), "request.kind.kind == 'Pod' && request.?subResource.orValue('') == ''"},
		{"kinds", of("resources: {kinds: [Deployment, Service]}"), "request.kind.kind in ['Deployment', 'Service']"},
		{"a kind of a group", of("resources: {kinds: [apps/v1/Deployment, v1/Pod]}"), "(request.kind.group == 'apps' && request.kind.version == 'v1' && request.kind.kind == 'Deployment')"},
		{"namespaces", of("resources: {namespaces: [shop, 'kube-*']}"), "request.?namespace.orValue('') == 'shop' || request.?namespace.orValue('').startsWith('kube-')"},
		{"names", of("resources: {names: [tool, 'tool-*']}"), "object.?metadata.?name.orValue('') == 'tool' || object.?metadata.?name.orValue(object.?metadata.?generateName.orValue('')).startsWith('tool-')"},
		{"ends of names", of("resources: {kinds: [Pod], names: ['*-tool']}"), "object.?metadata.?name.orValue('').endsWith('-tool')"},
		{"a name", of("resources: {name: tool}"), ""},
		{"labels", of("resources: {selector: {matchLabels: {app: a}}}"), "object.?metadata.?labels[?'app'].orValue('') == 'a'"},
		{"patterns of labels", of("resources: {selector: {matchLabels: {app: 'a*'}}}"), "object.?metadata.?labels[?'app'].orValue('').startsWith('a')"},
		{"any label", of("resources: {selector: {matchLabels: {app: '*'}}}"), "object.?metadata.?labels[?'app'].hasValue()"},
		{"an empty label", of("resources: {selector: {matchLabels: {app: ''}}}"), "object.?metadata.?labels[?'app'].value() == ''"},
		{"a shape of labels", of("resources: {selector: {matchLabels: {app: '?b'}}}"), "matches("},
		{"expressions over labels", of("resources: {selector: {matchExpressions: [{key: app, operator: In, values: [a, b]}, {key: old, operator: DoesNotExist}]}}"), ""},
		{"other expressions", of("resources: {selector: {matchExpressions: [{key: app, operator: NotIn, values: [a, '']}, {key: app, operator: Exists}]}}"), ""},
		{"annotations", of("resources: {annotations: {app: 'a*'}}"), "object.?metadata.?annotations[?'app'].orValue('').startsWith('a')"},
		{"labels of namespaces", of("resources: {namespaceSelector: {matchLabels: {team: shop}}}"), "namespaceObject.metadata.?labels[?'team'].orValue('') == 'shop'"},
		{"operations", of("resources: {operations: [UPDATE]}"), "request.operation == 'UPDATE'"},
		{"a user", of("subjects: [{kind: User, name: bob}]"), "request.userInfo.username == 'bob'"},
		{"a group", of("subjects: [{kind: Group, name: dev}], resources: {kinds: [Pod]}"), "in request.userInfo.groups"},
		{"some groups", of("subjects: [{kind: Group, name: 'ops-*'}]"), "request.userInfo.groups.exists(group, group.startsWith('ops-'))"},
		{"an account", of("subjects: [{kind: ServiceAccount, namespace: ci, name: '*'}, {kind: User, name: bob}]"), ""},
		{"several filters", both + "  match: {any: [{resources: {kinds: [Pod], namespaces: [a]}}, {resources: {kinds: [Service], names: [tool]}}]}\n", ""},
		{"filters that hold together", both + "  match: {all: [{resources: {kinds: [Pod, Service]}}, {resources: {namespaces: ['shop*']}}]}\n", ""},
		{"the old form", both + "  match: {resources: {kinds: [Pod]}}\n", ""},
		{"one rule", "  exceptions: [{policyName: excepted, ruleNames: [no-host-pid, autogen-no-host-pid, autogen-cronjob-no-host-pid]}]\n  match: {any: [{resources: {namespaces: [shop]}}]}\n", ""},
		{"rules by a pattern", "  exceptions: [{policyName: excepted, ruleNames: ['*no-host-*']}]\n  match: {any: [{resources: {namespaces: [shop]}}]}\n", ""},
		{"a rule for pods alone", "  exceptions: [{policyName: excepted, ruleNames: [no-host-pid]}]\n  match: {any: [{resources: {namespaces: [shop]}}]}\n", "request.kind.kind == 'Pod'"},
		{"a rule for controllers alone", "  exceptions: [{policyName: excepted, ruleNames: [autogen-no-host-pid, no-node-port]}]\n  match: {any: [{resources: {namespaces: [shop]}}]}\n", "'Deployment'"},
		{"several entries", "  exceptions: [{policyName: excepted, ruleNames: [no-host-pid]}, {policyName: excepted, ruleNames: [no-host-network]}]\n  match: {any: [{resources: {kinds: [Pod, Deployment]}}]}\n", ""},
		{"a condition", of("resources: {kinds: [Pod, Deployment]}") + "  conditions: {any: [{key: \"{{ request.object.metadata.labels.app || '' }}\", operator: Equals, value: a}]}\n", "- name: conditions"},
		{"a condition on the name", both + "  match: {any: [{resources: {kinds: [Pod, Service]}}]}\n  conditions: {all: [{key: '{{ request.object.metadata.name }}', operator: NotEquals, value: 'tool*'}]}\n", ""},
		{"a condition on the operation", both + "  match: {any: [{resources: {kinds: [Pod]}}]}\n  conditions: {all: [{key: '{{ request.operation }}', operator: AnyIn, value: [UPDATE]}]}\n", ""},
		{"a condition on the namespace", both + "  match: {any: [{resources: {kinds: [Pod]}}]}\n  conditions: {any: [{key: '{{ request.namespace }}', operator: AnyNotIn, value: [shop]}], all: [{key: '{{ request.object.kind }}', operator: Equals, value: Pod}]}\n", ""},
		{"for a time", of("resources: {namespaces: [shop]}") + "---\n", ""},
	} {
		text := excepted + exceptionHead + c.spec
		if c.reason == "for a time" {
			text = strings.Replace(text, "namespace: exempt}", "namespace: exempt, annotations: {quaymaster.dev/expires: '2029-01-01T00:00:00Z', quaymaster.dev/reason: it is old}}", 1)
		}
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", c.reason, result.Problems)
			continue
		}
		written, err := cel.YAML(result.Policies)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(written)), " "), c.written) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.written)
		}
		source, made := sets(t, text, result)
		exempt, denied := 0, 0
		for _, s := range subjects {
			want, got := deniedBy(t, source, s), deniedBy(t, made, s)
			if want != got {
				t.Errorf("%s: %s %s: denied by %q, was %q\n%s", c.reason, s.Kind, s.Object.Map()["metadata"], got, want, written)
			}
			if want == "" {
				exempt++
			} else {
				denied++
			}
		}
		if exempt == 0 || denied == 0 {
			t.Errorf("%s: %d are exempt, and %d denied", c.reason, exempt, denied)
		}
	}
}

// TestExceptionsOfDeletions: of a deletion the old object has the name, the labels and the annotations.
func TestExceptionsOfDeletions(t *testing.T) {
	const head = `{apiVersion: kyverno.io/v1, kind: Policy, metadata: {name: kept, namespace: shop}, spec: {validationFailureAction: Enforce, rules: [{name: kept,
  match: {any: [{resources: {kinds: [ConfigMap]}}]}, validate: {message: It stays., cel: {expressions: [{expression: "request.operation != 'DELETE'"}]}}}]}}
---
`
	for _, filter := range []string{"names: [a, 'b-*']", "selector: {matchLabels: {app: a}}", "annotations: {app: 'a*'}", "operations: [DELETE], names: [a]"} {
		text := head + exceptionHead + "  exceptions: [{policyName: shop/kept, ruleNames: [kept]}]\n  match: {any: [{resources: {" + filter + "}}]}\n"
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Fatal(result.Problems)
		}
		source, made := sets(t, text, result)
		exempt, denied := 0, 0
		for _, metadata := range []string{"{name: a, namespace: shop}", "{name: b-c, namespace: shop, labels: {app: a}}", "{name: c, namespace: shop, annotations: {app: ab}}"} {
			s := creation(policytest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: "+metadata+"}"))
			s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.ContentOf(nil)
			want, got := deniedBy(t, source, s), deniedBy(t, made, s)
			if want != got {
				t.Errorf("%s: %s: denied by %q, was %q", filter, metadata, got, want)
			}
			if want == "" {
				exempt++
			} else {
				denied++
			}
		}
		if exempt == 0 || denied == 0 {
			t.Errorf("%s: %d are exempt, and %d denied", filter, exempt, denied)
		}
	}
}

// TestExceptionsRefused: what would make an exception wider, or has no form, is refused with its path.
func TestExceptionsRefused(t *testing.T) {
	const rules = "  exceptions: [{policyName: excepted, ruleNames: ['*']}]\n"
	for _, c := range []struct{ reason, spec, path string }{
		{"a condition without a form", rules + "  match: {any: [{resources: {kinds: [Pod]}}]}\n  conditions: {all: [{key: '{{ request.operation }}', operator: Equals, value: CREATE}, {key: '{{ serviceAccountName }}', operator: Equals, value: a}]}\n", "spec.conditions.all[1].key"},
		{"not for existing objects", rules + "  background: false\n  match: {any: [{resources: {kinds: [Pod]}}]}\n", "spec.background"},
		{"controls", rules + "  match: {any: [{resources: {kinds: [Pod]}}]}\n  podSecurity: [{controlName: Host Namespaces}]\n", "spec.podSecurity"},
		{"roles", rules + "  match: {any: [{clusterRoles: [admin]}]}\n", "spec.match.any[0].clusterRoles"},
		{"roles of a namespace", rules + "  match: {all: [{roles: ['shop:admin']}]}\n", "spec.match.all[0].roles"},
		{"a subresource", rules + "  match: {resources: {kinds: [Pod, Pod/exec]}}\n", "spec.match.resources.kinds[1]"},
		{"kinds by a pattern", rules + "  match: {resources: {kinds: ['*Set']}}\n", "spec.match.resources.kinds[0]"},
		{"names of two parts", rules + "  match: {resources: {names: ['a*b*']}}\n", "spec.match.resources.names[0]"},
		{"names that are partly generated", rules + "  match: {resources: {name: 'a-?????'}}\n", "spec.match.resources.name"},
		{"a name that is longer than what one is generated from", rules + "  match: {resources: {names: ['" + strings.Repeat("a", 59) + "*']}}\n", "spec.match.resources.names[0]"},
		{"keys by a pattern", rules + "  match: {resources: {annotations: {'a*': b}}}\n", "spec.match.resources.annotations[a*]"},
		{"a policy that is elsewhere", "  exceptions: [{policyName: excepted, ruleNames: ['*']}, {policyName: another, ruleNames: ['*']}]\n  match: {any: [{resources: {kinds: [Pod]}}]}\n", "spec.exceptions[1].policyName"},
		{"images of a rule about objects", rules + "  match: {any: [{resources: {kinds: [Pod]}}]}\n", "spec.exceptions"},
		{"namespaces of Namespaces", rules + "  match: {any: [{resources: {namespaces: [shop]}}]}\n", "spec.match.any[0].resources.namespaces"},
		{"labels of Namespaces", rules + "  match: {any: [{resources: {namespaceSelector: {matchLabels: {a: b}}}}]}\n", "spec.match.any[0].resources.namespaceSelector"},
		{"no rule", "  exceptions: [{policyName: excepted, ruleNames: [other]}]\n  match: {any: [{resources: {kinds: [Pod]}}]}\n", "spec.exceptions"},
	} {
		text := excepted + exceptionHead + c.spec
		switch c.reason {
		case "namespaces of Namespaces", "labels of Namespaces":
			text = strings.Replace(strings.Replace(text, "kinds: [Service]", "kinds: [Namespace]", 1), "{spec: {type: '!NodePort'}}", "{metadata: {name: '!a'}}", 1)
		case "images of a rule about objects":
			text = strings.Replace(text, "namespace: exempt}", "namespace: exempt, annotations: {quaymaster.dev/images: 'docker.io/library/nginx:*'}}", 1)
		}
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) != 1 || !strings.HasSuffix(result.Problems[0].Path, ": "+c.path) {
			t.Errorf("%s: %v", c.reason, result.Problems)
		}
	}
}

// TestExceptionsOfPolicies: an exception follows the policies that become others, those of a namespace and those of which a part stays.
func TestExceptionsOfPolicies(t *testing.T) {
	const every = "  match: {any: [{resources: {kinds: [Pod, Service]}}]}\n"
	refs := func(result cel.Result) (all []string) {
		for _, p := range result.Policies {
			text, err := p.YAML()
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind != "PolicyException" {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if name, is := strings.CutPrefix(strings.TrimSpace(line), "- name: excepted"); is {
					all = append(all, name)
				}
				if strings.Contains(line, "shop") {
					all = append(all, strings.TrimSpace(line))
				}
			}
		}
		return all
	}
	two := excepted + exceptionHead + "  exceptions: [{policyName: excepted, ruleNames: [no-host-pid]}, {policyName: excepted, ruleNames: [no-node-port]}]\n" + every
	if got := refs(convertText(t, two, cel.Options{})); !slices.Equal(got, []string{"-no-host-pid", "-no-node-port"}) {
		t.Errorf("rules of several policies: %v", got)
	}
	local := strings.Replace(strings.Replace(two, "kind: ClusterPolicy", "kind: Policy", 1), "{name: excepted}", "{name: excepted, namespace: shop}", 1)
	local = strings.ReplaceAll(local, "policyName: excepted", "policyName: shop/excepted")
	if got := refs(convertText(t, local, cel.Options{})); !slices.Equal(got, []string{"- name: shop/excepted-no-host-pid", "- name: shop/excepted-no-node-port"}) {
		t.Errorf("policies of a namespace: %v", got)
	}
	broken := strings.Replace(two, "{kinds: [Service]}}", "{kinds: [Service]}, clusterRoles: [edit]}", 1)
	if result := convertText(t, broken, cel.Options{}); len(result.Policies) > 0 || len(result.Problems) != 2 || !strings.Contains(result.Problems[1].Found, "is not converted") {
		t.Errorf("of a policy that stays: %v", result.Problems)
	}
	part := convertText(t, broken, cel.Options{Partial: true})
	if got := refs(part); !slices.Equal(got, []string{"-no-host-pid"}) || len(part.Problems) != 2 || !strings.Contains(part.Problems[1].Found, "the rule no-node-port is not converted") {
		t.Errorf("of a rule that stays: %v, %v", got, part.Problems)
	}
}

// TestRest: with Partial, each rule is in a result or stays, also where its result is no policy.
func TestRest(t *testing.T) {
	text := strings.Replace(excepted, "{spec: {type: '!NodePort'}}", "{spec: {absent: '!a'}}", 1) // a field that no Service has
	text = strings.Replace(text, "name: no-host-pid\n    match: {any: [{resources: {kinds: [Pod]", "name: no-host-pid\n    match: {any: [{clusterRoles: [edit], resources: {kinds: [Pod]", 1)
	result := convertText(t, text, cel.Options{Partial: true})
	if len(result.Policies) != 1 || len(result.Rest) != 1 || len(result.Problems) != 2 {
		t.Fatalf("%d policies, %d that stay: %v", len(result.Policies), len(result.Rest), result.Problems)
	}
	rest, err := result.Rest[0].YAML()
	if err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{"name: no-host-network": false, "name: no-host-pid": true, "name: no-node-port": true} {
		if strings.Contains(string(rest), name) != stays {
			t.Errorf("%s stays: %t\n%s", name, !stays, rest)
		}
	}
	sourcePolicy(t, rest)
}
