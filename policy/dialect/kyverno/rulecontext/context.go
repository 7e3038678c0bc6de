package rulecontext

import (
	"context"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Source is the data for the variables of every rule.
type Source struct {
	Subject *policy.Subject
	// Template is the path of the pod template in the object; nil if the rule reads the object
	// itself.
	Template PodTemplate
	// Images finds the object's images, if an expression reads them; nil if they are not
	// available.
	Images func() ([]policy.Image, error)
}

// Context builds the data for expressions: the common members of every rule, and the entries. The
// caller may add to it.
func (e Entries) Context(ctx context.Context, source Source) variable.Context {
	data := make(variable.Context, commonNames+len(e.list))
	s := source.Subject
	data["request"] = Request(s, source.Template)
	data["images"] = imagesFrom(source.Images)
	data["serviceAccountNamespace"], data["serviceAccountName"] = serviceAccount(s)
	e.Add(ctx, data)
	return data
}

// commonNames is how many members every context has, including those of a loop.
const commonNames = 8

// serviceAccount returns the variables of the requesting service account: empty for another user,
// and unknown if the user is unknown.
func serviceAccount(s *policy.Subject) (namespace, name any) {
	if s.User.Name == "" && !s.Request.IsWhole() {
		unknown := variable.DeferPartial(func() (any, error) { return "", nil }, func(any, []string) error {
			return unfound(&admissionrequest.UnknownError{Member: "request.userInfo.username"})
		})
		return unknown, unknown
	}
	rest, ok := strings.CutPrefix(s.User.Name, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	first, second, _ := strings.Cut(rest, ":")
	return first, second
}
