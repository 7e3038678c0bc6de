package documents

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/generating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

// namesKinds reports whether policies of a kind name resources that the API server must serve.
func namesKinds(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, imagevalidating.Kind, validating.Kind, mutating.Kind, generating.Kind)
}

// NewCatalog makes an empty catalog of every dialect.
func NewCatalog(c config.Configuration, compilers engine.Compilers, now *rollout.Effective) (*catalog.Catalog, error) {
	unmatched := unmatched{choice: sigstore.Unmatched(c.Policies.ClusterImagePolicies.NoMatch), compiler: compilers.Sigstore}
	if unmatched.choice == "" {
		// Only policy-controller selects namespaces in this way.
		unmatched.compiler = sigstore.New(sigstore.Options{OptIn: true})
	}
	required, err := c.Required()
	if err != nil {
		return nil, err
	}
	options := catalog.Options{
		ExceptionNamespaces: c.Exceptions.Namespaces, TrustRoots: compilers.TrustRoots,
		Beside:   withRequired(required, now.Merged(unmatched.policies, unmatched.choice != "")),
		Dialects: compilers.Dialects(), Exceptions: compilers.Exceptions(), Overrides: compilers.Overrides(),
		Effective: now.Of, Notes: func(p *policy.Policy) []string { return notesOf(c.Webhooks.OnlyPods, p) },
	}
	if c.Policies.Selector != "" {
		selector, err := labels.Parse(c.Policies.Selector)
		if err != nil {
			return nil, err
		}
		options.Selects = func(of map[string]string) bool { return selector.Matches(labels.Set(of)) }
	}
	made, err := catalog.New(options)
	if err == nil {
		now.Compiler(made.Compile)
	}
	return made, err
}

// notesOf returns the effects of the settings on a policy that pins images in objects of the kinds
// it names.
func notesOf(onlyPods bool, p *policy.Policy) []string {
	kinds := strings.Join(p.NamedKinds(), ", ")
	pins := "it names " + kinds + " or may leave out the pods that such objects create"
	switch {
	case kinds == "":
		return nil
	case onlyPods:
		return []string{
			pins + ", and images are pinned in pods alone (webhooks.onlyPods): a tag in such an object is denied where the policy verifies digests",
		}
	}
	return []string{
		pins + ", and so pins images in such objects, which GitOps tools see as a drift: a rule about Pod that selects by namespace alone pins in the pods",
	}
}

// withRequired adds the requirements of the settings to the policies that a function returns; nil adds
// none. They are always in force: no source of policies that audits has them.
func withRequired(required *policy.Policy, beside func([]*policy.Policy) ([]*policy.Policy, error)) func([]*policy.Policy) ([]*policy.Policy, error) {
	if required == nil {
		return beside
	}
	return func(active []*policy.Policy) ([]*policy.Policy, error) {
		made, err := beside(active)
		return append(made, required), err
	}
}

// unmatched makes the policy for images that no ClusterImagePolicy matches.
type unmatched struct {
	choice   sigstore.Unmatched // empty: deny, once there is a ClusterImagePolicy
	compiler *sigstore.Compiler
}

func (u unmatched) policies(active []*policy.Policy) ([]*policy.Policy, error) {
	if u.choice == "" && !hasKind(active, "ClusterImagePolicy") {
		return nil, nil
	}
	made, err := u.compiler.NoMatch(u.choice, active)
	if made == nil || err != nil {
		return nil, err
	}
	return []*policy.Policy{made}, nil
}

func hasKind(list []*policy.Policy, kind string) bool {
	for _, p := range list {
		if p.Kind == kind {
			return true
		}
	}
	return false
}
