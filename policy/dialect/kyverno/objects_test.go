package kyverno_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/set"
)

// about compiles a policy of rules, given as YAML, with more in its spec.
func about(t *testing.T, lookup configMaps, rules, spec string, annotations ...string) *policy.Policy {
	t.Helper()
	text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p, annotations: {" + strings.Join(annotations, ", ") + "}}, spec: {validationFailureAction: Enforce, " + spec + "rules: [" + rules + "]}}"
	p, err := newCompiler(t, lookup).Compile([]byte(text), "test")
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return p
}

func subjectFrom(t *testing.T, text string) *policy.Subject {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return subjectOf(object)
}

// results returns the result of each rule that matches a subject: name=result.
func results(t *testing.T, p *policy.Policy, s *policy.Subject) string {
	t.Helper()
	find := func([]policy.Extractor) ([]policy.Image, error) { return nil, nil }
	var list []string
	for _, r := range setOf(t, p).Validate(t.Context(), s, find) {
		is := string(r.Ruling.Result)
		if r.Skip != "" {
			is = "skip"
		}
		list = append(list, r.Rule+"="+is)
	}
	return strings.Join(list, " ")
}

const (
	podOf        = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: prod, labels: {app: a}}, spec: %s}"
	deploymentOf = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: prod, labels: {app: d}}, spec: {template: {metadata: {labels: {app: a}}, spec: %s}}}"
	cronJobOf    = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: prod, labels: {app: c}}, spec: {jobTemplate: {spec: {template: {metadata: {labels: {app: a}}, spec: %s}}}}}"
)

// TestAutogenOfValidation asks the rules that follow from one about pods: they mean the same for
// pods, for templates of pods, and for templates in templates.
func TestAutogenOfValidation(t *testing.T) {
	const match = "match: {any: [{resources: {kinds: [Pod]}}]}"
	const bad, good = "{hostNetwork: true, containers: [{name: x, image: 'x:latest'}]}", "{hostNetwork: false, containers: [{name: x, image: 'x:v1'}]}"
	for _, c := range []struct{ name, body string }{
		{"pattern", "validate: {pattern: {spec: {hostNetwork: false}}}"},
		{"pattern of metadata", "validate: {pattern: {metadata: {labels: {app: '{{request.object.metadata.labels.app}}'}}, spec: {hostNetwork: false}}}"},
		{"anyPattern", "validate: {anyPattern: [{spec: {hostNetwork: false}}, {metadata: {labels: {app: z}}}]}"},
		{"deny", "validate: {deny: {conditions: {any: [{key: '{{request.object.spec.hostNetwork}}', operator: Equals, value: true}]}}}"},
		{"deny by metadata", "validate: {deny: {conditions: {all: [{key: '{{request.object.metadata.labels.app}}', operator: Equals, value: a}, {key: '{{request.object.spec.hostNetwork}}', operator: Equals, value: true}]}}}"},
		{"deny by namespace", "validate: {deny: {conditions: {all: [{key: '{{request.object.metadata.namespace}}', operator: Equals, value: prod}, {key: '{{request.object.spec.hostNetwork}}', operator: Equals, value: true}]}}}"},
		{"foreach", "validate: {foreach: [{list: request.object.spec.containers, pattern: {image: '!*:latest'}}]}"},
		{"foreach of the object", "validate: {foreach: [{list: request.object.spec.containers, elementScope: false, deny: {conditions: {any: [{key: '{{request.object.spec.hostNetwork}}', operator: Equals, value: true}]}}}]}"},
		{"podSecurity", "validate: {podSecurity: {level: baseline}}"},
		{"cel", "validate: {cel: {expressions: [{expression: '!object.spec.hostNetwork'}]}}"},
		{"context", "context: [{name: host, variable: {jmesPath: request.object.spec.hostNetwork}}], validate: {deny: {conditions: {any: [{key: '{{host}}', operator: Equals, value: true}]}}}"},
		{"preconditions", "preconditions: {all: [{key: '{{request.object.spec.containers[0].name}}', operator: Equals, value: x}]}, validate: {pattern: {spec: {hostNetwork: false}}}"},
	} {
		p := about(t, nil, "{name: r, "+match+", "+c.body+"}", "")
		for _, o := range []struct{ object, rule string }{{podOf, "r"}, {deploymentOf, "autogen-r"}, {cronJobOf, "autogen-cronjob-r"}} {
			for spec, want := range map[string]string{bad: "fail", good: "pass"} {
				if got := results(t, p, subjectFrom(t, fmt.Sprintf(o.object, spec))); got != o.rule+"="+want {
					t.Errorf("%s: %s of %s", c.name, got, spec)
				}
			}
		}
	}
	p := about(t, nil, "{name: r, "+match+", validate: {message: 'want $(./../pattern/spec/hostNetwork)', pattern: {spec: {hostNetwork: false}}}}", "")
	find := func([]policy.Extractor) ([]policy.Image, error) { return nil, nil }
	for object, want := range map[string]string{
		deploymentOf: "validation error: want false. rule autogen-r failed at path /spec/template/spec/hostNetwork/",
		cronJobOf:    "validation error: want false. rule autogen-cronjob-r failed at path /spec/jobTemplate/spec/template/spec/hostNetwork/",
	} {
		got := setOf(t, p).Validate(t.Context(), subjectFrom(t, fmt.Sprintf(object, bad)), find)
		if len(got) != 1 || got[0].Ruling.Reasons[0].Message != want {
			t.Errorf("%+v\nwant %s", got, want)
		}
	}
}

