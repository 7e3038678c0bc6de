package background_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/generating"
)

// generating compiles a GeneratingPolicy called pull, for Namespaces.
func (b *bench) generating(evaluation, expression string) *policy.Policy {
	b.t.Helper()
	p, err := generating.New(kyvernocel.Options{Now: time.Now}).Compile([]byte(`apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: pull}
spec:
  evaluation: `+evaluation+`
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [namespaces], resourceNames: [team]}]
  generate:
  - expression: >-
      `+expression+`
`), "test")
	if err != nil {
		b.t.Fatal(err)
	}
	p.Created = time.Now()
	return p
}

const (
	inStep  = "{synchronize: {enabled: true}}"
	copyAll = `generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "platform", "regcred"), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"a": "b"}}])`
	made    = "configmaps/team/made"
)

// TestGeneratingPolicy: copies follow their source, and other objects the policy.
func TestGeneratingPolicy(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("regcred", "one")
		b.policies(b.generating(inStep, copyAll))
		b.lead()
		b.namespace("team", "")
		b.after(time.Second)
		b.wantThere(made)
		origin, err := b.keeper.ReadOrigin(b.wantData(into, "one"))
		if err != nil || origin.Source != "secrets platform/regcred" || !origin.Orphan {
			t.Errorf("%+v, %v", origin, err)
		}
		b.secret("regcred", "two")
		b.server.userDeletes(made)
		b.after(3 * time.Second)
		b.wantData(into, "two")
		b.wantThere(made) // its kind is watched, which was not known before
		b.server.userDeletes(from)
		b.after(3 * time.Second)
		b.wantGone(into)
		b.wantThere(made) // of the same expression, which has no result now
		b.secret("regcred", "three")
		b.after(3 * time.Second)
		b.wantData(into, "three")
		b.server.forbidSources("secrets", true)
		b.after(5 * time.Minute)
		b.server.userEdits("namespaces//team", func(object map[string]any) { metadata(object)["labels"] = map[string]any{"a": "b"} })
		b.after(time.Minute)
		b.wantData(into, "three")
		b.wantThere(made)
	})
}

// TestGeneratingPolicyGoes: copies stay when their policy is deleted, as in Kyverno, and nothing does with the
// trigger.
func TestGeneratingPolicyGoes(t *testing.T) {
	for name, test := range map[string]struct {
		evaluation string
		does       func(*bench)
		clone      bool
		made       bool
	}{
		"the policy":              {inStep, func(b *bench) { b.gone["GeneratingPolicy/pull"] = true; b.policies() }, true, false},
		"the policy may be there": {inStep, func(b *bench) { b.policies() }, true, true},
		"the policy leaves all":   {"{synchronize: {enabled: true}, orphanDownstreamOnPolicyDelete: {enabled: true}}", func(b *bench) { b.gone["GeneratingPolicy/pull"] = true; b.policies() }, true, true},
		"the trigger":             {inStep, func(b *bench) { b.server.userDeletes("namespaces//team") }, false, false},
		"the trigger, made once":  {"{}", func(b *bench) { b.server.userDeletes("namespaces//team") }, true, true},
		"the policy makes less":   {inStep, func(b *bench) { b.policies(b.generating(inStep, `generator.Apply("x", [])`)) }, false, false},
		"the policy, after a restart": {inStep, func(b *bench) {
			b.resign()
			b.gone["GeneratingPolicy/pull"] = true
			b.policies()
			b.lead()
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.secret("regcred", "one")
				b.policies(b.generating(test.evaluation, copyAll))
				b.lead()
				b.namespace("team", "")
				b.after(2 * time.Minute)
				b.wantThere(into)
				b.wantThere(made)
				test.does(b)
				b.after(2 * time.Minute)
				for key, want := range map[string]bool{into: test.clone, made: test.made} {
					if got := b.server.object(key) != nil; got != want {
						t.Errorf("%s is there: %t", key, got)
					}
				}
			})
		})
	}
}

// TestGeneratingPolicyForExisting: existing triggers count where the policy says so.
func TestGeneratingPolicyForExisting(t *testing.T) {
	for evaluation, want := range map[string]bool{inStep: false, "{synchronize: {enabled: true}, generateExisting: {enabled: true}}": true, "{generateExisting: {enabled: true}}": true} {
		in(t, func(b *bench) {
			b.secret("regcred", "one")
			b.namespace("team", "")
			b.after(time.Hour)
			b.policies(b.generating(evaluation, copyAll))
			b.lead()
			b.after(time.Minute)
			b.secret("regcred", "two")
			b.after(time.Minute)
			if got := b.server.object(into) != nil; got != want {
				t.Errorf("%s: %t", evaluation, got)
			}
		})
	}
}

// TestConditionOnASource: a condition that a source does not meet yet.
func TestConditionOnASource(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("switch", "shut")
		b.secret("regcred", "one")
		b.policies(b.generating(inStep, copyAll+"\n  matchConditions: [{name: is-on, expression: 'resource.Get(\"v1\", \"secrets\", \"platform\", \"switch\").data.a == \"open\"'}]"))
		b.lead()
		b.namespace("team", "")
		b.after(time.Second)
		b.wantGone(into)
		b.secret("switch", "open")
		b.after(3 * time.Second)
		b.wantData(into, "one")
		b.secret("switch", "shut")
		b.after(3 * time.Second)
		b.wantGone(into)
	})
}
