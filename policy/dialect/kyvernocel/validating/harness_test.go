package validating_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/policy/set"
)

const head = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: test}\n"

// about writes a spec about a resource with more fields.
func about(resource, more string) string {
	group, name, found := strings.Cut(resource, "/")
	if !found {
		group, name = "", resource
	}
	return fmt.Sprintf(`spec:
  matchConstraints:
    resourceRules: [{apiGroups: [%q], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [%s]}]
%s`, group, name, more)
}

// asks writes a spec about pods with one validation.
func asks(expression string) string {
	return about("pods", "  validations:\n  - message: no good\n    expression: >-\n      "+strings.ReplaceAll(expression, "\n", "\n      ")+"\n")
}

func compile(t testing.TB, text string, change ...func(*kyvernocel.Options)) *policy.Policy {
	t.Helper()
	options := kyvernocel.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	for _, c := range change {
		c(&options)
	}
	p, err := validating.New(options).Compile([]byte(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// subject is the creation of an object without a requester.
func subject(t testing.TB, text string, change ...func(*policy.Subject)) *policy.Subject {
	t.Helper()
	s := policytest.Subject(policytest.Object(t, text))
	s.Namespace, s.Operation, s.Time = "shop", "CREATE", time.Unix(1_800_000_000, 0)
	s.NamespaceKnown, s.NamespaceLabels = true, map[string]string{"team": "a"}
	for _, c := range change {
		c(s)
	}
	return s
}

func pod(spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec: " + spec + "\n"
}

func deployment(spec string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {own: yes}}\nspec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: " + spec + "}}\n"
}

func cronJob(spec string) string {
	return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web}\nspec: {jobTemplate: {spec: {template: {metadata: {labels: {app: web}}, spec: " + spec + "}}}}\n"
}

// validate asks a set of policies with exceptions.
func validate(t testing.TB, s *policy.Subject, policies []*policy.Policy, exceptions ...string) []policy.RuleResult {
	t.Helper()
	set, err := set.New(policies...)
	if err != nil {
		t.Fatal(err)
	}
	var compiled []*policy.Exception
	for _, text := range exceptions {
		e, err := imagevalidating.New(imagevalidating.Options{}).CompileException([]byte(text), "exception.yaml")
		if err != nil {
			t.Fatal(err)
		}
		compiled = append(compiled, e)
	}
	set, err = set.With(compiled...)
	if err != nil {
		t.Fatal(err)
	}
	return set.Validate(t.Context(), s, nil)
}

// verdict is the result of one policy: nothing, pass, fail, undecided or skip, with the
// message.
func verdict(results []policy.RuleResult) (what, why string) {
	if len(results) == 0 {
		return "nothing", ""
	}
	r := &results[0]
	if r.Skip != "" {
		return "skip", r.Skip
	}
	for _, reason := range r.Ruling.Reasons {
		why += reason.Path + ": " + reason.Message + "\n"
	}
	return string(r.Ruling.Result), why
}

func policyCase(t testing.TB) policy.Case { return policy.Case{Subject: subject(t, pod(onePod))} }