func TestAutogenOfMutation(t *testing.T) {
	const match = "match: {any: [{resources: {kinds: [Pod]}}]}"
	for _, c := range []struct{ name, body string }{
		{"merge", "mutate: {patchStrategicMerge: {spec: {containers: [{(name): '*', image: z}]}}}"},
		{"merge with a variable", "mutate: {patchStrategicMerge: {spec: {containers: [{(name): '{{request.object.spec.containers[0].name}}', image: z}]}}}"},
		{"foreach", "mutate: {foreach: [{list: request.object.spec.containers, patchStrategicMerge: {spec: {containers: [{(name): '{{element.name}}', image: z}]}}}]}"},
		{"foreach in foreach", "mutate: {foreach: [{list: \"['a']\", foreach: [{list: request.object.spec.containers, patchStrategicMerge: {spec: {containers: [{(name): '{{element.name}}', image: z}]}}}]}]}"},
	} {
		set := setOf(t, about(t, nil, "{name: r, "+match+", "+c.body+"}", ""))
		for _, object := range []string{podOf, deploymentOf, cronJobOf} {
			changed, list := set.Mutate(t.Context(), subjectFrom(t, fmt.Sprintf(object, "{containers: [{name: x, image: x}]}")),
				func(*policy.Subject) policy.Finder { return nil })
			want := subjectFrom(t, fmt.Sprintf(object, "{containers: [{name: x, image: z}]}")).Object.Map()
			equal(t, c.name, changed, want)
			if len(list) != 1 || !list[0].Changed {
				t.Errorf("%s: %+v", c.name, list)
			}
		}
	}
}

// TestWhichRulesFollow: as in Kyverno, it is the policy that can be about templates.
func TestWhichRulesFollow(t *testing.T) {
	const body = ", validate: {deny: {}}}"
	const pods = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}" + body
	for _, c := range []struct{ rules, annotation, want, reason string }{
		{pods, "", "r autogen-r autogen-cronjob-r", "pods"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: 'k8s://a/b'}}]}]}}}", "", "r", "signed manifests: templates are not signed by themselves"},
		{"{name: r, match: {any: [{resources: {kinds: [v1/Pod]}}]}" + body, "", "r autogen-r autogen-cronjob-r", "pods with their version"},
		{"{name: r, match: {resources: {kinds: [Pod]}}" + body, "", "r autogen-r autogen-cronjob-r", "the old form"},
		{pods, "pod-policies.kyverno.io/autogen-controllers: none", "r", "none is wanted"},
		{pods, "pod-policies.kyverno.io/autogen-controllers: all", "r autogen-r autogen-cronjob-r", "all are"},
		{pods, "pod-policies.kyverno.io/autogen-controllers: 'Deployment,Job'", "r autogen-r", "some are"},
		{pods, "pod-policies.kyverno.io/autogen-controllers: CronJob", "r autogen-cronjob-r", "CronJobs are"},
		{"{name: r, match: {any: [{resources: {kinds: [Service]}}]}" + body, "", "r", "no pods"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod, Deployment]}}]}" + body, "", "r", "pods and another kind"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Service]}}]}" + body, "", "r autogen-r autogen-cronjob-r", "another kind beside"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod], names: [a]}}]}" + body, "", "r", "by name"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}}]}" + body, "", "r", "by label"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {selector: {matchLabels: {a: b}}}}]}" + body, "", "r", "excluded by label"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {namespaces: [a]}}]}" + body, "", "r autogen-r autogen-cronjob-r", "excluded by namespace"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {kinds: [Service]}}]}" + body, "", "r", "another kind is excluded"},
		{pods + ", {name: s, match: {any: [{resources: {kinds: [Pod], names: [a]}}]}" + body, "", "r s", "another rule is by name"},
		{pods + ", {name: s, match: {any: [{resources: {kinds: [Service]}}]}" + body, "", "r s autogen-r autogen-cronjob-r", "another rule is about another kind"},
		{pods + ", {name: m, match: {any: [{resources: {kinds: [Service]}}]}, mutate: {patchesJson6902: '[{op: remove, path: /a}]'}}", "", "r", "another rule patches by pointers"},
	} {
		annotations := []string{}
		if c.annotation != "" {
			annotations = append(annotations, c.annotation)
		}
		var got []string
		for _, v := range about(t, nil, c.rules, "", annotations...).Validations {
			got = append(got, v.Name())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.reason, got, c.want)
		}
	}
}

