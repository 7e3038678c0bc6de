// Package authorizer implements the variables authorizer and authorizer.requestResource of CEL in
// Kubernetes 1.37 (KEP 3488, "Secondary authorization"). A check is a SubjectAccessReview
// (authorization.k8s.io/v1), which the caller sends.
package authorizer

import (
	"context"
	"errors"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"
)

// The names of the variables.
const (
	Name         = "authorizer"
	ResourceName = "authorizer.requestResource"
)

// Options declare the functions of the variables.
func Options() []celgo.EnvOption {
	return []celgo.EnvOption{library.Authz(), library.AuthzSelectors()}
}

// Type and ResourceType are those of the variables. Their values are a Requester.
func Type() *celgo.Type { return library.AuthorizerType }

// ResourceType is that of ResourceName.
func ResourceType() *celgo.Type { return library.ResourceCheckType }

// Requester is the user of a request; checks are about its access.
type Requester struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
	// Resource is that of the request, for ResourceName; nil for Name.
	Resource *Resource
}

// Resource is what a request is about.
type Resource struct{ Group, Resource, Subresource, Namespace, Name string }

// Review sends a review, decoded JSON, and returns its status.
type Review func(review map[string]any) (status map[string]any, err error)

// Value returns the value of the variable. Abort ends an evaluation for an error of a review: whether
// the user is allowed is then not known, and neither true nor false. It does not return.
func (r Requester) Value(review Review, abort func(error)) ref.Val {
	who := &user.DefaultInfo{Name: r.Name, UID: r.UID, Groups: r.Groups, Extra: r.Extra}
	by := reviewer{review, abort}
	if r.Resource == nil {
		return library.NewAuthorizerVal(who, by)
	}
	return library.NewResourceAuthorizerVal(who, by, requested{r.Resource})
}

// reviewer implements authorizer.UnconditionalAuthorizer.
type reviewer struct {
	review Review
	abort  func(error)
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (r reviewer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	status, err := r.review(reviewOf(a))
	if err != nil {
		r.abort(err)
	}
	reason, _ := status["reason"].(string)
	if failed, _ := status["evaluationError"].(string); failed != "" {
		err = errors.New(failed)
	}
	switch {
	case status["denied"] == true:
		return authorizer.DecisionDeny, reason, err
	case status["allowed"] == true:
		return authorizer.DecisionAllow, reason, err
	}
	return authorizer.DecisionNoOpinion, reason, err
}

// reviewOf is the SubjectAccessReview of a check.
func reviewOf(a authorizer.Attributes) map[string]any {
	who := a.GetUser()
	spec := map[string]any{"user": who.GetName(), "uid": who.GetUID(), "groups": list(who.GetGroups())}
	if extra := who.GetExtra(); len(extra) > 0 {
		all := make(map[string]any, len(extra))
		for key, values := range extra {
			all[key] = list(values)
		}
		spec["extra"] = all
	}
	if a.IsResourceRequest() {
		spec["resourceAttributes"] = attributes(a)
	} else {
		spec["nonResourceAttributes"] = map[string]any{"path": a.GetPath(), "verb": a.GetVerb()}
	}
	return map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
}

func attributes(a authorizer.Attributes) map[string]any {
	all := map[string]any{
		"verb": a.GetVerb(), "group": a.GetAPIGroup(), "version": a.GetAPIVersion(), "resource": a.GetResource(),
		"subresource": a.GetSubresource(), "namespace": a.GetNamespace(), "name": a.GetName(),
	}
	// A selector that cannot be parsed narrows nothing, as in Kubernetes.
	if fields, err := a.GetFieldSelector(); err == nil && len(fields) > 0 {
		var requirements []any
		for _, f := range fields {
			requirements = append(requirements, map[string]any{"key": f.Field, "operator": operator(string(f.Operator)), "values": []any{f.Value}})
		}
		all["fieldSelector"] = map[string]any{"requirements": requirements}
	}
	if labels, err := a.GetLabelSelector(); err == nil && len(labels) > 0 {
		var requirements []any
		for _, l := range labels {
			requirements = append(requirements, map[string]any{"key": l.Key(), "operator": operator(string(l.Operator())), "values": list(l.Values().List())})
		}
		all["labelSelector"] = map[string]any{"requirements": requirements}
	}
	return all
}

// operator is the name of a selector's operator in a review.
func operator(text string) string {
	switch text {
	case "=", "==", "in":
		return "In"
	case "!=", "notin":
		return "NotIn"
	case "exists":
		return "Exists"
	case "!":
		return "DoesNotExist"
	}
	return text // which the API server refuses
}

func list(texts []string) []any {
	all := make([]any, 0, len(texts))
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// requested implements library.Resource.
type requested struct{ of *Resource }

// GetResource implements library.Resource.
func (r requested) GetResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.of.Group, Resource: r.of.Resource}
}

// GetSubresource implements library.Resource.
func (r requested) GetSubresource() string { return r.of.Subresource }

// GetNamespace implements library.Resource.
func (r requested) GetNamespace() string { return r.of.Namespace }

// GetName implements library.Resource.
func (r requested) GetName() string { return r.of.Name }
