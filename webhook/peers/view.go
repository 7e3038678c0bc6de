package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/dial"
)

// ViewPath is the path of the endpoint for views.
const ViewPath = "/peers/view"

const (
	// viewPrefix is the prefix of the labels of its MACs.
	viewPrefix = "view "
	// maxTarget bounds a target, in bytes: a path, and a dozen short parameters.
	maxTarget = 8 << 10
	// maxView bounds a view, in bytes. Base64 adds a third, which maxAnswer includes.
	maxView = 6 << 20
	// viewTimeout bounds a request for a view. A person waits for it; after the timeout, the
	// requesting replica shows its own data instead.
	viewTimeout = 2 * time.Second
)

// Viewer returns the dashboard data of this replica. A ui.Handler implements it.
type Viewer interface {
	// View returns the HTTP response for a target, a path with its query. The requesting replica
	// has authorised the user.
	View(ctx context.Context, target string) (status int, body []byte)
}

// View is the dashboard data of another replica.
type View struct {
	Status int    `json:"status"`
	Body   []byte `json:"body"`
}

// viewRequest is the body of a request for a view.
type viewRequest struct {
	Target string `json:"target"`
}

// ViewConfig holds the required settings of a Handler for views.
type ViewConfig struct {
	// Key is the replicas' shared key, at least 32 random bytes.
	Key    []byte
	Viewer Viewer
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewViewHandler makes a Handler that serves this replica's views.
func NewViewHandler(config ViewConfig) (*Handler, error) {
	s, err := newSecret(config.Key, viewPrefix)
	if err != nil {
		return nil, err
	}
	if config.Viewer == nil {
		return nil, errors.New("peers: a viewer is required")
	}
	return newHandler(s, config.Now, func(ctx context.Context, e signedHeader, body []byte) (any, error) {
		var q viewRequest
		if err := e.read(body, &q); err != nil {
			return nil, err
		}
		if len(q.Target) > maxTarget {
			return nil, fmt.Errorf("request of a replica: a target of %d bytes, at most %d", len(q.Target), maxTarget)
		}
		status, shown := config.Viewer.View(ctx, q.Target)
		if len(shown) > maxView {
			return nil, errBusy // the requesting replica shows its own data
		}
		return View{Status: status, Body: shown}, nil
	}), nil
}

// View requests a view from another replica by its host:port. An error means that the replica did
// not answer or that the response could not be authenticated.
func (c *Client) View(ctx context.Context, member, target string) (View, error) {
	host, _, err := net.SplitHostPort(member)
	if err != nil || dial.IsLoopbackHost(host) && !c.loopback {
		return View{}, fmt.Errorf("replica %q: must be host:port of another host", member)
	}
	body, err := json.Marshal(viewRequest{Target: target})
	if err != nil {
		return View{}, fmt.Errorf("request to replica %s: %w", member, err)
	}
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	var shown View
	err = c.send(ctx, c.views, member+ViewPath, body, &shown)
	return shown, err
}