func TestApplyRules(t *testing.T) {
	const rules = "{name: a, match: {any: [{resources: {kinds: [Pod]}}]}, preconditions: {all: [{key: '{{request.name}}', operator: Equals, value: b}]}, validate: {deny: {}}}," +
		"{name: b, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {kind: Pod}}}, {name: c, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {deny: {}}}"
	pod := subjectFrom(t, fmt.Sprintf(podOf, "{}"))
	equal(t, "All", results(t, about(t, nil, rules, ""), pod), "a=skip b=pass c=fail")
	equal(t, "One", results(t, about(t, nil, rules, "applyRules: One, "), pod), "a=skip b=pass")
	const audited = "{name: a, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {failureAction: Audit, pattern: {kind: Pod}}}," +
		"{name: b, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {failureAction: Enforce, deny: {}}}"
	equal(t, "One, after a rule under audit", results(t, about(t, nil, audited, "applyRules: One, "), pod), "a=pass b=fail")
}

// TestOrderOfFollowingRules: those that follow from rules about pods come after all that are
// written, as in Kyverno.
func TestOrderOfFollowingRules(t *testing.T) {
	const (
		pods        = "match: {any: [{resources: {kinds: [Pod]}}]}"
		deployments = "match: {any: [{resources: {kinds: [Deployment]}}]}"
	)
	deployment := subjectFrom(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {replicas: 9, template: {spec: {containers: [{name: a, image: good/a}]}}}}")
	for _, c := range []struct{ reason, rules, want string }{
		{"the written rule decides", "{name: a, " + pods + ", validate: {pattern: {spec: {containers: [{image: 'good/*'}]}}}}, {name: b, " + deployments + ", validate: {deny: {}}}", "b=fail"},
		{"also if it is met", "{name: a, " + pods + ", validate: {deny: {}}}, {name: b, " + deployments + ", validate: {pattern: {spec: {replicas: 9}}}}", "b=pass"},
		{"the following one, where there is no other", "{name: a, " + pods + ", validate: {pattern: {spec: {containers: [{image: 'bad/*'}]}}}}", "autogen-a=fail"},
	} {
		equal(t, c.reason, results(t, about(t, nil, c.rules, "applyRules: One, "), deployment), c.want)
	}
	all := "{name: a, " + pods + ", validate: {deny: {}}}, {name: b, " + deployments + ", validate: {deny: {}}}"
	equal(t, "all of them", results(t, about(t, nil, all, ""), deployment), "b=fail autogen-a=fail")
}

// TestSettings of a policy that rules about objects honour.
func TestSettings(t *testing.T) {
	const rules = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {deny: {}}}"
	pod := subjectFrom(t, fmt.Sprintf(podOf, "{}"))
	asked := *pod
	asked.User = policy.User{Name: "ann"}
	background := about(t, nil, rules, "admission: false, ")
	equal(t, "admission: false, with a requester", results(t, background, &asked), "")
	equal(t, "admission: false, without a requester", results(t, background, pod), "r=fail")
	gated := about(t, nil, rules, "webhookConfiguration: {matchConditions: [{name: a, expression: \"request.userInfo.username != 'ann'\"}]}, ")
	equal(t, "a matchCondition that does not hold", results(t, gated, &asked), "")
	asked.User.Name = "bob"
	equal(t, "a matchCondition that holds", results(t, gated, &asked), "r=fail")
	gated = about(t, nil, rules, "webhookConfiguration: {matchConditions: [{name: a, expression: 'object.metadata.labels.none == \"1\"'}]}, ")
	equal(t, "a matchCondition that cannot be evaluated", results(t, gated, &asked), "r=indeterminate")
	if p := about(t, nil, rules, "failurePolicy: Ignore, "); !p.FailOpen || p.AuditOnly {
		t.Errorf("%+v", p)
	}
	if p := about(t, nil, strings.Replace(rules, "validate: {", "validate: {failureAction: Audit, ", 1), ""); !p.AuditOnly {
		t.Error("a policy of which no rule enforces")
	}
	if p := about(t, nil, rules+", {name: s, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {failureAction: Audit, deny: {}}}", ""); p.AuditOnly {
		t.Error("a policy of which one rule enforces, and not the last")
	}
	// A condition is about the objects of every rule, those of pods' controllers included.
	about(t, nil, rules, "webhookConfiguration: {matchConditions: [{name: a, expression: '!has(object.spec.replicas) || object.spec.hostNetwork'}]}, ")
	for _, bad := range []string{
		"webhookConfiguration: {matchConditions: [{name: a, expression: '1'}]}, ", "webhookConfiguration: {matchConditions: [{nam: a}]}, ",
		"webhookConfiguration: {matchConditions: [{name: a b, expression: 'true'}]}, ", "schemaValidation: 7, ",
		"webhookConfiguration: {matchConditions: [{name: a, expression: 'has(object.spec.hostNetwrok)'}]}, ",
		"webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}, {name: b, expression: \"'hostNetwrok' in oldObject.spec\"}]}, ",
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {" + bad + "rules: [" + rules + "]}}"
		if _, err := newCompiler(t, nil).Compile([]byte(text), "test"); err == nil {
			t.Errorf("%s loaded", bad)
		}
	}
}

