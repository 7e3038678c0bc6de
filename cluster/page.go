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

// Page asks for a part of the list of a resource in all namespaces, as JSON: up to so
// many objects, from where another page ended; empty means the beginning. The error is
// client-go's, or a *limit.ExceededError for what is larger than MaxPage.
func (c *Client) Page(ctx context.Context, of schema.GroupVersionResource, from string, most int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	at := "/apis/" + of.Group + "/" + of.Version + "/" + of.Resource
	if of.Group == "" {
		at = "/api/" + of.Version + "/" + of.Resource
	}
	request := c.raw.Get().AbsPath(at).SetHeader("Accept", "application/json").Param("limit", strconv.Itoa(most))
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
