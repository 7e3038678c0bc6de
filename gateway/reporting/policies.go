package reporting

import (
	"cmp"
	"encoding/json"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gateway/policies"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// LoadedPolicies implements ui.Policies.
type LoadedPolicies struct {
	Policies *policies.Policies
}

var _ ui.Policies = LoadedPolicies{}

// Documents implements ui.Policies.
func (l LoadedPolicies) Documents() []ui.PolicyDocument {
	loaded := l.Policies.Loaded()
	list := make([]ui.PolicyDocument, 0, len(loaded))
	for _, each := range loaded {
		list = append(list, documentOf(each))
	}
	return list
}

func documentOf(l policies.Loaded) ui.PolicyDocument {
	entry := l.Entry
	d := ui.PolicyDocument{
		ID: entry.Source, Kind: entry.Unknown, Source: entry.Source,
		Ready: string(l.Condition.Status), Reason: l.Condition.Reason, Message: l.Condition.Message,
	}
	switch {
	case entry.Key == "":
		d.State = ui.PolicyDerived
	case entry.State == catalog.Ours:
		d.State = ui.PolicyActive
	case entry.State == catalog.Broken:
		d.State = ui.PolicyBroken
	default:
		d.State, d.Ready, d.Reason, d.Message = ui.PolicyLeftAlone, "False", "LeftAlone", entry.Why
	}
	p := l.Policy
	if p == nil {
		return d
	}
	d.ID, d.Kind, d.Namespace, d.Name, d.Title = p.ID(), p.Kind, p.Namespace, p.Name, p.Title
	d.Source = cmp.Or(entry.Source, p.Source)
	d.Mode, d.AuditedBy, d.FailOpen = modeOf(l), p.AuditedBy, p.FailOpen
	return d
}

// modeOf returns the effect of a failure of a policy.
func modeOf(l policies.Loaded) string {
	p := l.Policy
	switch {
	case p.OnlyScanned:
		return ui.ModeScan
	case p.Broken == nil && len(p.Rules)+len(p.Validations) == 0:
		return ui.ModeChange
	case catalog.OnlyDocuments(p):
		return ui.ModeJSON
	case !p.AuditOnly:
		return ui.ModeEnforce
	case p.AuditedBy == "" && warns(l):
		return ui.ModeWarn
	default:
		return ui.ModeAudit
	}
}

// warns reports whether an audited policy shows its failures to the user: a ClusterImagePolicy does, other kinds list their actions.
func warns(l policies.Loaded) bool {
	if l.Policy.Kind == "ClusterImagePolicy" {
		return true
	}
	var document struct {
		Spec struct {
			ValidationActions []policy.Action `json:"validationActions"`
		} `json:"spec"`
	}
	err := yaml.Unmarshal(l.Text, &document)
	return err == nil && slices.Contains(document.Spec.ValidationActions, policy.Warn)
}

// Definition implements ui.Policies. It leaves out what the API server and kubectl add to a
// document.
func (l LoadedPolicies) Definition(id string) (string, bool) {
	text, ok := l.Policies.Definition(id)
	if !ok {
		return "", false
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return string(text), true // it is YAML, as its author wrote it
	}
	delete(document, "status")
	if metadata, ok := document["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}
	}
	written, err := yaml.Marshal(document)
	if err != nil {
		return string(text), true
	}
	return string(written), true
}
