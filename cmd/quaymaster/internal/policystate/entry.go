package policystate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// Entry is one policy, exception, override or trust root, as JSON output has it.
type Entry struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	// State is that of package catalog: ours, not-ours or broken.
	State string `json:"state"`
	// Mode is enforce, audit, background, or json for a policy of --payload alone, which no endpoint evaluates; empty for
	// documents that are no policies.
	Mode string `json:"mode,omitempty"`
	// Ready is True, False or Unknown, as the gateway wrote it, or as it compiles; Reason is that of
	// the condition.
	Ready   string `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// EnforcedBy is where the policy is evaluated at admission, with policies.nativePolicies in a cluster; Stays is why that
	// is the webhook.
	EnforcedBy record.Place `json:"enforcedBy,omitempty"`
	Stays      string       `json:"stays,omitempty"`
	Rules      []string     `json:"rules,omitempty"`
	Kinds      []string     `json:"kinds,omitempty"`
}

// The modes.
const (
	enforce    = "enforce"
	audit      = "audit"
	background = "background"
	documents  = "json"
)

// Describe returns the entries of a catalog, of files or of a cluster. Effective are the policies that are
// in force in place of those of the entries; nil for the same.
func Describe(entries []catalog.Entry, effective []*policy.Policy) []Entry {
	all := []Entry{}
	for _, from := range entries {
		e := Entry{ID: identity(from), Source: from.Source, State: string(from.State), Ready: "True", Message: from.Why}
		switch {
		case from.State == catalog.Broken:
			e.Ready = "False"
		case from.State == catalog.NotOurs:
			e.Ready = "-"
		case from.Override != nil && !from.Override.Expires.IsZero() && from.Override.Expires.Before(time.Now()):
			e.Ready, e.Message = "False", "it ended at "+from.Override.Expires.UTC().Format(time.RFC3339)
		}
		if p := from.Policy; p != nil {
			e.Rules, e.Kinds = rules(p), matched(p)
			if i := slices.IndexFunc(effective, func(other *policy.Policy) bool { return other.ID() == p.ID() }); i >= 0 {
				p = effective[i]
			}
			e.Mode = mode(p)
			if p.AuditedBy != "" {
				e.Message = strings.TrimPrefix(e.Message+"; it audits because of "+p.AuditedBy, "; ")
			}
		}
		all = append(all, e)
	}
	return all
}

// readStatus reads the condition Ready of a document of the cluster.
func (e *Entry) readStatus(ctx context.Context, client *cluster.Client, key string, document []byte) error {
	var head struct {
		APIVersion string
		Metadata   struct{ Namespace, Name string }
	}
	_, resource, found := strings.Cut(key, "/")
	resource, _, _ = strings.Cut(resource, ".")
	if !found || len(document) == 0 {
		return nil // a document of a file, which has no condition
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return fmt.Errorf("read the status of %s: %w", e.ID, err)
	}
	version, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return fmt.Errorf("read the status of %s: %w", e.ID, err)
	}
	text, err := client.Object(ctx, version.WithResource(resource), head.Metadata.Namespace, head.Metadata.Name)
	if err != nil {
		return fmt.Errorf("read the status of %s: %w", e.ID, err)
	}
	e.readCondition(text)
	return nil
}

func identity(from catalog.Entry) string {
	switch {
	case from.Policy != nil:
		return from.Policy.ID()
	case from.Override != nil:
		return "ImageOverride/" + from.Override.Name
	case from.Root != nil:
		return "TrustRoot/" + from.Root.Name
	case from.Exception != nil:
		return "PolicyException/" + strings.Trim(from.Exception.Namespace+"/"+from.Exception.Name, "/")
	case from.Unknown != "":
		return from.Unknown
	}
	return from.Source
}

// readCondition reads the condition Ready of a document, in one of the two places that kinds have for it.
// One about an earlier generation says nothing about this one.
func (e *Entry) readCondition(document []byte) {
	type condition struct {
		Type, Status, Reason, Message string
		ObservedGeneration            int64
	}
	var read struct {
		Metadata struct{ Generation int64 }
		Status   struct {
			Conditions      []condition
			ConditionStatus struct{ Conditions []condition }
		}
	}
	e.Ready = "Unknown"
	if json.Unmarshal(document, &read) != nil {
		return
	}
	for _, c := range slices.Concat(read.Status.Conditions, read.Status.ConditionStatus.Conditions) {
		if c.Type == "Ready" && c.ObservedGeneration == read.Metadata.Generation && slices.Contains([]string{"True", "False", "Unknown"}, c.Status) {
			e.Ready, e.Reason = c.Status, c.Reason
			e.EnforcedBy, e.Stays = record.PlaceIn(c.Message)
			if c.Status != "True" || e.Message == "" {
				e.Message = c.Message
			}
			return
		}
	}
}

func mode(p *policy.Policy) string {
	switch {
	case p.OnlyScanned, len(p.Rules)+len(p.Validations)+len(p.Mutations) == 0 && p.Broken == nil:
		return background
	case catalog.OnlyDocuments(p):
		return documents
	case p.AuditOnly:
		return audit
	}
	return enforce
}

// rules are the names of a policy's rules, in their order by type.
func rules(p *policy.Policy) []string {
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, r := range p.Rules {
		add(r.Name())
	}
	for _, r := range p.Mutations {
		add(r.Name())
	}
	for _, r := range p.Validations {
		add(r.Name())
	}
	for _, r := range p.Generations {
		add(r.Name())
	}
	for _, r := range p.Alterations {
		add(r.Name())
	}
	for _, r := range p.Deletions {
		add(r.Name())
	}
	return names
}

// matched are the kinds that a policy matches, as policies write them. Pods include their ephemeral
// containers.
func matched(p *policy.Policy) []string {
	targets := slices.Clone(p.Targets)
	for _, m := range p.Mutations {
		targets = append(targets, m.Targets()...)
	}
	for _, v := range p.Validations {
		targets = append(targets, v.Targets()...)
	}
	for _, g := range p.Generations {
		targets = append(targets, g.Targets()...)
	}
	for _, a := range p.Alterations {
		targets = append(targets, a.Targets()...)
	}
	for _, d := range p.Deletions {
		targets = append(targets, d.Targets()...)
	}
	var kinds []string
	for _, t := range targets {
		kind := t.Kind
		if t.Subresource != "" {
			kind += "/" + t.Subresource
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	if slices.Contains(kinds, "Pod") {
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "Pod/ephemeralcontainers" })
	}
	return kinds
}
