package evaluate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// side is a fake registry at a target or at the source.
type side struct {
	Registry
	isDown bool
	reads  int
}

func (s *side) Manifest(context.Context, image.Repository, string) (image.Descriptor, []byte, error) {
	_, err := s.Blob(context.Background(), image.Repository{}, image.Descriptor{}, 0)
	return image.Descriptor{}, nil, err
}

func (s *side) Blob(context.Context, image.Repository, image.Descriptor, int64) ([]byte, error) {
	s.reads++
	if s.isDown {
		return nil, errors.New("it is down")
	}
	return nil, nil
}

// TestContentAtTargets: where a target's answer for the tag counts, manifests and blobs are read
// there, and at the source only where the route falls back to it.
func TestContentAtTargets(t *testing.T) {
	for _, c := range []struct {
		reason                 string
		otherwise              mirror.Otherwise
		target, mirror, source bool // those that are up
		reads                  [3]int
		isRead                 bool
	}{
		{"the target is up", mirror.Deny, true, true, false, [3]int{2, 0, 0}, true},
		{"the second target is up", mirror.Deny, false, true, false, [3]int{2, 2, 0}, true},
		{"only the source is up, and counts", mirror.UseSource, false, false, true, [3]int{2, 2, 2}, true},
		{"only the source is up, and does not count", mirror.Deny, false, false, true, [3]int{2, 2, 0}, false},
		{"all are down", mirror.UseSource, false, false, false, [3]int{2, 2, 2}, false},
	} {
		first, second, source := &side{isDown: !c.target}, &side{isDown: !c.mirror}, &side{isDown: !c.source}
		sides := map[string]*side{"target.example/app": first, "mirror.example/app": second}
		route := &mirror.Route{Otherwise: c.otherwise}
		for _, name := range []string{"target.example/app:1", "mirror.example/app:1"} {
			route.Candidates = append(route.Candidates, mirror.Candidate{Ref: parse(t, name)})
		}
		open := func(_ context.Context, repository image.Repository) (redirect.Session, error) {
			return sides[repository.String()], nil
		}
		read := imageContent{
			Evaluator: newEvaluator(t, time.Now), registry: source,
			target: &Target{Pending: (*redirect.Chooser)(nil).Pending(redirect.Request{Route: route, Open: open})},
		}
		_, _, errManifest := read.Manifest(t.Context(), parse(t, "registry.example/app").Repository(), digestOf(t, "a").String())
		_, errBlob := read.Blob(t.Context(), parse(t, "registry.example/app").Repository(), image.Descriptor{}, 1)
		if (errManifest == nil) != c.isRead || (errBlob == nil) != c.isRead || [3]int{first.reads, second.reads, source.reads} != c.reads {
			t.Errorf("%s: %v, %v after %d, %d and %d reads", c.reason, errManifest, errBlob, first.reads, second.reads, source.reads)
		}
	}
}
