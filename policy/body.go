package policy

import "github.com/quaymaster/quaymaster/policy/internal/builtin"

// APIResource is a resource of the API server as a request names it, without its
// subresource.
type APIResource struct{ Group, Version, Name string }

// Resource returns the resource of the request, if its name and group are known.
func (s *Subject) Resource() (APIResource, bool) {
	members, err := s.Request.Members()
	if err != nil {
		return APIResource{}, false
	}
	of, _ := members["resource"].(map[string]any)
	name, _ := of["resource"].(string)
	group, hasGroup := of["group"].(string)
	version, _ := of["version"].(string)
	return APIResource{Group: group, Version: version, Name: name}, name != "" && (hasGroup || s.Request.IsWhole())
}

// IsBody reports whether the subject's kind is that of the body which a subresource
// receives, as a Scale, because the kind of the object that has the subresource is not
// known. A selector of kinds is indeterminate then.
func (s *Subject) IsBody() bool {
	of, known := s.Resource()
	return s.Subresource != "" && (builtin.IsSent(s.Group, s.Kind) || known && (of.Group != s.Group || !builtin.IsOf(s.Kind, of.Group, of.Name)))
}
