package constraint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
)

const (
	// maxRules bounds the rules of one constraint: each is compared with each object.
	maxRules = 200
	// maxNames bounds the names of each kind in a rule.
	maxNames = 500
)

// FieldError is a fault of a constraint with its path in the document.
type FieldError = field.Error

// Constraint is a compiled matchConstraints. It is immutable.
type Constraint struct {
	rules, excluded   []rule
	namespace, object labels.Selector // nil: everything
	exact, native     bool            // native: as the API server matches its own policies
	resources         Resources       // may be nil

	namespaceRequirements []requirement.Requirement // those of namespace
}

// rule is a compiled rule with operations.
type rule struct {
	versions   []string
	operations []admission.OperationType
	kinds      []kind // of the rule's groups
	names      []string
	scope      admission.ScopeType
	unserved   []policy.Unserved
}

// kind is a resource in the words of objects; name, kind and subresource may be *.
type kind struct {
	group, name, subresource string // group may be *
	resource                 string // empty for name *
	cluster                  bool
	unserved                 bool // name is the resource's, and it matches nothing
	guessed                  bool // name is the resource's, of which no kind is known
	beside                   bool // guessed, and a kind of the same resource is known
	hinted                   bool // only a definition among the evaluated objects has it
}

// Compile reads the constraint at a path. Resources supplies kinds in addition to Known; it may
// be nil. Errors refer to fields, all of them joined. A constraint without rules is an error
// because it would match everything. A resource that Kubernetes does not have in its own groups
// is one because it would match nothing. A resource that a definition may add is compared with
// the name that its kind suggests. For resources that are Later it matches nothing until it is
// served.
func Compile(doc *admission.MatchResources, path string, resources Resources) (*Constraint, error) {
	if doc == nil || len(doc.ResourceRules) == 0 {
		return nil, field.Fail(path+".resourceRules", "is empty: say which resources are meant")
	}
	c := &Constraint{resources: resources, namespaceRequirements: requirement.Of(doc.NamespaceSelector)}
	var errs [5]error
	c.rules, errs[0] = compileRules(doc.ResourceRules, path+".resourceRules", resources)
	c.excluded, errs[1] = compileRules(doc.ExcludeResourceRules, path+".excludeResourceRules", withoutHints(resources))
	c.namespace, errs[2] = selector(doc.NamespaceSelector, path+".namespaceSelector")
	c.object, errs[3] = selector(doc.ObjectSelector, path+".objectSelector")
	c.exact, errs[4] = isExact(doc, path)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return c, checkExcluded(doc, path)
}

// isExact reads matchPolicy.
func isExact(doc *admission.MatchResources, path string) (bool, error) {
	switch {
	case doc.MatchPolicy == nil || *doc.MatchPolicy == "" || *doc.MatchPolicy == admission.Equivalent:
		return false, nil
	case *doc.MatchPolicy == admission.Exact:
		return true, nil
	}
	return false, field.Fail(path+".matchPolicy", "unknown value %q: want Exact or Equivalent", *doc.MatchPolicy)
}

// SelectsObjects reports whether the constraint selects objects by their labels.
func (c *Constraint) SelectsObjects() bool { return c.object != nil && !c.object.Empty() }

func compileRules(docs []admission.NamedRuleWithOperations, path string, resources Resources) ([]rule, error) {
	if len(docs) > maxRules {
		return nil, field.Fail(path, "%d rules are more than %d", len(docs), maxRules)
	}
	var list []rule
	var errs []error
	for i := range docs {
		r, err := compileRule(&docs[i], path+"["+strconv.Itoa(i)+"]", resources)
		if err == nil {
			err = r.checkReach(path + "[" + strconv.Itoa(i) + "]")
		}
		errs = append(errs, err)
		list = append(list, r)
	}
	return list, errors.Join(errs...)
}

func compileRule(doc *admission.NamedRuleWithOperations, path string, resources Resources) (rule, error) {
	r := rule{versions: doc.APIVersions, operations: doc.Operations, names: doc.ResourceNames, scope: admission.AllScopes}
	var errs []error
	for _, list := range []struct {
		name   string
		length int
	}{{"apiGroups", len(doc.APIGroups)}, {"apiVersions", len(doc.APIVersions)}, {"operations", len(doc.Operations)}, {"resources", len(doc.Resources)}} {
		if list.length == 0 || list.length > maxNames {
			errs = append(errs, field.Fail(path+"."+list.name, "want 1 to %d entries, found %d", maxNames, list.length))
		}
	}
	for i, o := range doc.Operations {
		if !isOperation(o) {
			errs = append(errs, field.Fail(path+".operations["+strconv.Itoa(i)+"]", "unknown operation %q: want CREATE, UPDATE, DELETE, CONNECT or *", o))
		}
	}
	if doc.Scope != nil {
		r.scope = *doc.Scope
	}
	if !slices.Contains([]admission.ScopeType{admission.AllScopes, admission.ClusterScope, admission.NamespacedScope}, r.scope) {
		errs = append(errs, field.Fail(path+".scope", "unknown scope %q: want Cluster, Namespaced or *", r.scope))
	}
	if len(doc.ResourceNames) > maxNames {
		errs = append(errs, field.Fail(path+".resourceNames", "%d are more than %d", len(doc.ResourceNames), maxNames))
	}
	errs = append(errs, checkNames(doc, path), r.compileResources(doc, path, resources))
	return r, errors.Join(errs...)
}

