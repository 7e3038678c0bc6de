package signing

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
)

// session reads the images of a stage under the names that objects use.
type session struct {
	stage  *Stage
	client *registry.Client
	meter  *registry.Meter
}

// place returns the registry's repository for a repository of the objects.
func (s session) place(repository image.Repository) (image.Repository, error) {
	place, ok := s.stage.places[repository]
	if !ok {
		return place, notThere("look up", repository.String())
	}
	return place, nil
}

func notThere(op, on string) error {
	return &image.Error{Kind: image.NotFound, Op: op, On: on, Err: errors.New("the suite describes no such image")}
}

// Resolve implements gate.Resolver.
func (s session) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	place, err := s.place(ref.Repository())
	if err != nil {
		return image.Pinned{}, err
	}
	found, err := s.client.Resolve(ctx, ref.At(place))
	if image.KindOf(err) == image.NotFound {
		return image.Pinned{}, notThere("resolve", ref.String())
	}
	if err != nil {
		return image.Pinned{}, err
	}
	return ref.Pin(found.Descriptor())
}

// Describe implements gate.Resolver.
func (s session) Describe(ctx context.Context, pinned image.Pinned) (image.Pinned, error) {
	place, err := s.place(pinned.Repository())
	if err != nil {
		return image.Pinned{}, err
	}
	found, err := s.client.Describe(ctx, pinned.At(place))
	if err != nil {
		return image.Pinned{}, err
	}
	return pinned.Ref().Pin(found.Descriptor())
}

// Manifest implements attest.Fetcher.
func (s session) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	place, err := s.place(repository)
	if err != nil {
		return image.Descriptor{}, nil, err
	}
	return s.client.Manifest(ctx, place, reference)
}

// Blob implements attest.Fetcher.
func (s session) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	place, err := s.place(repository)
	if err != nil {
		return nil, err
	}
	return s.client.Blob(ctx, place, blob, most)
}

// Referrers implements attest.Fetcher.
func (s session) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	place, err := s.place(repository)
	if err != nil {
		return nil, err
	}
	return s.client.Referrers(ctx, place, digest, artifactTypes)
}

// Scope implements gate.Session: there are no credentials.
func (session) Scope() string { return "" }

// Cost implements gate.Session.
func (s session) Cost() gate.Cost {
	return gate.Cost{Requests: s.meter.Requests(), CountedPulls: s.meter.Pulls(), Bytes: s.meter.Bytes(), RateLimitRemaining: -1}
}
