package listing

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/scan"
)

// Lister implements scan.Cluster and follow.Cluster. It is safe for concurrent use. Create one
// with New.
type Lister struct {
	client *cluster.Client
	seed   maphash.Seed // of marks
}

var _ scan.Cluster = (*Lister)(nil)

// New creates a Lister; the client is required.
func New(client *cluster.Client) (*Lister, error) {
	if client == nil {
		return nil, errors.New("listing: the client is required")
	}
	return &Lister{client: client, seed: maphash.MakeSeed()}, nil
}

// Kinds returns the kinds that can be listed, the preferred version of each first. A group whose
// discovery fails has none.
func (l *Lister) Kinds(context.Context) ([]scan.Kind, error) {
	_, lists, err := l.client.Typed.Discovery().ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	var kinds []scan.Kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // an API with an invalid name
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				kinds = append(kinds, scan.Kind{Group: version.Group, Version: version.Version, Kind: r.Kind, Resource: r.Name, Namespaced: r.Namespaced})
			}
		}
	}
	return kinds, nil
}

// List implements scan.Cluster.
func (l *Lister) List(ctx context.Context, kind scan.Kind, from string, most int) (scan.Page, error) {
	for {
		text, err := l.client.Page(ctx, resourceOf(kind), from, most)
		var exceeded *limit.ExceededError
		if errors.As(err, &exceeded) && most > 1 {
			most = (most + 1) / 2
			continue
		}
		if err != nil {
			return scan.Page{}, told(err)
		}
		return parse(text, kind)
	}
}

// told converts an error of the API server to one of package scan.
func told(err error) error {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		expired := &scan.ExpiredError{Err: err}
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			expired.Next = status.Status().Continue
		}
		return expired
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return fmt.Errorf("%w: %w", scan.ErrRefused, err)
	}
	return err
}
