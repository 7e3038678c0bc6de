package kyverno_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
)

// TestIndeterminateExclude: an indeterminate exclusion removes no rule: a pass stays a
// pass, and a failure is indeterminate and names the missing value.
func TestIndeterminateExclude(t *testing.T) {
	const deny = "validate: {message: denied, deny: {conditions: {all: [{key: '{{ request.object.bad }}', operator: Equals, value: true}]}}}}"
	object := func(s *policy.Subject, kind string, bad bool) *policy.Subject {
		s.Object = policy.ContentOf(map[string]any{"kind": kind, "bad": bad, "metadata": map[string]any{"labels": map[string]any{"free": "yes"}}})
		return s
	}
	for _, c := range []struct {
		reason, selection string
		subject           func() *policy.Subject
		kind, names       string
	}{
		{"labels of an Eviction", "match: {any: [{resources: {kinds: [Pod/eviction]}}]}, exclude: {any: [{resources: {selector: {matchLabels: {free: 'yes'}}}}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Subresource: "eviction", Namespace: "prod", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Name: "a", Operation: "CREATE"}
		}, "Eviction", "its subresource eviction brings another object"},
		{"labels of the namespace", "match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {namespaceSelector: {matchLabels: {free: 'yes'}}}}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", Name: "a", Operation: "CREATE"}
		}, "Pod", "labels of the object's namespace"},
		{"a match by labels of the namespace", "match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {free: 'yes'}}}}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", Name: "a", Operation: "CREATE"}
		}, "Pod", "labels of the object's namespace"},
		{"roles", "match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{clusterRoles: [cluster-admin]}]}", func() *policy.Subject {
			return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Name: "a", Operation: "CREATE", User: policy.User{Name: "eve"}}
		}, "Pod", "the user's roles"},
	} {
		p := about(t, nil, "{name: r, "+c.selection+", "+deny, "")
		if got := results(t, p, object(c.subject(), c.kind, false)); got != "r=pass" {
			t.Errorf("%s: of an object that the rule admits: %s", c.reason, got)
		}
		validated := p.Validations[0].Validate(t.Context(), policy.Case{Subject: object(c.subject(), c.kind, true)})
		if validated.Result != policy.Indeterminate || !strings.Contains(validated.Reasons[0].Message, c.names) || validated.Reasons[0].Code != policy.PolicyError {
			t.Errorf("%s: of an object that it refuses: %s %v", c.reason, validated.Result, validated.Reasons)
		}
	}
}

// TestOfTheCluster: an exclusion and an exception by labels of namespaces cover no object
// that is in none.
func TestOfTheCluster(t *testing.T) {
	binding := &policy.Subject{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding", Name: "mine", Operation: "CREATE", Object: policy.ContentOf(map[string]any{"kind": "ClusterRoleBinding"})}
	const bindings = "match: {any: [{resources: {kinds: [ClusterRoleBinding, RoleBinding]}}]}"
	for _, selector := range []string{"{matchLabels: {env: sandbox}}", "{matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}", "{}"} {
		p := about(t, nil, "{name: r, "+bindings+", exclude: {any: [{resources: {namespaceSelector: "+selector+"}}]}, validate: {message: denied, deny: {}}}", "")
		if got := results(t, p, binding); got != "r=fail" {
			t.Errorf("excluded by %s: %s", selector, got)
		}
		e, err := newCompiler(t, nil).CompileException([]byte("{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {exceptions: [{policyName: p, ruleNames: [r]}], "+
			"match: {any: [{resources: {namespaceSelector: "+selector+"}}]}}}"), "test")
		if err != nil {
			t.Fatal(err)
		}
		if covers, err := e.Scope.Covers(t.Context(), binding); covers || err != nil {
			t.Errorf("excepted by %s: %t, %v", selector, covers, err)
		}
		role := *binding
		role.Kind, role.Namespace, role.NamespaceKnown, role.NamespaceLabels = "RoleBinding", "a", true, map[string]string{"env": "sandbox"}
		if got := results(t, p, &role); got != "" {
			t.Errorf("of a namespace that is excluded by %s: %s", selector, got)
		}
	}
}

// TestBrokenSelection: a policy that is broken by a user which no request has holds the
// kinds that it names, and no others.
func TestBrokenSelection(t *testing.T) {
	const text = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [KINDS]}, subjects: [{kind: ServiceAccount, name: ci}]}]}, validate: {deny: {}}}]}}"
	for kinds, want := range map[string]string{"ConfigMap": "ConfigMap", "pods": "Pod"} {
		document := []byte(strings.Replace(text, "KINDS", kinds, 1))
		_, err := newCompiler(t, nil).Compile(document, "test")
		if err == nil || !strings.Contains(err.Error(), "spec.rules[0].match.any[0].subjects[0].namespace: is empty") {
			t.Fatalf("%s: %v", kinds, err)
		}
		broken := kyverno.Broken(document, "test", err)
		for _, kind := range []string{"ConfigMap", "Pod", "Secret"} {
			s := &policy.Subject{Version: "v1", Kind: kind, Namespace: "a", Operation: "CREATE", Object: policy.ContentOf(map[string]any{"kind": kind})}
			if got := results(t, broken, s) == "r=indeterminate"; got != (kind == want) {
				t.Errorf("a broken rule about %s holds %s: %t", kinds, kind, got)
			}
		}
	}
}