func TestTargetsOfObjectRules(t *testing.T) {
	rule := func(body string) string {
		return "{name: r, match: {any: [{resources: {kinds: [Service]}}]}, " + body + "}"
	}
	for _, c := range []struct{ rules, want, reason string }{
		{rule("validate: {pattern: {a: b}}"), "*/*/Service[CREATE UPDATE CONNECT]", "a pattern"},
		{rule("validate: {deny: {}}"), "*/*/Service[CREATE UPDATE DELETE CONNECT]", "a deny rule sees deletions"},
		{rule("mutate: {patchStrategicMerge: {a: b}}"), "*/*/Service", "a mutation"},
		{strings.Replace(rule("validate: {deny: {}}"), "kinds: [Service]", "kinds: [Service], operations: [DELETE]", 1), "*/*/Service[DELETE]", "deletions alone"},
		{strings.Replace(rule("validate: {deny: {}}"), "kinds: [Service]", "kinds: [Service], operations: [CREATE], namespaces: [a]", 1), "*/*/Service[CREATE]@a", "creations in a namespace"},
	} {
		if got := said(about(t, nil, c.rules, "").Targets); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

func TestExceptionsOfObjectRules(t *testing.T) {
	p := about(t, nil, "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {podSecurity: {level: baseline}}}", "")
	const bad = "{hostNetwork: true, containers: [{name: a, image: x, securityContext: {privileged: true}}]}"
	for _, c := range []struct{ more, object, want, reason string }{
		{"", podOf, "r=skip", "the whole rule"},
		{"", deploymentOf, "autogen-r=fail", "a rule that follows is not covered"},
		{"podSecurity: [{controlName: Host Namespaces}], ", podOf, "r=fail", "one of two controls"},
		{"podSecurity: [{controlName: Host Namespaces}, {controlName: Privileged Containers, images: ['*']}], ", podOf, "r=skip", "both controls"},
		{"podSecurity: [{controlName: Host Namespaces}, {controlName: Privileged Containers, images: ['ghcr.io/*']}], ", podOf, "r=fail", "for another image"},
	} {
		text := "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: prod}, spec: {" + c.more + "exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod, Deployment]}}]}}}"
		e, err := newCompiler(t, nil).CompileException([]byte(text), "test")
		if err != nil {
			t.Fatal(err)
		}
		set, err := setOf(t, p).With(e)
		if err != nil {
			t.Fatal(err)
		}
		list := set.Validate(t.Context(), subjectFrom(t, fmt.Sprintf(c.object, bad)), func([]policy.Extractor) ([]policy.Image, error) { return nil, nil })
		is := ""
		if len(list) == 1 {
			is = string(list[0].Ruling.Result)
			if list[0].Skip != "" {
				is = "skip"
			}
			is = list[0].Rule + "=" + is
		}
		equal(t, c.reason, is, c.want)
	}
}

// TestBrokenObjectRules: a rule that cannot be read is indeterminate for the objects that
// it names, and so are the document's other rules.
func TestBrokenObjectRules(t *testing.T) {
	for _, c := range []struct {
		rule, kind string
		asked      bool
		reason     string
	}{
		{"validate: {patern: {}}", "Service", true, "a misspelt field"},
		{"validat: {pattern: {}}", "Service", true, "a misspelt kind of rule"},
		{"validate: {patern: {}}", "ConfigMap", false, "another kind"},
		{"mutate: {patchesJson6902: 7}", "Service", true, "a mutation"},
		{"mutate: {targets: [{kind: Secret}], x: y}", "Service", false, "a mutation of other objects"},
		{"generate: {x: y}", "Service", false, "other objects"},
		{"mutate: {targets: [{kind: Secret}]}, validate: {deny: {}}", "Service", true, "a mutation of other objects, with something of this one's"},
		{"validate: {patern: {}}", "Namespace", false, "never Namespaces, which it does not name"},
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Service]}}]}, " + c.rule + "}]}}"
		_, why := newCompiler(t, nil).Compile([]byte(text), "test")
		if why == nil {
			t.Fatalf("%s loads", c.rule)
		}
		p := kyverno.Broken([]byte(text), "test", why)
		got := results(t, p, subjectFrom(t, "{apiVersion: v1, kind: "+c.kind+", metadata: {name: a}}")) == "r=indeterminate"
		if got != c.asked {
			t.Errorf("%s: indeterminate %t", c.reason, got)
		}
	}
}

