package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/source"
)

// The objects that rules copy are listed and watched, by their name if the rule names one: a role may name the
// object, and get on Secrets, which the gateway has for pull secrets, is no permission to copy them.

// Source implements background.Sources.
func (c *apiServer) Source(ctx context.Context, of source.Ref) (map[string]any, error) {
	var found map[string]any
	err := c.EachSource(ctx, of, func(object map[string]any) error {
		found = object
		return nil
	})
	if err == nil && found == nil {
		err = source.ErrMissing
	}
	return found, err
}

// EachSource implements background.Sources.
func (c *apiServer) EachSource(ctx context.Context, of source.Ref, do func(object map[string]any) error) error {
	kind, err := c.kindOfSource(ctx, of)
	if err != nil {
		return err
	}
	_, err = c.pages(ctx, kind, scopeOf(of), do)
	if err != nil && errors.Is(err, background.ErrNotFound) {
		return fmt.Errorf("the API server does not serve it: %v", err) //nolint:errorlint // a list that is not found is no empty one
	}
	return err
}

// WatchSource implements background.Sources.
func (c *apiServer) WatchSource(ctx context.Context, of source.Ref, to background.Sink) {
	for pause := gateway.WatchPause; ; pause = min(2*pause, gateway.MaxWatchPause) {
		kind, err := c.kindOfSource(ctx, of)
		if err == nil {
			c.watch(ctx, kind, scopeOf(of), to)
			return
		}
		to.Failed(err)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func scopeOf(of source.Ref) scope {
	return scope{namespace: of.Namespace, name: of.Name, labels: of.Labels}
}

// kindOfSource returns the kind of a source that may be read.
func (c *apiServer) kindOfSource(ctx context.Context, of source.Ref) (background.Kind, error) {
	if of.IsSecret() && of.Namespace == c.own {
		return background.Kind{}, fmt.Errorf("the Secrets of namespace %s are the gateway's own, and are not copied", of.Namespace)
	}
	var kind background.Kind
	var err error
	if of.Kind != "" {
		kind, err = c.Kind(ctx, policy.ObjectKind{APIVersion: of.APIVersion, Kind: of.Kind})
	} else {
		kind, err = c.kindNamed(of.APIVersion, of.Resource)
	}
	switch {
	case err != nil:
		return background.Kind{}, err
	case !kind.Namespaced && of.Namespace != "":
		return background.Kind{}, fmt.Errorf("%s are in no namespace, and the rule names one", kind.Resource)
	case kind.Namespaced && of.Namespace == "" && of.Name != "":
		return background.Kind{}, fmt.Errorf("%s are in namespaces, and the rule names none", kind.Resource)
	}
	return kind, nil
}

// kindNamed returns the kind of a resource.
func (c *apiServer) kindNamed(apiVersion, resource string) (background.Kind, error) {
	list, err := c.list()
	if err != nil {
		return background.Kind{}, err
	}
	for _, r := range list {
		if kind := kindOf(r); kind.Resource == resource && kind.APIVersion() == apiVersion {
			return kind, nil
		}
	}
	return background.Kind{}, fmt.Errorf("%s %s: %w", apiVersion, resource, background.ErrNotServed)
}
