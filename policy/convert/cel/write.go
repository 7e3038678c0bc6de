package cel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/internal/manifest"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// Policy is a converted policy.
type Policy struct {
	// Kind, Name and Namespace identify it; the namespace is empty for a policy of the cluster.
	Kind, Name, Namespace string
	// File is where its source was read; From is the source's name, after NAMESPACE/ for a Policy, and Rules
	// are those of its rules that the policy has.
	File, From          string
	Rules               []string
	labels, annotations map[string]string
	// spec is written with its fields in the order in which they are read.
	spec any
	// apiVersion is that of what stays; empty for a result.
	apiVersion string
	// statements are the first validation of each of Rules, if they validate, and staying the rules of what stays.
	statements []int
	staying    []string
	remarks    []remark
	// written is the text of a document that is no result.
	written []byte
}

// policyOf returns a policy in place of a document. Kind is that of a policy of the cluster.
func policyOf(doc *document, kind, name string, spec any) Policy {
	if doc.Metadata.Namespace != "" {
		kind = "Namespaced" + kind
	}
	return Policy{Kind: kind, Name: name, Namespace: doc.Metadata.Namespace, labels: doc.Metadata.Labels, annotations: doc.Metadata.Annotations, spec: spec}
}

// YAML returns the policies as one text of several documents, in their order.
func YAML(policies []Policy) ([]byte, error) {
	var out bytes.Buffer
	for i := range policies {
		text, err := policies[i].YAML()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// YAML returns the policy as one document.
func (p *Policy) YAML() ([]byte, error) {
	if p.written != nil {
		return append(bytes.TrimRight(p.written, "\n"), '\n'), nil
	}
	type metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	node, err := manifest.Node(struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
		Spec       any      `json:"spec"`
	}{cmp.Or(p.apiVersion, "policies.kyverno.io/v1"), p.Kind, metadata{p.Name, p.Namespace, p.labels, p.annotations}, p.spec})
	if err != nil {
		return nil, fmt.Errorf("write policy %s: %w", p.Name, err)
	}
	for _, r := range p.remarks {
		r.put(node)
	}
	text, err := manifest.Encode(node)
	if err != nil {
		return nil, fmt.Errorf("write policy %s: %w", p.Name, err)
	}
	return text, nil
}

// matched are the resources that a policy matches.
type matched struct {
	MatchConstraints struct {
		ResourceRules []matchedRule `json:"resourceRules"`
	} `json:"matchConstraints"`
	MatchConditions []admission.MatchCondition `json:"matchConditions"`
	Autogen         *autogenFields             `json:"autogen"`
}

type matchedRule struct{ Operations, Resources []string }

// matched returns the resources that the policy matches.
func (p *Policy) matched() (m matched, err error) {
	text, err := json.Marshal(p.spec)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		err = fmt.Errorf("write policy %s: %w", p.Name, err)
	}
	return m, err
}

// Skips reports whether the policy leaves objects aside by conditions of its match. One without any passes those for
// which a condition of its source does not hold.
func (p *Policy) Skips() bool {
	m, err := p.matched()
	return err == nil && len(m.MatchConditions) > 0
}

// MatchesKind reports whether the policy may match objects of a kind of Kubernetes, or of one that is not known; of
// a policy about pods also controllers, unless it is for none.
func (p *Policy) MatchesKind(kind string) bool {
	m, err := p.matched()
	if err != nil {
		return true
	}
	names := []string{"*"}
	for _, r := range builtin.Resources() {
		if r.Kind == kind {
			names = append(names, r.Name)
		}
	}
	for _, rule := range m.MatchConstraints.ResourceRules {
		for _, resource := range rule.Resources {
			if len(names) == 1 || slices.Contains(names, resource) {
				return true
			}
			if resource == "pods" && slices.Contains(match.PodControllers(), kind) &&
				(m.Autogen == nil || slices.ContainsFunc(m.Autogen.PodControllers.Controllers, func(c string) bool { return slices.Contains(names, c) })) {
				return true
			}
		}
	}
	return false
}
