package report_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// rule asks the same of every image below a path.
type rule struct {
	name, below string
	check       policy.Check
	plan        func(*policy.Subject) (policy.RulePlan, error) // before all else, if set
}

func (r rule) Name() string                                { return r.name }
func (rule) Extractors(*policy.Subject) []policy.Extractor { return nil }

func (r rule) Plan(_ context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if r.plan != nil {
		return r.plan(s)
	}
	var plan policy.RulePlan
	for _, found := range images {
		path := found.Ref.Repository().Path()
		if !strings.HasPrefix(path, r.below+"/") {
			continue
		}
		check := r.check
		check.Image, check.Entry = found, "verifyImages[0]"
		if strings.HasSuffix(path, "/exempt") {
			check.Skip = "skipImageReferences[0] names it: registry.example/" + r.below + "/exempt*"
		}
		plan.Checks = append(plan.Checks, check)
	}
	return plan, nil
}

// condition holds for predicates of the one builder.
type condition struct{}

func (condition) Holds(data any) (bool, string, error) {
	predicate, _ := data.(map[string]any)
	want := "https://github.com/actions/runner"
	if got := predicate["builder"]; got != want {
		return false, fmt.Sprintf("all[0]: {{ builder }} Equals %q, found %q", want, got), nil
	}
	return true, "", nil
}

func newPolicy(name string, r rule) *policy.Policy {
	sum := sha256.Sum256([]byte(name))
	return &policy.Policy{
		Kind: "ClusterPolicy", Name: name, Source: "policies/" + name + ".yaml", Hash: hex.EncodeToString(sum[:]),
		Rules: []policy.Rule{r}, Settings: policy.Settings{AuditOnly: r.check.Action == policy.Audit},
	}
}

// labelled wants a label of objects.
type labelled struct{}

func (labelled) Name() string             { return "team-label" }
func (labelled) Targets() []policy.Target { return nil }

func (labelled) Validate(_ context.Context, about policy.Case) policy.Validated {
	metadata, _ := about.Subject.Object.Map()["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if labels["team"] != nil {
		return policy.Validated{Result: policy.Pass, Action: policy.Enforce}
	}
	return policy.Validated{Result: policy.Fail, Action: policy.Enforce, Reasons: []policy.Reason{{
		Code: policy.Violated, Path: "spec.rules[0].validate", Message: "the label team is missing: say who answers for it",
	}}}
}

// aboutObjects is a policy about the object itself.
func aboutObjects() *policy.Policy {
	return &policy.Policy{
		Kind: "ClusterPolicy", Name: "require-labels", Source: "policies/require-labels.yaml", Hash: "0f",
		ObjectRules: policy.ObjectRules{Validations: []policy.Validation{labelled{}}},
	}
}

// exception leaves the vault alone for a while.
func exception() *policy.Exception {
	return &policy.Exception{
		Namespace: "ops", Name: "old-vault", Source: "exceptions.yaml", Hash: "0e",
		Rules:   []policy.ExceptedRule{{Policy: "require-two", Rules: []string{"two-people"}}},
		Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), Reason: "INC-7: the second signer is on leave",
	}
}

func keyed(name, ref string) policy.Member {
	return policy.Member{Authority: &verify.Authority{Name: name, Key: &verify.Key{Ref: ref}, Log: verify.Log{Ignore: true}}}
}

func builder(name string) policy.Member {
	return policy.Member{Authority: &verify.Authority{Name: name, Keyless: &verify.Keyless{
		Identities: []verify.Identity{{Issuer: verify.Exactly(issuer), Subject: verify.Exactly(workflow)}},
		Extensions: []verify.Extension{{OID: "1.3.6.1.4.1.57264.1.12", Name: "sourceRepositoryURI", Value: verify.Wildcard("https://github.com/acme/*")}},
	}}}
}

func requirement(threshold int, members ...policy.Member) []policy.Requirement {
	return []policy.Requirement{{Name: "attestors[0]", Threshold: threshold, Members: members}}
}

func policies() []*policy.Policy {
	built := builder("attestors[0].entries[0].keyless")
	attested := policy.Attestation{
		Name: "provenance", Path: "attestations[0]", PredicateType: provenance, Condition: condition{},
		Signers: []policy.Requirement{{Name: "attestations[0].attestors[0]", Threshold: 1, Members: []policy.Member{builder("attestations[0].attestors[0].entries[0].keyless")}}},
	}
	const ours, theirs = "attestors[0].entries[0].keys", "attestors[0].entries[1].keys"
	lenient := newPolicy("admit-when-down", rule{name: "signed", below: "lenient", check: policy.Check{Action: policy.Enforce, Claims: policy.Claims{Requirements: requirement(1, keyed(ours, publicKey))}}})
	lenient.FailOpen = true
	return []*policy.Policy{
		newPolicy("require-key", rule{name: "signed-by-release-key", below: "shop", check: policy.Check{
			Action: policy.Enforce, Pinning: policy.Pinning{MutateDigest: true}, Claims: policy.Claims{Requirements: requirement(1, keyed(ours, publicKey))},
		}}),
		newPolicy("require-two", rule{name: "two-people", below: "vault", check: policy.Check{
			Action: policy.Enforce, Claims: policy.Claims{Requirements: requirement(2, keyed(ours, publicKey), keyed(theirs, "awskms:///alias/second"))},
		}}),
		newPolicy("require-build", rule{name: "built-by-ci", below: "acme", check: policy.Check{
			Action: policy.Enforce, Claims: policy.Claims{Requirements: requirement(1, built), Attestations: []policy.Attestation{attested}},
		}}),
		newPolicy("watch-lab", rule{name: "signed", below: "lab", check: policy.Check{
			Action: policy.Audit, Claims: policy.Claims{Requirements: requirement(1, keyed(ours, publicKey))},
		}}),
		lenient,
		newPolicy("teams", rule{name: "only-team-blue", plan: func(s *policy.Subject) (policy.RulePlan, error) {
			if s.Namespace == "red" {
				return policy.RulePlan{}, errors.New("the labels of the namespace red are not known: namespaces \"red\" is forbidden")
			}
			return policy.RulePlan{Skip: "the object's namespace is not selected: want team=blue"}, nil
		}}),
	}
}
