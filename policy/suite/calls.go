package suite

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

var (
	_ rulecontext.Lookup = (*cluster)(nil)
	_ rulecontext.Caller = (*cluster)(nil)
	_ engine.ImageReader = (*cluster)(nil)
)

// check refuses an entry that no call matches.
func (e callEntry) check() error {
	switch {
	case (e.URL == "") == (e.URLPath == ""):
		return errors.New("want one of url and urlPath")
	case e.URLPath != "" && !strings.HasPrefix(e.URLPath, "/"):
		return fmt.Errorf("urlPath %q: want an absolute path", e.URLPath)
	case e.Method != "" && !strings.EqualFold(e.Method, "GET") && !strings.EqualFold(e.Method, "POST"):
		return fmt.Errorf("method %q: want GET or POST", e.Method)
	case e.Response.Body == nil:
		return errors.New("response.body: is missing")
	}
	if e.URL != "" {
		if u, err := url.Parse(e.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("url %q: want https://host[/path]", e.URL)
		}
	}
	return nil
}

// answer returns the response to a call. An entry with a method precedes one without.
func (c *cluster) answer(method, address string) (any, error) {
	var found *callEntry
	for i := range c.calls {
		e := &c.calls[i]
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
func (c *cluster) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	body, err := c.answer(call.Method, call.Path)
	if !errors.Is(err, errNoAnswer) || call.Method != http.MethodGet {
		return body, err
	}
	return c.read(ctx, call.Path)
}

// read reads a path of the Kubernetes API from the objects.
func (c *cluster) read(ctx context.Context, path string) (any, error) {
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
	if len(parts) > 2 || query != "" || !c.knows(ref.Group, parts[0]) {
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

// knows reports whether the suite has an object of a resource, so that a list of them counts as
// complete.
func (c *cluster) knows(group, resource string) bool {
	for _, o := range c.objects {
		if o.Group() == group && c.nameOf(group, o.Kind()) == resource {
			return true
		}
	}
	return false
}

// Service implements rulecontext.Caller.
func (c *cluster) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	return c.answer(call.Method, call.URL)
}

// Do implements cel.HTTP.
func (c *cluster) Do(_ context.Context, request cel.HTTPRequest) (any, error) {
	body, err := c.answer(request.Method, request.URL)
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s %s: %w", request.Method, request.URL, err)}}
	}
	return body, nil
}

// imageData is the suite's data of an image.
type imageData struct {
	Image         string `json:"image"`
	ResolvedImage string `json:"resolvedImage"`
	Registry      string `json:"registry"`
	Repository    string `json:"repository"`
	Tag           string `json:"tag"`
	Digest        string `json:"digest"`
	ImageIndex    any    `json:"imageIndex"`
	Manifest      any    `json:"manifest"`
	Config        any    `json:"config"`
}

// ImageData implements rulecontext.Images.
func (c *cluster) ImageData(_ context.Context, reference string, _ policy.Credentials) (map[string]any, error) {
	for _, i := range c.images {
		if i.Image != reference {
			continue
		}
		data := map[string]any{
			"image": i.Image, "resolvedImage": i.ResolvedImage, "registry": i.Registry, "repository": i.Repository,
			"identifier": i.Digest, "manifest": i.Manifest, "configData": i.Config, "imageIndex": i.ImageIndex,
		}
		if i.Digest == "" {
			data["identifier"] = i.Tag
		}
		return data, nil
	}
	return nil, errors.New("the suite does not say what the image holds: describe it in the file of context, or give the values that the rule reads")
}

// Metadata implements cel.ImageData.
func (c *cluster) Metadata(ctx context.Context, reference string) (map[string]any, error) {
	data, err := c.ImageData(ctx, reference, policy.Credentials{})
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{err}}
	}
	return engine.WithNames(data), nil
}
