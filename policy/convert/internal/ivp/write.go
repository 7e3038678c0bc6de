package ivp

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/internal/manifest"
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
	Match         *MatchConstraints `yaml:"matchConstraints"`
	Conditions    []Condition       `yaml:"matchConditions,omitempty"`
	Images        []ImageReference  `yaml:"matchImageReferences"`
	Pin           *Pinning          `yaml:"validationConfigurations"`
	Credentials   *Credentials      `yaml:"credentials,omitempty"`
	Attestors     []Attestor        `yaml:"attestors"`
	Attestations  []Attestation     `yaml:"attestations,omitempty"`
	Validations   []Validation      `yaml:"validations"`
}

type webhook struct {
	TimeoutSeconds int `yaml:"timeoutSeconds"`
}

type evaluation struct {
	Background struct {
		Enabled bool `yaml:"enabled"`
	} `yaml:"background"`
}

// Write returns the policies as YAML, in their order of reading.
func Write(title string, notes []string, policies []*Policy) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(Comment("Converted from " + title + " by quaymaster convert. Read the comments: they say where the meaning is subtle."))
	for _, note := range notes {
		out.WriteString(Comment(note))
	}
	if len(policies) == 0 {
		out.WriteString("# No policy is needed: nothing is asked of any image.\n")
	}
	for _, p := range policies {
		node, err := p.node()
		if err != nil {
			return nil, fmt.Errorf("write policy %s: %w", p.Name, err)
		}
		out.WriteString("---\n")
		for _, line := range p.About {
			out.WriteString(Comment(line))
		}
		text, err := manifest.Encode(node)
		if err != nil {
			return nil, fmt.Errorf("write policy %s: %w", p.Name, err)
		}
		out.Write(text)
	}
	return out.Bytes(), nil
}

// Pods are the requests that bring an image into a cluster. Ephemeral containers
// come by a subresource of their own.
func Pods() *MatchConstraints {
	return &MatchConstraints{ResourceRules: []ResourceRule{{
		Groups: []string{""}, Versions: []string{"v1"}, Operations: []string{"CREATE", "UPDATE"},
		Resources: []string{"pods", "pods/ephemeralcontainers"},
	}}}
}

// node returns the policy with its comments.
func (p *Policy) node() (*yaml.Node, error) {
	d := document{
		APIVersion: "policies.kyverno.io/v1", Kind: "ImageValidatingPolicy", Metadata: metadata{Name: p.Name, Namespace: p.Namespace},
		Spec: spec{
			FailurePolicy: p.FailurePolicy, Actions: p.Actions, Match: p.Match, Conditions: p.Conditions, Images: p.Images,
			Pin: p.Pin, Credentials: p.Credentials, Attestors: p.Attestors, Attestations: p.Attestations, Validations: p.Validations,
		},
	}
	if p.Namespace != "" {
		d.Kind = "NamespacedImageValidatingPolicy"
	}
	if p.FailurePolicy == "" {
		d.Spec.FailurePolicy = "Fail"
	}
	if len(p.Actions) == 0 {
		d.Spec.Actions = []string{"Deny"}
	}
	if p.Timeout > 0 {
		d.Spec.Webhook = &webhook{TimeoutSeconds: p.Timeout}
	}
	if p.Background != nil {
		d.Spec.Evaluation = &evaluation{}
		d.Spec.Evaluation.Background.Enabled = *p.Background
	}
	if p.Match == nil {
		d.Spec.Match = Pods()
	}
	if p.Pin == nil {
		d.Spec.Pin = &Pinning{Mutate: true, Verify: true, Required: true}
	}
	root := &yaml.Node{}
	if err := root.Encode(d); err != nil {
		return nil, err
	}
	p.annotate(root)
	return root, nil
}

// annotate puts the comments where they belong.
func (p *Policy) annotate(root *yaml.Node) {
	spec := child(root, "spec")
	for i, one := range p.Images {
		remark(child(spec, "matchImageReferences"), i, one.Comment)
	}
	for i, one := range p.Attestors {
		remark(child(spec, "attestors"), i, one.Comment)
	}
	for i, one := range p.Validations {
		remark(child(spec, "validations"), i, one.Comment)
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
	if text != "" {
		list.Content[i].HeadComment = strings.TrimSuffix(Comment(text), "\n")
	}
}

// Comment wraps a text as a comment of YAML. Content of a source must not end the comment.
func Comment(text string) string {
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
