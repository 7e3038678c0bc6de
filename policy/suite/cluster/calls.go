package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/document"
)

var (
	_ rulecontext.Lookup = (*Cluster)(nil)
	_ rulecontext.Caller = (*Cluster)(nil)
	_ engine.ImageReader = (*Cluster)(nil)
)

// Answer returns the response to a call. An entry with a method precedes one without.
func (c *Cluster) Answer(method, address string) (any, error) {
	var found *document.Call
	for i := range c.Calls {
		e := &c.Calls[i]
		if e.URL+e.URLPath != address || e.Method != "" && !strings.EqualFold(e.Method, method) {
			continue
		}
		if found == nil || found.Method == "" {
			found = e
		}
	}
	if found == nil {
		return nil, errNoAnswer
	}
	if status := found.Response.StatusCode; status != 0 && (status < 200 || status > 299) {
		return nil, fmt.Errorf("it answers with status %d", status)
	}
	return found.Response.Body, nil
}

var errNoAnswer = errors.New("the suite does not say what it answers: give it under apiCallResponses, or give the values that the rule reads")

// API implements rulecontext.Caller, with the suite's response for the path, else with the
// suite's objects.
func (c *Cluster) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	body, err := c.Answer(call.Method, call.Path)
	if !errors.Is(err, errNoAnswer) || call.Method != http.MethodGet {
		return body, err
	}
	return c.read(ctx, call.Path)
}

// read reads a path of the Kubernetes API from the objects.
func (c *Cluster) read(ctx context.Context, path string) (any, error) {
	path, query, _ := strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var ref cel.ResourceRef
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		ref.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		ref.Group, ref.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, errNoAnswer
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		ref.Namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 2 || query != "" || !c.Knows(ref.Group, parts[0]) {
		return nil, errNoAnswer
	}
	ref.Resource = parts[0]
	if len(parts) == 1 {
		return c.List(ctx, ref, nil)
	}
	ref.Name = parts[1]
	object, err := c.Get(ctx, ref)
	if err == nil && object == nil {
		return nil, errNoAnswer
	}
	return object, err
}

// Knows reports whether the suite has an object of a resource, so that a list of them counts as
// complete.
func (c *Cluster) Knows(group, resource string) bool {
	for _, o := range c.Objects {
		if o.Group() == group && c.nameOf(group, o.Kind()) == resource {
			return true
		}
	}
	return false
}

// Service implements rulecontext.Caller.
func (c *Cluster) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	return c.Answer(call.Method, call.URL)
}

// Do implements cel.HTTP.
func (c *Cluster) Do(_ context.Context, request cel.HTTPRequest) (any, error) {
	body, err := c.Answer(request.Method, request.URL)
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s %s: %w", request.Method, request.URL, err)}}
	}
	return body, nil
}

// ImageData implements rulecontext.Images.
func (c *Cluster) ImageData(_ context.Context, reference string, _ policy.Credentials) (map[string]any, error) {
	for _, i := range c.Images {
		if i.Image != reference {
			continue
		}
		data := map[string]any{
			"image": i.Image, "resolvedImage": i.ResolvedImage, "registry": i.Registry, "repository": i.Repository,
			"identifier": i.Digest, "manifest": i.Manifest, "configData": i.Config,
		}
		if i.ImageIndex != nil {
			data["imageIndex"] = i.ImageIndex
		}
		if i.Digest == "" {
			data["identifier"] = i.Tag
		}
		return data, nil
	}
	return nil, errors.New("the suite does not say what the image holds: describe it in the file of context, or give the values that the rule reads")
}

// Metadata implements cel.ImageData.
func (c *Cluster) Metadata(ctx context.Context, reference string) (map[string]any, error) {
	data, err := c.ImageData(ctx, reference, policy.Credentials{})
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{err}}
	}
	return engine.WithNames(data), nil
}
