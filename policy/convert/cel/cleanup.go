package cel

import (
	"cmp"
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/deletion"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/cleanup"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// cleanup converts a cleanup policy.
func (c *converter) cleanup(d source.Document) {
	compiler, err := cleanup.New(cleanup.Options{Context: rulecontext.Options{Engine: c.engine}})
	if err == nil {
		_, err = compiler.Compile(d.Text, "the policy")
	}
	var doc document
	var from struct {
		Spec deletion.Document `json:"spec"`
	}
	if err == nil {
		err = cmp.Or(json.Unmarshal(d.Text, &doc), json.Unmarshal(d.Text, &from))
	}
	if err != nil {
		c.Refuse(d.Prefix, err.Error(), "mend the policy")
		return
	}
	made, err := deletion.Of(from.Spec, c.types, d.Kind == cleanup.Kind)
	if err != nil {
		c.refuse(d, "spec", err)
		return
	}
	if d.Kind == cleanup.ClusterKind {
		doc.Metadata.Namespace = ""
	} else {
		doc.Metadata.Namespace = cmp.Or(doc.Metadata.Namespace, "default")
	}
	delete(doc.Metadata.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	p := policyOf(&doc, "DeletingPolicy", doc.Metadata.Name, made)
	p.File, p.From = fileOf(d), doc.Metadata.Name
	if p.Namespace != "" {
		p.From = p.Namespace + "/" + p.From
	}
	c.result.Policies = append(c.result.Policies, p)
}
