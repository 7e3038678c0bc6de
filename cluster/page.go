package cluster

import (
	"context"
	"errors"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// MaxPage bounds one page of a list in bytes of JSON.
const MaxPage = 24 << 20

// Page requests a page of the list of a resource in all namespaces, as JSON. It has up to most
// objects and starts at the continue token of another page; an empty token means the beginning.
// The error is client-go's, or a *limit.ExceededError for a page that exceeds MaxPage.
func (c *Client) Page(ctx context.Context, of schema.GroupVersionResource, from string, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request := c.raw.Get().AbsPath(rootOf(of.GroupVersion()), of.Resource).SetHeader("Accept", "application/json").Param("limit", strconv.Itoa(most))
	if from != "" {
		request = request.Param("continue", from)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err := limit.ReadAll(stream, MaxPage, "a page of "+of.Resource)
	return text, errors.Join(err, stream.Close())
}

// Object requests one object as JSON, of at most 8 MiB. The error is client-go's, or a
// *limit.ExceededError.
func (c *Client) Object(ctx context.Context, of schema.GroupVersionResource, namespace, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	request := c.raw.Get().AbsPath(rootOf(of.GroupVersion())).NamespaceIfScoped(namespace, namespace != "").Resource(of.Resource).Name(name)
	stream, err := request.SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, err
	}
	text, err := limit.ReadAll(stream, maxCall, "an object of "+of.Resource)
	return text, errors.Join(err, stream.Close())
}

// rootOf is the path of the resources of a version.
func rootOf(version schema.GroupVersion) string {
	if version.Group == "" {
		return "/api/" + version.Version
	}
	return "/apis/" + version.Group + "/" + version.Version
}
