package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy/deletion"
)

// Cleanup is the deletion of objects by policies with a schedule, and at the end of their lifetime, by
// one replica at a time. It deletes only where RBAC permits it.
type Cleanup struct {
	// Delete objects with the label cleanup.kyverno.io/ttl at the end of their lifetime. A webhook
	// refuses the label of users without permission to delete the object (docs/cleanup.md). Default:
	// the label has no effect.
	TTL bool `json:"ttl,omitempty"`
	// Deletions of one run of a policy, at most; the run stops there and reports it. Default 100.
	Limit int `json:"limit,omitempty"`
	// Kinds of protected objects that are deleted where a policy names the kind: Namespace, or
	// group/Kind, as in apiextensions.k8s.io/CustomResourceDefinition. Default: none.
	AllowedKinds []string `json:"allowedKinds,omitempty"`
	// Namespaces that are not protected, of kube-system, kube-public, kube-node-lease and the
	// gateway's own. Default: none.
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`
	// Requests per second to the API server, in addition to those of kubernetes.qps. Default 10.
	QPS float32 `json:"qps,omitempty"`
}

func (c *Cleanup) fill() {
	if c.Limit == 0 {
		c.Limit = deletion.DefaultLimit
	}
	if c.QPS == 0 {
		c.QPS = 10
	}
}

func (c Cleanup) check(found *complaints) {
	found.refuse(c.Limit < 0, "cleanup.limit: %d: want at least 1", c.Limit)
	found.refuse(c.QPS < 0, "cleanup.qps cannot be negative")
	for _, text := range c.AllowedKinds {
		if _, err := deletion.ParseKind(text); err != nil {
			found.refuse(true, "cleanup.allowedKinds: %w", err)
		}
	}
	for _, name := range c.AllowedNamespaces {
		found.refuse(len(validation.IsDNS1123Label(name)) > 0, "cleanup.allowedNamespaces: %q: want the name of a namespace", name)
	}
}

// Kinds are the AllowedKinds.
func (c Cleanup) Kinds() []deletion.Kind {
	var list []deletion.Kind
	for _, text := range c.AllowedKinds {
		if kind, err := deletion.ParseKind(text); err == nil && !slices.Contains(list, kind) {
			list = append(list, kind)
		}
	}
	return list
}

// HasLifetimes reports whether labels with the lifetime of objects have an effect. In shadow mode nothing
// is deleted.
func (c *Configuration) HasLifetimes() bool { return c.Cleanup.TTL && !c.Standalone && !c.Shadow() }
