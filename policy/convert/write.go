package convert

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// document is an ImageValidatingPolicy in the order in which it is written.
type document struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       spec     `yaml:"spec"`
}

type metadata struct {
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace,omitempty"`
}

type spec struct {
	FailurePolicy string            `yaml:"failurePolicy"`
	Actions       []string          `yaml:"validationActions"`
	Webhook       *webhook          `yaml:"webhookConfiguration,omitempty"`
	Evaluation    *evaluation       `yaml:"evaluation,omitempty"`
	Match         *matchConstraints `yaml:"matchConstraints"`
	Conditions    []condition       `yaml:"matchConditions,omitempty"`
	Images        []imageReference  `yaml:"matchImageReferences"`
	Pin           *pinning          `yaml:"validationConfigurations"`
	Credentials   *credentials      `yaml:"credentials,omitempty"`
	Attestors     []attestor        `yaml:"attestors"`
	Attestations  []attestation     `yaml:"attestations,omitempty"`
	Validations   []validation      `yaml:"validations"`
}

type webhook struct {
	TimeoutSeconds int `yaml:"timeoutSeconds"`
}

type evaluation struct {
	Background struct {
		Enabled bool `yaml:"enabled"`
	} `yaml:"background"`
}

// write returns the policies as YAML, in the order in which they were said.
func write(format Format, notes []string, policies []*said) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(comment("Converted from " + titles()[format] + " by quaymaster convert. Read the comments: they say where the meaning is subtle."))
	for _, note := range notes {
		out.WriteString(comment(note))
	}
	if len(policies) == 0 {
		out.WriteString("# No policy is needed: nothing is asked of any image.\n")
	}
	for _, p := range policies {
		node, err := p.node()
		if err != nil {
			return nil, fmt.Errorf("write policy %s: %w", p.name, err)
		}
		out.WriteString("---\n")
		for _, line := range p.about {
			out.WriteString(comment(line))
		}
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := encoder.Encode(node); err != nil {
			return nil, fmt.Errorf("write policy %s: %w", p.name, err)
		}
		if err := encoder.Close(); err != nil {
			return nil, fmt.Errorf("write policy %s: %w", p.name, err)
		}
	}
	return out.Bytes(), nil
}

func titles() map[Format]string {
	return map[Format]string{
		Connaisseur: "Connaisseur's application values", Notation: "a notation trust policy", Containers: "a containers policy.json",
		OpenShift: "OpenShift's image policies", Ratify: "Ratify's resources", Kyverno: "Kyverno's verifyImages",
		Sigstore: "policy-controller's ClusterImagePolicies",
	}
}

// pods are the requests that bring an image into a cluster. Ephemeral containers
// come by a subresource of their own.
func pods() *matchConstraints {
	return &matchConstraints{ResourceRules: []resourceRule{{
		Groups: []string{""}, Versions: []string{"v1"}, Operations: []string{"CREATE", "UPDATE"},
		Resources: []string{"pods", "pods/ephemeralcontainers"},
	}}}
}

// node returns the policy with its comments.
func (p *said) node() (*yaml.Node, error) {
	d := document{
		APIVersion: "policies.kyverno.io/v1", Kind: "ImageValidatingPolicy", Metadata: metadata{Name: p.name, Namespace: p.namespace},
		Spec: spec{
			FailurePolicy: p.failurePolicy, Actions: p.actions, Match: p.match, Conditions: p.conditions, Images: p.images,
			Pin: p.pin, Credentials: p.credentials, Attestors: p.attestors, Attestations: p.attestations, Validations: p.validations,
		},
	}
	if p.namespace != "" {
		d.Kind = "NamespacedImageValidatingPolicy"
	}
	if p.failurePolicy == "" {
		d.Spec.FailurePolicy = "Fail"
	}
	if len(p.actions) == 0 {
		d.Spec.Actions = []string{"Deny"}
	}
	if p.timeout > 0 {
		d.Spec.Webhook = &webhook{TimeoutSeconds: p.timeout}
	}
	if p.background != nil {
		d.Spec.Evaluation = &evaluation{}
		d.Spec.Evaluation.Background.Enabled = *p.background
	}
	if p.match == nil {
		d.Spec.Match = pods()
	}
	if p.pin == nil {
		d.Spec.Pin = &pinning{Mutate: true, Verify: true, Required: true}
	}
	if p.attestors == nil {
		d.Spec.Attestors = []attestor{}
	}
	root := &yaml.Node{}
	if err := root.Encode(d); err != nil {
		return nil, err
	}
	p.annotate(root)
	return root, nil
}

// annotate puts the comments where they belong.
func (p *said) annotate(root *yaml.Node) {
	spec := child(root, "spec")
	for i, one := range p.images {
		remark(child(spec, "matchImageReferences"), i, one.comment)
	}
	for i, one := range p.attestors {
		remark(child(spec, "attestors"), i, one.comment)
	}
	for i, one := range p.validations {
		remark(child(spec, "validations"), i, one.comment)
	}
}

// child returns the value of a key of a mapping that has it.
func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return &yaml.Node{}
}

func remark(list *yaml.Node, i int, text string) {
	if text != "" && i < len(list.Content) {
		list.Content[i].HeadComment = strings.TrimSuffix(comment(text), "\n")
	}
}

// comment wraps a text. What comes from a source must not end the comment.
func comment(text string) string {
	const width = 90
	var out strings.Builder
	line := "#"
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) {
			return r
		}
		return '?'
	}, text)
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && line != "#" {
			out.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	out.WriteString(line + "\n")
	return out.String()
}