// TestBrokenOperations: a broken rule holds at the operations of its kind of rule, or at
// those that it names.
func TestBrokenOperations(t *testing.T) {
	for _, c := range []struct{ reason, match, rule, want string }{
		{"deny", "", "validate: {deny: {}, x: y}", "CREATE UPDATE DELETE CONNECT"},
		{"foreach", "", "validate: {foreach: [{x: y}]}", "CREATE UPDATE DELETE CONNECT"},
		{"CEL", "", "validate: {cel: {x: y}}", "CREATE UPDATE DELETE CONNECT"},
		{"misspelt", "", "validate: {patern: {}}", "CREATE UPDATE DELETE CONNECT"},
		{"unreadable", "", "validate: 7", "CREATE UPDATE DELETE CONNECT"},
		{"of no kind", "", "other: {deny: {}}", "CREATE UPDATE DELETE CONNECT"},
		{"a pattern", ", x: y", "validate: {message: a, pattern: {}}", "CREATE UPDATE CONNECT"},
		{"a standard", "", "validate: {podSecurity: {x: y}}", "CREATE UPDATE CONNECT"},
		{"a mutation", "", "mutate: {x: y}", "CREATE UPDATE"},
		{"a generation", "", "generate: {x: y}", ""},
		{"deny at named operations", ", operations: [DELETE]", "validate: {deny: {x: y}}", "DELETE"},
		{"at misspelt ones", ", operations: [DELET]", "validate: {deny: {}}", "CREATE UPDATE DELETE CONNECT"},
		{"in a namespace", ", namespaces: [a]", "validate: {deny: {x: y}}", "CREATE UPDATE DELETE CONNECT"},
		{"in another one", ", namespaces: [b]", "validate: {deny: {x: y}}", ""},
		{"in one that is misspelt", ", namespaces: [A]", "validate: {deny: {}}", "CREATE UPDATE DELETE CONNECT"},
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Service/proxy, Service]" + c.match + "}}]}, " + c.rule + "}]}}"
		p := kyverno.Broken([]byte(text), "test", errors.New("broken"))
		set, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, operation := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
			s := subjectFrom(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: a}}")
			s.Operation = operation
			if operation == "CONNECT" {
				s.Subresource = "proxy"
			}
			if may := set.MayValidate(s); may && results(t, p, s) == "r=indeterminate" {
				got = append(got, operation)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.reason, got, c.want)
		}
	}
	p := kyverno.Broken([]byte("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: 7}}"), "test", errors.New("broken"))
	s := subjectFrom(t, fmt.Sprintf(podOf, "{}"))
	s.Operation = "CREATE"
	equal(t, "the creation of a pod, if no rule can be read", results(t, p, s), "unreadable=indeterminate")
	s.Operation = "DELETE"
	equal(t, "its deletion, which a kubelet needs", results(t, p, s), "")
	service := subjectFrom(t, "{apiVersion: v1, kind: Service, metadata: {name: a}}")
	service.Operation = "DELETE"
	equal(t, "the deletion of another kind", results(t, p, service), "")
}

