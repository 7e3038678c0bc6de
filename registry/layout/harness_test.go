package layout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
)

const (
	wantedType = "application/vnd.example.wanted+json"
	otherType  = "application/vnd.example.other"
)

func repository(t *testing.T, s string) image.Repository {
	t.Helper()
	repository, err := image.ParseRepository(s)
	if err != nil {
		t.Fatal(err)
	}
	return repository
}

// wantKind fails unless err is a registry.Error of the kind, in one line.
func wantKind(t *testing.T, err error, kind image.Kind) {
	t.Helper()
	if failure, ok := errors.AsType[*registry.Error](err); !ok || failure.Kind != kind || strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("got %v (%T), want kind %q", err, err, kind)
	}
}

func digests(list []image.Descriptor) []string {
	found := make([]string, len(list))
	for i, d := range list {
		found[i] = d.Digest.String()
	}
	slices.Sort(found)
	return found
}