func isOperation(o admission.OperationType) bool {
	return slices.Contains([]admission.OperationType{"*", admission.Create, admission.Update, admission.Delete, admission.Connect}, o)
}

// compileResources reads the product of groups and resources. A pair that does not exist is
// no error where another pair does: a rule for pods and deployments in the core group and
// apps names four.
func (r *rule) compileResources(doc *admission.NamedRuleWithOperations, path string, resources Resources) error {
	var errs []error
	type missing struct {
		absent unserved
		err    error
		sub    string
	}
	var gaps []missing
	for i, text := range doc.Resources {
		kinds, err := kindsOf(text, doc.APIGroups, resources)
		if err != nil {
			err = &FieldError{Path: path + ".resources[" + strconv.Itoa(i) + "]", Err: err}
		}
		if absent, is := errors.AsType[unserved](err); is {
			_, sub, _ := strings.Cut(text, "/")
			gaps = append(gaps, missing{absent, err, sub})
			err = nil
		}
		errs = append(errs, err)
		r.kinds = append(r.kinds, kinds...)
	}
	found := len(r.kinds) > 0
	for _, gap := range gaps {
		switch {
		case found && gap.absent.isElsewhere(resources):
		case isLater(resources):
			r.kinds = append(r.kinds, gap.absent.kinds(gap.sub)...)
			r.unserved = append(r.unserved, policy.Unserved{Err: gap.err, MayCome: len(gap.absent.coming()) > 0})
		case gap.absent.mayExist():
			r.kinds = append(r.kinds, gap.absent.guesses(gap.sub)...)
		default:
			r.kinds = append(r.kinds, gap.absent.kinds(gap.sub)...) // for Rough
			errs = append(errs, gap.err)
		}
	}
	for _, text := range doc.Resources {
		r.kinds = append(r.kinds, hinted(text, doc.APIGroups, resources)...)
	}
	return errors.Join(errs...)
}

func isLater(resources Resources) bool {
	_, is := resources.(later)
	return is
}

// Unserved returns the resources that are named and are not there: those of rules match
// nothing, and those of exclusions exclude nothing.
func (c *Constraint) Unserved() []policy.Unserved {
	var list []policy.Unserved
	for _, r := range slices.Concat(c.rules, c.excluded) {
		list = append(list, r.unserved...)
	}
	return list
}

func selector(doc *meta.LabelSelector, path string) (labels.Selector, error) {
	if doc == nil || len(doc.MatchLabels)+len(doc.MatchExpressions) == 0 {
		return nil, nil
	}
	s, err := requirement.Selector(doc)
	if err != nil {
		return nil, &FieldError{Path: path, Err: err}
	}
	return s, nil
}

// kindsOf reads one entry of resources: a name, name/subresource, or * for either.
func kindsOf(text string, groups []string, resources Resources) ([]kind, error) {
	name, sub, _ := strings.Cut(text, "/")
	switch {
	case name == "" || strings.HasSuffix(text, "/") || strings.Contains(sub, "/"):
		return nil, fmt.Errorf("%q: want a resource, such as pods or pods/ephemeralcontainers", text)
	case name == "*":
		var list []kind
		for _, group := range groups {
			list = append(list, kind{group: group, name: "*", subresource: sub})
		}
		return list, nil
	case strings.ToLower(name) != name:
		return nil, fmt.Errorf("%q is no resource: resources are the plural, lower-case names of kinds, such as pods", name)
	}
	var list []kind
	for _, r := range named(resources, groups, name) {
		if err := checkSubresource(r, sub); err != nil {
			return nil, err
		}
		list = append(list, kind{group: r.Group, name: r.Kind, subresource: sub, resource: r.Name, cluster: r.Cluster})
	}
	absent := unserved{name: name, groups: groups}
	if len(list) == 0 {
		return nil, absent
	}
	if knowsAll(resources) {
		return list, nil
	}
	for _, guess := range absent.guesses(sub) { // a definition may bring one of that name
		if guess.group == "*" || !slices.ContainsFunc(list, func(k kind) bool { return k.group == guess.group }) {
			guess.beside = true
			list = append(list, guess)
		}
	}
	return list, nil
}
