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

// ViewPath is where the door for views stands.
const ViewPath = "/peers/view"

const (
	// viewDoor begins the labels of its MACs.
	viewDoor = "view "
	// maxTarget bounds a target, in bytes: a path, and a dozen short parameters.
	maxTarget = 8 << 10
	// maxView bounds what is shown, in bytes; base64 adds a third, as maxAnswer has it.
	maxView = 6 << 20
	// viewTimeout bounds a question for a view: a person waits for it, who would rather
	// see what the asked replica knows itself than nothing.
	viewTimeout = 2 * time.Second
)

// Viewer is what this replica shows; a ui.Handler is one.
type Viewer interface {
	// View answers a target, a path with its query, as HTTP does. Who asks has found
	// out that he may.
	View(ctx context.Context, target string) (status int, body []byte)
}

// View is what another replica shows.
type View struct {
	Status int    `json:"status"`
	Body   []byte `json:"body"`
}

// glance is the body of a question for a view.
type glance struct {
	Target string `json:"target"`
}

// ViewConfig is what a Door for views cannot do without.
type ViewConfig struct {
	// Key is the replicas' own, of at least 32 random bytes.
	Key    []byte
	Viewer Viewer
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewViewDoor makes a Door that answers what this replica shows.
func NewViewDoor(config ViewConfig) (*Door, error) {
	s, err := newSecret(config.Key, viewDoor)
	if err != nil {
		return nil, err
	}
	if config.Viewer == nil {
		return nil, errors.New("the door for views: want a viewer")
	}
	return newDoor(s, config.Now, func(ctx context.Context, e envelope, body []byte) (any, error) {
		var q glance
		if err := e.read(body, &q); err != nil {
			return nil, err
		}
		if len(q.Target) > maxTarget {
			return nil, fmt.Errorf("question of a replica: a target of %d bytes, at most %d", len(q.Target), maxTarget)
		}
		status, shown := config.Viewer.View(ctx, q.Target)
		if len(shown) > maxView {
			return nil, errBusy // who asks shows what it knows itself
		}
		return View{Status: status, Body: shown}, nil
	}), nil
}

// View asks one other replica, by its host:port, what it shows. An error means that it
// did not answer, or that nobody knows whether it was a replica that did.
func (c *Client) View(ctx context.Context, member, target string) (View, error) {
	host, _, err := net.SplitHostPort(member)
	if err != nil || dial.IsLoopbackHost(host) && !c.loopback {
		return View{}, fmt.Errorf("replica %q cannot be asked: want host:port, and not on this machine", member)
	}
	body, err := json.Marshal(glance{Target: target})
	if err != nil {
		return View{}, fmt.Errorf("question to replica %s: %w", member, err)
	}
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	var shown View
	err = c.send(ctx, c.views, member+ViewPath, body, &shown)
	return shown, err
}
