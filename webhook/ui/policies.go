package ui

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// The states of a PolicyDocument.
const (
	PolicyActive    = "active"
	PolicyBroken    = "broken"     // it cannot be evaluated
	PolicyLeftAlone = "left-alone" // nothing of it is evaluated here
	PolicyDerived   = "derived"    // active, and made by a setting of the gateway
)

// The modes of a PolicyDocument.
const (
	ModeEnforce = "enforce" // a failure denies
	ModeWarn    = "warn"    // a failure is shown to the requesting user
	ModeAudit   = "audit"   // a failure is reported
	ModeScan    = "scan"    // only scans evaluate it
	ModeChange  = "change"  // it changes or creates objects, and has no verdict
	ModeJSON    = "json"    // it is about documents that are no objects, on the command line alone
)

// PolicyDocument is the document of a policy with its state.
type PolicyDocument struct {
	// ID is kind/name or kind/namespace/name; that of a document that is left alone is its source.
	ID        string `json:"id"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Title     string `json:"title,omitempty"`
	// Source is where the document was read.
	Source string `json:"source,omitempty"`
	State  string `json:"state"`
	// Mode is empty for a document that is left alone. AuditedBy is the setting that has the policy
	// audited instead of enforced. FailOpen: an image that could not be verified is admitted.
	Mode      string `json:"mode,omitempty"`
	AuditedBy string `json:"auditedBy,omitempty"`
	FailOpen  bool   `json:"failOpen,omitempty"`
	// Ready is True, False or Unknown, with the reason and message of the policy's condition.
	Ready   string `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Policies has the documents of the gateway's policies.
type Policies interface {
	// Documents returns all documents, in any order.
	Documents() []PolicyDocument
	// Definition returns the text of a policy's document by its ID, and false for an unknown one.
	Definition(id string) (string, bool)
}

// WithPolicies adds the documents of policies to their results.
func WithPolicies(p Policies) Option {
	return func(o *options) error {
		if p == nil {
			return errors.New("policies must not be nil")
		}
		o.policies = p
		return nil
	}
}

// Policy is an element of /api/v1/policies: the document, and its results.
type Policy struct {
	inventory.Policy
	// Document is nil for a policy that is no longer loaded, and without a source of documents.
	Document *PolicyDocument `json:"document,omitempty"`
}

// PolicyList is the response of /api/v1/policies.
type PolicyList struct {
	typed
	About inventory.About `json:"about"`
	// Documents: the list has every loaded policy. Otherwise it has only policies with results.
	Documents bool     `json:"documents"`
	Items     []Policy `json:"items"`
}

// PolicyDetails is the response of /api/v1/policy.
type PolicyDetails struct {
	typed
	About     inventory.About `json:"about"`
	Documents bool            `json:"documents"`
	Policy    Policy          `json:"policy"`
	// Definition is the text of the document, up to 64 KiB of it; empty for a policy without one.
	Definition string `json:"definition,omitempty"`
}

// policyList returns the documents and the policies with results, by ID.
func (h *Handler) policyList() []Policy {
	all := []Policy{}
	at := map[string]int{}
	for _, p := range h.config.Inventory.Policies() {
		at[p.ID] = len(all)
		all = append(all, Policy{Policy: p})
	}
	if h.policies != nil {
		for _, d := range h.policies.Documents() {
			if n, ok := at[d.ID]; ok {
				all[n].Document = &d
				continue
			}
			at[d.ID] = len(all)
			all = append(all, Policy{
				Policy: inventory.Policy{ID: d.ID, Kind: d.Kind, Namespace: d.Namespace, Name: cmp.Or(d.Name, d.ID)}, Document: &d,
			})
		}
	}
	for n := range all {
		if all[n].Rules == nil {
			all[n].Rules = []inventory.PolicyRule{}
		}
	}
	slices.SortFunc(all, func(a, b Policy) int { return strings.Compare(a.ID, b.ID) })
	return all
}

func (h *Handler) listPolicies(p parameters) PolicyList {
	list := PolicyList{of(PolicyListKind), h.about(p), h.policies != nil, h.policyList()}
	if len(list.Items) > maxOverTime {
		for n := range list.Items {
			list.Items[n].Moments = nil
		}
	}
	return list
}

func (h *Handler) policyDetails(id string, p parameters) (any, error) {
	all := h.policyList()
	n := slices.IndexFunc(all, func(p Policy) bool { return p.ID == id })
	if n < 0 {
		return nil, page.Problem{Status: http.StatusNotFound, Reason: "not-found", Message: "policy not found: it is not loaded, and was not evaluated for a week"}
	}
	made := PolicyDetails{typed: of(PolicyKind), About: h.about(p), Documents: h.policies != nil, Policy: all[n]}
	if h.policies != nil {
		if text, ok := h.policies.Definition(id); ok {
			made.Definition = bounded(text)
		}
	}
	return made, nil
}

// bounded cuts a text at the end of a line.
func bounded(text string) string {
	if len(text) <= maxDefinition {
		return text
	}
	text = text[:maxDefinition]
	return text[:strings.LastIndexByte(text, '\n')+1] + "# ...\n"
}
