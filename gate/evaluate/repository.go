package evaluate

import (
	"context"
	"errors"
	"sync"

	"github.com/quaymaster/quaymaster/image"
)

// repository is an evidence repository.
type repository struct {
	name image.Repository
	open func(context.Context, image.Repository) (Registry, error) // nil: registry is set
	// isFallback: facts of an earlier repository may be cached for the same query, and this
	// repository's facts are added to them.
	isFallback bool
	// rest reports that a registry did not answer recently; nil: unknown.
	rest func(registry string) (why string, resting bool)

	once     sync.Once
	registry Registry
	err      error
}

// session returns the registry with the credentials for the repository.
func (r *repository) session(ctx context.Context) (Registry, error) {
	if r.rest != nil {
		if why, resting := r.rest(r.name.Registry()); resting {
			return nil, &image.Error{Kind: image.Unavailable, Op: "look for evidence in", On: r.name.String(), Err: errors.New(why)}
		}
	}
	if r.open != nil {
		r.once.Do(func() { r.registry, r.err = r.open(ctx, r.name) })
	}
	return r.registry, r.err
}