// TestOneInDoubt: under applyRules One a rule that passes ends its policy only where it is
// certain that it applies, and to the whole object; else the author of the object would choose the policy's rule.
func TestOneInDoubt(t *testing.T) {
	const (
		pods  = "match: {any: [{resources: {kinds: [Pod]}}]}"
		holds = "validate: {pattern: {kind: Pod}}"
		many  = "all: [{key: '{{ %.spec.size }}', operator: GreaterThan, value: 5}]"
		deny  = ", {name: b, " + pods + ", validate: {deny: {}}}"
	)
	object := strings.ReplaceAll(many, "%", "request.object")
	loop := func(list, body string) string {
		return "{list: '" + list + "', preconditions: {" + strings.ReplaceAll(many, "%.spec", "element") + "}, " + body + "}"
	}
	const element = "pattern: {name: '*'}"
	for _, c := range []struct{ reason, rule, spec, want string }{
		{"certain", pods + ", " + holds, "{}", "a=pass"},
		{"certain, and fails", pods + ", validate: {pattern: {kind: Node}}", "{}", "a=fail"},
		{"a pattern that skips a part", pods + ", validate: {pattern: {spec: {=(a): {(b): 1, c: 2}, =(d): 3}}}", "{a: {b: 0}}", "a=pass b=fail"},
		{"a pattern that skips no part", pods + ", validate: {pattern: {spec: {=(a): {(b): 1, c: 2}, =(d): 3}}}", "{a: {b: 1, c: 2}}", "a=pass"},
		{"a pattern that skips a part of an element", pods + ", validate: {foreach: [{list: request.object.spec.list, pattern: {=(a): {(b): 1, c: 2}, =(d): 3}}]}", "{list: [{a: {b: 0}}]}", "a=pass b=fail"},
		{"preconditions that hold", pods + ", preconditions: {" + object + "}, " + holds, "{size: 9}", "a=pass"},
		{"preconditions in doubt", pods + ", preconditions: {" + object + "}, " + holds, "{size: many}", "a=pass b=fail"},
		{"preconditions in doubt, and fails", pods + ", preconditions: {" + object + "}, validate: {deny: {}}", "{size: many}", "a=indeterminate b=fail"},
		{"an exclusion in doubt", pods + ", exclude: {any: [{resources: {namespaceSelector: {matchLabels: {free: 'yes'}}}}]}, " + holds, "{}", "a=pass b=fail"},
		{"an exclusion that does not cover it", pods + ", exclude: {any: [{resources: {namespaces: [other]}}]}, " + holds, "{}", "a=pass"},
		{"a match in doubt", "match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {free: 'yes'}}}}]}, " + holds, "{}", "a=pass b=fail"},
		{"an element that is concerned", pods + ", validate: {foreach: [" + loop("request.object.spec.list", element) + "]}", "{list: [{name: a, size: 9}]}", "a=pass"},
		{"an element in doubt", pods + ", validate: {foreach: [" + loop("request.object.spec.list", element) + "]}", "{list: [{name: a, size: many}]}", "a=pass b=fail"},
		{"an element in doubt beside one that is concerned", pods + ", validate: {foreach: [" + loop("request.object.spec.list", element) + "]}", "{list: [{name: a, size: many}, {name: b, size: 9}]}", "a=pass"},
		{"a list in doubt beside one that is concerned", pods + ", validate: {foreach: [" + loop("request.object.spec.list", element) + ", {list: request.object.spec.more, " + element + "}]}", "{list: [{name: a, size: many}], more: [{name: b}]}", "a=pass"},
		{"a list in doubt beside an empty one", pods + ", validate: {foreach: [" + loop("request.object.spec.list", element) + ", {list: request.object.spec.more, " + element + "}]}", "{list: [{name: a, size: many}], more: []}", "a=pass b=fail"},
		{"a list in a list in doubt", pods + ", validate: {foreach: [{list: request.object.spec.list, foreach: [" + loop("element.list", element) + "]}]}", "{list: [{list: [{name: a, size: many}]}]}", "a=pass b=fail"},
		{"a user without a request", "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: ann}]}]}, " + holds, "{}", "a=pass b=fail"},
		{"a role without a request", "match: {all: [{resources: {kinds: [Pod]}}, {clusterRoles: [edit]}]}, " + holds, "{}", "a=pass b=fail"},
		{"an excluded user without a request", pods + ", exclude: {any: [{subjects: [{kind: Group, name: dev}]}]}, " + holds, "{}", "a=pass b=fail"},
		{"a user without a request, and fails", "match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: ann}]}]}, validate: {deny: {}}", "{}", "a=fail"},
	} {
		pod := subjectFrom(t, strings.Replace(podOf, "%s", c.spec, 1))
		pod.NamespaceKnown = false
		if got := results(t, about(t, nil, "{name: a, "+c.rule+"}"+deny, "applyRules: One, "), pod); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
	known := subjectFrom(t, strings.Replace(podOf, "%s", "{}", 1))
	known.User = policy.User{Name: "ann"}
	rules := "{name: a, match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: ann}]}]}, " + holds + "}" + deny
	if got := results(t, about(t, nil, rules, "applyRules: One, "), known); got != "a=pass" {
		t.Errorf("the user of a request: %s", got)
	}
}

// TestDefaults: the default of a variable replaces an absent value, and no failed evaluation,
// in a rule that denies the default as in one that denies all else.
func TestDefaults(t *testing.T) {
	const deny = ", context: [{name: v, variable: {jmesPath: %s, default: d}}], validate: {deny: {conditions: {any: [{key: '{{ v }}', operator: %s, value: d}]}}}"
	for _, c := range []struct{ reason, metadata, path, equals, notEquals string }{
		{"an absent label", "{name: web}", "request.object.metadata.labels.team", "r=fail", "r=pass"},
		{"a label", "{name: web, labels: {team: a}}", "request.object.metadata.labels.team", "r=pass", "r=fail"},
		{"a function of an absent label", "{name: web}", "to_upper(request.object.metadata.labels.team)", "r=fail", "r=pass"},
		{"a function of a label", "{name: web, labels: {team: d}}", "to_lower(request.object.metadata.labels.team)", "r=fail", "r=pass"},
		{"a function of a label of another type", "{name: web, labels: {team: 1}}", "to_upper(request.object.metadata.labels.team)", "r=indeterminate", "r=indeterminate"},
		{"a number that is none", "{name: web, labels: {team: a}}", "parse_json(request.object.metadata.labels.team)", "r=indeterminate", "r=indeterminate"},
		{"a part of one element", "{name: web, finalizers: [a, null]}", "request.object.metadata.finalizers[].to_upper(@)", "r=indeterminate", "r=indeterminate"},
	} {
		pod := subjectFrom(t, "{apiVersion: v1, kind: Pod, metadata: "+c.metadata+", spec: {containers: []}}")
		for operator, want := range map[string]string{"Equals": c.equals, "NotEquals": c.notEquals} {
			rule := "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}" + fmt.Sprintf(deny, "'"+c.path+"'", operator) + "}"
			if got := results(t, about(t, nil, rule, "background: false, "), pod); got != want {
				t.Errorf("%s: %s: %s, want %s", c.reason, operator, got, want)
			}
		}
	}
}

// TestExceptionsForAccounts: conditions of an exception read the requesting service account, as rules do: it is empty
// for another user, and unknown without a user, so that no default stands in its place.
func TestExceptionsForAccounts(t *testing.T) {
	whole := func(user string) *policy.Subject {
		return &policy.Subject{
			Kind: "Pod", Version: "v1", Name: "a", Namespace: "a", Operation: "CREATE", User: policy.User{Name: user},
			Request: policy.RequestFrom([]byte(`{"userInfo": {"username": "` + user + `"}}`)),
		}
	}
	file := &policy.Subject{Kind: "Pod", Version: "v1", Name: "a", Namespace: "a", Operation: "CREATE"}
	const robot = "system:serviceaccount:ci:robot"
	for _, c := range []struct {
		reason, key, operator, value string
		subject                      *policy.Subject
		covers                       bool
	}{
		{"the account", "serviceAccountName", "Equals", "robot", whole(robot), true},
		{"another account", "serviceAccountName", "Equals", "robot", whole("system:serviceaccount:ci:other"), false},
		{"its namespace", "serviceAccountNamespace", "Equals", "ci", whole(robot), true},
		{"no account, of an account", "serviceAccountName || ''", "Equals", "", whole(robot), false},
		{"no account, of a user", "serviceAccountName || ''", "Equals", "", whole("ann"), true},
		{"all but one, of that one", "serviceAccountName || ''", "NotEquals", "robot", whole(robot), false},
		{"all but one, of another", "serviceAccountName || ''", "NotEquals", "robot", whole("ann"), true},
		{"no account, of a file", "serviceAccountName || ''", "Equals", "", file, false},
		{"no namespace, of a file", "serviceAccountNamespace || ''", "Equals", "", file, false},
		{"all but one, of a file", "serviceAccountName || ''", "NotEquals", "robot", file, false},
		{"images, which an exception does not see", "images.containers.c.registry || ''", "Equals", "", whole(robot), false},
	} {
		e, err := newCompiler(t, nil).CompileException([]byte("{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {exceptions: [{policyName: p, ruleNames: [r]}], "+
			"match: {any: [{resources: {kinds: [Pod]}}]}, conditions: {any: [{key: \"{{ "+c.key+" }}\", operator: "+c.operator+", value: '"+c.value+"'}]}}}"), "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if covers, err := e.Scope.Covers(t.Context(), c.subject); covers != c.covers {
			t.Errorf("%s: %t, %v", c.reason, covers, err)
		}
	}
}
