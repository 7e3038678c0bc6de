package match

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// Document is a match or exclude block as it is written: any, all, or the old form
// without either.
type Document struct {
	Any []resourceFilter `json:"any"`
	All []resourceFilter `json:"all"`
	resourceFilter
}

type resourceFilter struct {
	Resources    resourceDescription `json:"resources"`
	Subjects     []subject           `json:"subjects"`
	Roles        []string            `json:"roles"`
	ClusterRoles []string            `json:"clusterRoles"`
}

type resourceDescription struct {
	Kinds             []string          `json:"kinds"`
	Name              *string           `json:"name"` // nil for absent; empty matches nothing
	Names             []string          `json:"names"`
	Namespaces        []string          `json:"namespaces"`
	Annotations       map[string]string `json:"annotations"`
	Selector          *Selector         `json:"selector"`
	NamespaceSelector *Selector         `json:"namespaceSelector"`
	Operations        []string          `json:"operations"`
}

type subject struct {
	Kind      string `json:"kind"`
	APIGroup  string `json:"apiGroup"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Selector selects by labels, as it is written.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []requirement     `json:"matchExpressions"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// SelectsUsers reports whether the block selects by the user.
func (m Document) SelectsUsers() bool {
	users := func(f resourceFilter) bool { return len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0 }
	return users(m.resourceFilter) || slices.ContainsFunc(m.Any, users) || slices.ContainsFunc(m.All, users)
}

// MeansPodsOfControllers reports whether a block that names pods means those that a
// controller makes: they are created, and not by the user who wrote the controller.
func (m Document) MeansPodsOfControllers() bool {
	creates := func(f resourceFilter) bool {
		return len(f.Resources.Operations) == 0 || slices.Contains(f.Resources.Operations, "CREATE")
	}
	every := creates(m.resourceFilter) && !slices.ContainsFunc(slices.Concat(m.Any, m.All), func(f resourceFilter) bool { return !creates(f) })
	return every && !m.SelectsUsers()
}

// podMakers are the controllers of Kubernetes that create pods, by their accounts.
func podMakers() []string {
	return []string{"daemon-set-controller", "job-controller", "replicaset-controller", "replication-controller", "statefulset-controller"}
}

// LeavesOutControllers reports whether an exclude may match, by its users, the pods that a
// controller of Kubernetes creates.
func (m Document) LeavesOutControllers() bool {
	const namespace = "kube-system"
	account := func(s subject, name string) bool {
		switch s.Kind {
		case "ServiceAccount":
			return wildcard.Match(s.Namespace, namespace) && wildcard.Match(s.Name, name)
		case "Group":
			return wildcard.Match(s.Name, "system:serviceaccounts") || wildcard.Match(s.Name, "system:serviceaccounts:"+namespace) || wildcard.Match(s.Name, "system:authenticated")
		}
		return wildcard.Match(s.Name, "system:serviceaccount:"+namespace+":"+name)
	}
	return slices.ContainsFunc(slices.Concat([]resourceFilter{m.resourceFilter}, m.Any, m.All), func(f resourceFilter) bool {
		return slices.ContainsFunc(podMakers(), func(name string) bool {
			return slices.ContainsFunc(f.Subjects, func(s subject) bool { return account(s, name) }) ||
				slices.ContainsFunc(f.ClusterRoles, func(role string) bool { return wildcard.Match(role, "system:controller:"+name) })
		})
	})
}

// OldForm reports whether the block is written without any and all.
func (m Document) OldForm() bool { return !m.empty() }
