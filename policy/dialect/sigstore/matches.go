package sigstore

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/decide"
	scripts "github.com/quaymaster/quaymaster/policy/dialect/sigstore/internal/script"
	"github.com/quaymaster/quaymaster/policy/lang/rego"
	"github.com/quaymaster/quaymaster/verify"
)

// match holds the verified claims of a passing authority, with policy-controller's names.
type match struct {
	Signatures   []signature            `json:"signatures,omitempty"`
	Attestations map[string][]signature `json:"attestations,omitempty"`
	Static       bool                   `json:"static,omitempty"`
}

// signature is one of an image, or of a statement about it.
type signature struct {
	ID              string `json:"id,omitempty"`
	Subject         string `json:"subject,omitempty"`
	Issuer          string `json:"issuer,omitempty"`
	WorkflowTrigger string `json:"githubWorkflowTrigger,omitempty"`
	WorkflowSHA     string `json:"githubWorkflowSha,omitempty"`
	WorkflowName    string `json:"githubWorkflowName,omitempty"`
	WorkflowRepo    string `json:"githubWorkflowRepo,omitempty"`
	WorkflowRef     string `json:"githubWorkflowRef,omitempty"`
	PredicateType   string `json:"predicateType,omitempty"`
}

// signatureOf returns the policy's view of a verified claim. Its id is derived from
// content and signer, so that repeated signatures of one signer have one.
func signatureOf(f verify.Fact, predicateType string) signature {
	out := signature{PredicateType: predicateType}
	by := f.Signer.KeyFingerprint
	if by == "" {
		workflow := f.Signer.Extensions
		out.Subject, out.Issuer = f.Signer.Subject, f.Signer.Issuer
		out.WorkflowTrigger, out.WorkflowSHA, out.WorkflowName = workflow["githubWorkflowTrigger"], workflow["githubWorkflowSHA"], workflow["githubWorkflowName"]
		out.WorkflowRepo, out.WorkflowRef = workflow["githubWorkflowRepository"], workflow["githubWorkflowRef"]
		by = cmp.Or(f.Signer.ID, f.Signer.Issuer+"\x00"+f.Signer.Subject)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", f.Subject, f.Role, by)
	if f.Statement != nil {
		fmt.Fprintf(h, "%s\x00%s", f.Statement.PredicateType, f.Statement.Predicate)
	}
	out.ID = hex.EncodeToString(h.Sum(nil))
	return out
}

// signatures returns the policy's view of verified claims, each once and in a canonical
// order: repeated signatures and the location of the evidence make no difference.
func signatures(facts []verify.Fact, predicateType string) []signature {
	list := make([]signature, len(facts))
	for i, f := range facts {
		list[i] = signatureOf(f, predicateType)
	}
	slices.SortFunc(list, func(a, b signature) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.WorkflowSHA, b.WorkflowSHA),
			cmp.Compare(a.WorkflowName, b.WorkflowName), cmp.Compare(a.WorkflowRef, b.WorkflowRef), cmp.Compare(a.WorkflowTrigger, b.WorkflowTrigger))
	})
	return slices.Compact(list)
}

// errGaps means that an authority's claims are not known in full.
var errGaps = errors.New("not everything could be looked at")

// matched returns the policy's view of a passing authority's claims, their times if the policy by reads
// them, and the facts. A gap is an error: the policy may depend on the missing claims.
func (m *member) matched(answers policy.Answers, by *scripts.Condition) (out match, at times, all []verify.Fact, err error) {
	for _, r := range m.check.Requirements {
		facts, err := proved(r, nil, policy.Question{Role: attest.Signature}, answers)
		if err != nil {
			return out, at, nil, err
		}
		all = append(all, facts...)
	}
	if by != nil && by.IsDated() && len(all) > 0 {
		at.Signatures, err = spanOf(by, all)
		if err != nil {
			return out, at, nil, err
		}
	}
	out.Signatures = signatures(all, "")
	for i, a := range m.check.Attestations {
		facts, err := proved(a.Signers[0], a.Condition, policy.Question{Role: attest.Attestation, Predicate: a.PredicateType}, answers)
		if err != nil {
			return out, at, nil, err
		}
		if out.Attestations == nil {
			out.Attestations, at.Attestations = map[string][]signature{}, map[string]*span{}
		}
		if by != nil && by.IsDated() && len(facts) > 0 {
			at.Attestations[a.Name], err = spanOf(by, facts)
			if err != nil {
				return out, at, nil, err
			}
		}
		out.Attestations[a.Name] = signatures(facts, m.signer.attestations[i].written)
		all = append(all, facts...)
	}
	return out, at, all, nil
}

// proved returns all claims of any member that a condition agrees with.
func proved(by policy.Requirement, condition policy.Condition, about policy.Question, answers policy.Answers) ([]verify.Fact, error) {
	var out []verify.Fact
	for _, one := range by.Members {
		about.Authority, about.Sources = one.Authority, one.Sources
		answer := answers(about)
		if len(answer.Gaps) > 0 {
			return nil, fmt.Errorf("%w: %w", errGaps, answer.Gaps[0])
		}
		signings := age.Signings(answer.Facts)
		for i, f := range answer.Facts {
			if condition == nil {
				out = append(out, f)
				continue
			}
			predicate, err := rego.Decode(f.Statement.Predicate)
			if err != nil {
				return nil, fmt.Errorf("the statement %s: %w", f.Origin, err)
			}
			holds, _, err := decide.Signed(condition, signings[i]).Holds(predicate)
			if errors.Is(err, age.ErrUnknown) {
				continue // it does not count for the authority either
			}
			if err != nil {
				return nil, fmt.Errorf("the statement %s: %w", f.Origin, err)
			}
			if holds {
				out = append(out, f)
			}
		}
	}
	return out, nil
}