// TestUnconverted: a rule for another version is not evaluated on an object, even if that
// would meet it. Preconditions and conditions of the webhook are not either.
func TestUnconverted(t *testing.T) {
	const of = "kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: b}, spec: {maxReplicas: 3"
	const kinds = "{name: r, match: {any: [{resources: {kinds: [autoscaling/v1/HorizontalPodAutoscaler]}}]}, "
	const not = "preconditions: {all: [{key: \"{{ request.object.spec.targetCPUUtilizationPercentage || `0` }}\", operator: GreaterThan, value: 1}]}, "
	for _, c := range []struct{ rule, version, want string }{
		{"validate: {pattern: {spec: {X(targetCPUUtilizationPercentage): null}}}}", "v1", "r=pass"},
		{"validate: {pattern: {spec: {X(targetCPUUtilizationPercentage): null}}}}", "v2", "r=indeterminate"},
		{not + "validate: {deny: {}}}", "v1", "r=skip"},
		{not + "validate: {deny: {}}}", "v2", "r=indeterminate"},
	} {
		p := about(t, nil, kinds+c.rule, "")
		equal(t, c.rule+" in "+c.version, results(t, p, subjectFrom(t, "{apiVersion: autoscaling/"+c.version+", "+of+"}}")), c.want)
	}
	mutates := kinds + "mutate: {patchStrategicMerge: {spec: {+(targetCPUUtilizationPercentage): 80}}}}"
	excluded := "{name: r, match: {any: [{resources: {kinds: [HorizontalPodAutoscaler]}}]}, exclude: {any: [{resources: {kinds: [autoscaling/v1/HorizontalPodAutoscaler]}}]}, validate: {deny: {}}}"
	for version, want := range map[string]policy.Result{"v1": policy.Pass, "v2": policy.Indeterminate} {
		s := subjectFrom(t, "{apiVersion: autoscaling/"+version+", "+of+"}}")
		if got := about(t, nil, mutates, "").Mutations[0].Mutate(t.Context(), policy.Case{Subject: s}); got.Result != want {
			t.Errorf("a mutation of %s: %+v", version, got)
		}
		equal(t, "excluded by version, of "+version, results(t, about(t, nil, excluded, ""), s), map[string]string{"v1": "", "v2": "r=fail"}[version])
	}
}

// TestConditionsOfRequests: an existing violation is no excuse where a matchCondition reads
// the requester or the change.
func TestConditionsOfRequests(t *testing.T) {
	const rules = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {deny: {}}}"
	for _, c := range []struct{ reason, expression, want string }{
		{"the object", "object.spec.priority >= 0", "r=skip"},
		{"the operation and the name", "request.operation != 'DELETE' && request.name != 'x'", "r=skip"},
		{"the user", "request.userInfo.username != 'eve'", "r=fail"},
		{"the user, in a list", "[request].all(r, r.userInfo.username != 'eve')", "r=fail"},
		{"the options", "!has(request.options) || !has(request.options.none)", "r=fail"},
		{"a dry run", "!request.dryRun", "r=fail"},
		{"the old object", "oldObject == null || oldObject.spec.priority >= 0", "r=fail"},
	} {
		p := about(t, nil, rules, "webhookConfiguration: {matchConditions: [{name: a, expression: \""+c.expression+"\"}]}, ")
		s := subjectFrom(t, fmt.Sprintf(podOf, "{priority: 2}"))
		s.Operation, s.OldObject = "UPDATE", subjectFrom(t, fmt.Sprintf(podOf, "{priority: 1}")).Object
		s.User = policy.User{Name: "ann", Groups: []string{"all"}, RolesKnown: true}
		s.Request = policy.RequestFrom([]byte(`{"operation": "UPDATE", "name": "a", "userInfo": {"username": "ann", "groups": ["all"]}}`))
		equal(t, c.reason, results(t, p, s), c.want)
	}
}

// TestBrokenValidation: a broken rule is indeterminate for the kinds that it names alone.
func TestBrokenValidation(t *testing.T) {
	for _, c := range []struct {
		kinds, kind string
		document    bool
		want        policy.Result
		reason      string
	}{
		{"Service", "Service", false, policy.Indeterminate, "a kind that it names"},
		{"Service", "ConfigMap", false, "", "another kind"},
		{"Service", "Service", true, "", "a document beside objects"},
		{"'*'", "Service", false, policy.Indeterminate, "every kind"},
		{"'*'", "Namespace", false, "", "every kind but Namespaces"},
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [" + c.kinds + "]}}]}, validate: {patern: {}}}]}}"
		p := kyverno.Broken([]byte(text), "test", errors.New("broken"))
		s := subjectFrom(t, "{apiVersion: v1, kind: "+c.kind+", metadata: {name: a}}")
		s.Document = c.document
		if got := p.Validations[0].Validate(t.Context(), policy.Case{Subject: s}); got.Result != c.want {
			t.Errorf("%s: %q", c.reason, got.Result)
		}
	}
}

