package documents

import (
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

// namesKinds reports whether policies of a kind name resources that the API server must serve.
func namesKinds(apiVersion, kind string) bool {
	return kyvernocel.IsKind(apiVersion, kind, imagevalidating.Kind, validating.Kind, mutating.Kind)
}

// NewCatalog makes an empty catalog of every dialect.
func NewCatalog(c config.Configuration, compilers engine.Compilers, now *rollout.Effective) (*catalog.Catalog, error) {
	unmatched := unmatched{choice: sigstore.Unmatched(c.Policies.ClusterImagePolicies.NoMatch), compiler: compilers.Sigstore}
	if unmatched.choice == "" {
		// Only policy-controller selects namespaces in this way.
		unmatched.compiler = sigstore.New(sigstore.Options{OptIn: true})
	}
	options := catalog.Options{
		ExceptionNamespaces: c.Exceptions.Namespaces, TrustRoots: compilers.TrustRoots, Beside: now.Merged(unmatched.policies, unmatched.choice != ""),
		Overrides: carefulOverrides{compilers.Overrides()}, Effective: now.Of, Notes: func(p *policy.Policy) []string { return notesOf(c.Webhooks.OnlyPods, p) },
	}
	for _, dialect := range compilers.Dialects() {
		options.Dialects = append(options.Dialects, carefulDialect{dialect})
	}
	for _, exceptions := range compilers.Exceptions() {
		options.Exceptions = append(options.Exceptions, carefulExceptions{exceptions})
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
		return []string{pins + ", and images are pinned in pods alone (webhooks.onlyPods): a tag in such an object is denied where the policy verifies digests"}
	}
	return []string{pins + ", and so pins images in such objects, which GitOps tools see as a drift: a rule about Pod that selects by namespace alone pins in the pods"}
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

// carefulDialect converts a panic to an error: a document that makes a compiler panic is broken,
// and neither ends the process nor is ignored.
type carefulDialect struct{ catalog.Dialect }

// Compile implements catalog.Dialect.
func (c carefulDialect) Compile(document []byte, source string) (made *policy.Policy, err error) {
	defer func() { err = gateway.Recovered(err, recover()) }()
	return c.Dialect.Compile(document, source)
}

// carefulExceptions does the same for exceptions.
type carefulExceptions struct{ catalog.Exceptions }

// Compile implements catalog.Exceptions.
func (c carefulExceptions) Compile(document []byte, source string) (made *policy.Exception, err error) {
	defer func() { err = gateway.Recovered(err, recover()) }()
	return c.Exceptions.Compile(document, source)
}

// carefulOverrides does the same for overrides.
type carefulOverrides struct{ catalog.Overrides }

// Compile implements catalog.Overrides.
func (c carefulOverrides) Compile(document []byte, source string) (made *policy.Override, err error) {
	defer func() { err = gateway.Recovered(err, recover()) }()
	return c.Overrides.Compile(document, source)
}
