// Package trigger finds the sorts of triggers that a policy of policies.kyverno.io (Kyverno 1.19) about other
// objects has. Such a policy is applied to what watches return, and not to requests.
package trigger

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

// Sorts are the triggers of a policy besides objects that are created and updated.
type Sorts struct {
	// Deletion and Request are the paths of the first operation that includes deletions and of the first
	// subresource; empty for none.
	Deletion, Request string
	Subresources      []string // empty for the object itself
}

// Read refuses triggers that no watch shows: connections, some subresources, and all kinds at once. Who is the
// policy, in messages.
func Read(doc *admission.MatchResources, who string) (sorts Sorts, err error) {
	if doc == nil {
		return sorts, nil // which is refused elsewhere
	}
	var errs []error
	for i := range doc.ResourceRules {
		path := "spec.matchConstraints.resourceRules[" + strconv.Itoa(i) + "]"
		for n, operation := range doc.ResourceRules[i].Operations {
			switch at := path + ".operations[" + strconv.Itoa(n) + "]"; operation {
			case admission.Create, admission.Update:
			case admission.Delete, admission.OperationAll: // neither an object itself nor what a watch shows has CONNECT
				if sorts.Deletion == "" {
					sorts.Deletion = at
				}
			default:
				errs = append(errs, kyvernocel.Unsupported(at, "the operation "+string(operation)+" of "+who))
			}
		}
		for n, resource := range doc.ResourceRules[i].Resources {
			at := path + ".resources[" + strconv.Itoa(n) + "]"
			name, sub, _ := strings.Cut(resource, "/")
			sorts.Subresources = append(sorts.Subresources, sub)
			if sub != "" && sorts.Request == "" {
				sorts.Request = at
			}
			if err := visible(doc.ResourceRules[i].APIGroups, name, sub); err != nil {
				errs = append(errs, kyvernocel.Unsupported(at, who+" with the triggers "+resource+" ("+err.Error()+")"))
			}
		}
	}
	return sorts, errors.Join(errs...)
}

// visible refuses a resource or a subresource of which no watch shows the requests.
func visible(groups []string, name, sub string) error {
	switch {
	case strings.Contains(name, "*"):
		return errors.New("each kind needs a watch: name the resources")
	case sub == "":
		return nil
	}
	kinds := slices.DeleteFunc(constraint.Known(), func(r constraint.Resource) bool {
		return r.Name != name || !slices.Contains(groups, r.Group) && !slices.Contains(groups, "*")
	})
	if len(kinds) == 0 {
		return subresource.Check("", "", sub)
	}
	return subresource.Check(kinds[0].Group, kinds[0].Kind, sub)
}

// WithoutRequester refuses the triggers whose requester is unknown, for a policy that reads it.
func (s Sorts) WithoutRequester(who string) error {
	switch {
	case s.Deletion != "":
		return kyvernocel.Unsupported(s.Deletion, "the operation DELETE of "+who+" that reads the requester, which a deletion does not record,")
	case s.Request != "":
		return kyvernocel.Unsupported(s.Request, "the trigger of "+who+" that reads the requester, which a request for a subresource does not record,")
	}
	return nil
}

// May reports whether a subject may be a trigger by its subresource and operation.
func (s Sorts) May(of *policy.Subject) bool {
	return slices.Contains(s.Subresources, of.Subresource) && (of.Operation != string(admission.Delete) || s.Deletion != "")
}

// Is reports whether a subject of this sort is a trigger, with the object that expressions read.
func (s Sorts) Is(of *policy.Subject) bool {
	if of.Kind == "" || !s.May(of) {
		return false
	}
	if of.Operation == string(admission.Delete) {
		return !of.OldObject.IsZero()
	}
	return !of.Object.IsZero()
}