// TestRulesAboutOtherObjects are handed on.
func TestRulesAboutOtherObjects(t *testing.T) {
	p := about(t, nil, "{name: g, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.object.metadata.name}}', data: {data: {a: b}}}},"+
		"{name: m, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {targets: [{apiVersion: v1, kind: Secret, name: a, namespace: b}], patchStrategicMerge: {metadata: {labels: {a: b}}}}}", "")
	equal(t, "rules", []int{len(p.Rules), len(p.Validations), len(p.Mutations), len(p.Generations), len(p.Alterations)}, []int{0, 0, 0, 1, 1})
	equal(t, "no rule evaluates requests: not audit-only", p.AuditOnly, false)
	equal(t, "no rule reads the trigger's requester", said(p.Targets), "")
}

const (
	generates = "{name: g, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {a: '%s'}}}}"
	alters    = "{name: m, match: {any: [{resources: {kinds: [ConfigMap]}}]}, mutate: {targets: [{apiVersion: v1, kind: Secret, name: a, namespace: b}], patchStrategicMerge: {metadata: {labels: {a: '%s'}}}}}"
)

// TestRequesterOfTrigger: rules that read the requester have the trigger as a target.
func TestRequesterOfTrigger(t *testing.T) {
	for _, c := range []struct{ rule, value, want, reason string }{
		{generates, "x", "", "it makes the same for everybody"},
		{generates, "{{request.userInfo.username}}", "*/*/Namespace", "it makes something with the user's name"},
		{alters, "x", "", "it writes the same for everybody"},
		{alters, "{{request.userInfo.username}}", "*/*/ConfigMap", "it writes the user's name"},
	} {
		targets := about(t, nil, fmt.Sprintf(c.rule, c.value), "").Targets
		for i := range targets {
			targets[i].Operations = nil
		}
		if got := said(targets); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestSettingsOfOtherObjects: settings of spec apply to rules without settings of their
// own.
func TestSettingsOfOtherObjects(t *testing.T) {
	for _, c := range []struct {
		spec                             string
		existing, apply, onPolicyChanges bool
	}{
		{"", false, false, false},
		{"generateExisting: true, ", true, false, false},
		{"generateExisting: false, ", false, false, false},
		{"generateExistingOnPolicyUpdate: true, ", true, false, false},
		{"useServerSideApply: true, ", false, true, false},
		{"mutateExistingOnPolicyUpdate: true, ", false, false, true},
		{"mutateExistingOnPolicyUpdate: false, ", false, false, false},
	} {
		p := about(t, nil, fmt.Sprintf(generates, "x")+","+fmt.Sprintf(alters, "x"), c.spec)
		terms := p.Generations[0].Terms()
		equal(t, c.spec, []bool{terms.Existing, terms.Apply, p.Alterations[0].OnPolicyChange()}, []bool{c.existing, c.apply, c.onPolicyChanges})
	}
}

// TestGeneratedTriggers: a trigger that a rule made counts where the rule wants it alone.
func TestGeneratedTriggers(t *testing.T) {
	for written, want := range map[string]bool{"": true, "skipBackgroundRequests: true, ": true, "skipBackgroundRequests: false, ": false} {
		with := func(rule string) string {
			return strings.Replace(fmt.Sprintf(rule, "x"), "{name: ", "{"+written+"name: ", 1)
		}
		p := about(t, nil, with(generates)+","+with(alters), "")
		equal(t, written, []bool{p.Generations[0].Terms().SkipGenerated, p.Alterations[0].SkipGenerated()}, []bool{want, want})
	}
}

// TestErrorsOfOtherObjects: rules about other objects are read as strictly as all others.
func TestErrorsOfOtherObjects(t *testing.T) {
	for _, c := range []struct{ rule, spec, want, reason string }{
		{generates, "", "", "a rule"},
		{alters, "", "", "a rule with targets"},
		{strings.Replace(generates, "{name: g,", "{name: g, colour: red,", 1), "", "colour: unknown field", "an unknown field"},
		{strings.Replace(alters, "{name: m,", "{name: m, colour: red,", 1), "", "colour: unknown field", "an unknown field beside targets"},
		{strings.Replace(generates, "kind: ConfigMap", "kind: ''", 1), "", "generate", "no object to generate"},
		{strings.Replace(alters, "kind: Secret", "kind: ''", 1), "", "targets", "no object to change"},
		{generates, "webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}, ", "not supported", "a condition on requests"},
		{alters, "webhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}, ", "not supported", "a condition on requests, beside targets"},
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {" + c.spec + "rules: [" + fmt.Sprintf(c.rule, "x") + "]}}"
		_, err := newCompiler(t, nil).Compile([]byte(text), "test")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestUpdatesMatchTheNewObject: rules apply to an update by the object that it brings, and to a
// deletion by the object that goes.
func TestUpdatesMatchTheNewObject(t *testing.T) {
	const locked, open = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {locked: 'yes'}}}", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
	const label = "{any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {locked: 'yes'}}}}]}"
	denies := "validate: {deny: {conditions: {any: [{key: '{{request.operation}}', operator: AnyIn, value: [UPDATE, DELETE]}]}}}}"
	matched := about(t, nil, "{name: r, match: "+label+", "+denies, "")
	excluded := about(t, nil, "{name: r, match: {any: [{resources: {kinds: [ConfigMap]}}]}, exclude: "+label+", "+denies, "")
	mutates := about(t, nil, "{name: r, match: "+label+", mutate: {patchStrategicMerge: {data: {a: b}}}}", "")
	for _, c := range []struct {
		reason                              string
		before, after, byMatch, byExclusion string
		patched                             bool
	}{
		{"the label is removed", locked, open, "", "r=fail", false},
		{"the label is added", open, locked, "r=fail", "", true},
		{"the label was there", locked, locked, "r=fail", "", true},
		{"no label", open, open, "", "r=fail", false},
		{"the labelled object is deleted", locked, "", "r=fail", "", false},
		{"another is deleted", open, "", "", "r=fail", false},
	} {
		old := subjectFrom(t, c.before)
		s := *old
		s.Operation, s.Object, s.OldObject = "DELETE", policy.Content{}, old.Object
		if c.after != "" {
			s = *subjectFrom(t, c.after)
			s.Operation, s.OldObject = "UPDATE", old.Object
		}
		if got := results(t, matched, &s); got != c.byMatch {
			t.Errorf("%s, matched: %q, want %q", c.reason, got, c.byMatch)
		}
		if got := results(t, excluded, &s); got != c.byExclusion {
			t.Errorf("%s, excluded: %q, want %q", c.reason, got, c.byExclusion)
		}
		if got := mutates.Mutations[0].Mutate(t.Context(), policy.Case{Subject: &s}); (got.Result == policy.Pass) != c.patched {
			t.Errorf("%s: %+v, want a patch %t", c.reason, got, c.patched)
		}
	}
}

func TestIgnoredFieldsAreFew(t *testing.T) {
	for _, f := range kyverno.Ignored() {
		if slices.Contains([]string{"spec.applyRules", "spec.admission", "spec.emitWarning"}, f.Path) {
			t.Errorf("%s is honoured", f.Path)
		}
	}
}

// TestSubresources: a rule names the object, and the body of its subresource has another
// kind.
func TestSubresources(t *testing.T) {
	for _, c := range []struct {
		kinds, group, version, kind, subresource string
		want                                     string // of the rule, which denies everything
	}{
		{"Pod/exec", "", "v1", "PodExecOptions", "exec", "r=fail"},
		{"Pod/exec", "", "v1", "Pod", "exec", "r=fail"},
		{"v1/Pod/*", "", "v1", "PodAttachOptions", "attach", "r=fail"},
		{"Pod/exec", "", "v1", "PodAttachOptions", "attach", ""},
		{"Service/proxy", "", "v1", "PodProxyOptions", "proxy", ""},
		{"Pod/eviction", "policy", "v1", "Eviction", "eviction", "r=fail"},
		{"Deployment/scale", "apps", "v1", "Deployment", "scale", "r=fail"},
		{"Deployment/scale", "apps", "v1", "StatefulSet", "scale", ""},
		{"Deployment/scale", "autoscaling", "v1", "Scale", "scale", "r=indeterminate"}, // of which kind is not known
		{"scale", "autoscaling", "v1", "Scale", "scale", "r=fail"},
		{"*", "", "v1", "Pod", "exec", ""},
		{"Pod", "", "v1", "PodExecOptions", "exec", ""},
		{"Pod/exec", "example.com", "v1", "PodExecOptions", "exec", ""},
	} {
		p := about(t, nil, "{name: r, match: {any: [{resources: {kinds: ['"+c.kinds+"'], operations: [CONNECT, CREATE, UPDATE]}}]}, validate: {deny: {}}}", "")
		s := &policy.Subject{
			Group: c.group, Version: c.version, Kind: c.kind, Subresource: c.subresource, Namespace: "prod", Name: "a", Operation: "CONNECT",
			Object: policy.ContentOf(map[string]any{"kind": c.kind}),
		}
		if got := results(t, p, s); got != c.want {
			t.Errorf("%s: %s/%s: %q, want %q", c.kinds, c.kind, c.subresource, got, c.want)
		}
		for _, target := range p.Targets {
			if target.Kind == "PodExecOptions" || target.Kind == "Scale" {
				t.Errorf("%s: the API server is to be asked about %+v", c.kinds, target)
			}
		}
	}
}
