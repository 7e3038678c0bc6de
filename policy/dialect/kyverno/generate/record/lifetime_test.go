package record_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/ttl"
)

// labelled returns an object with a lifetime.
func labelled(name, generateName, uid, value string) map[string]any {
	o := object(name, generateName, map[string]any{})
	metadata := o["metadata"].(map[string]any) //nolint:forcetypeassert // made above
	metadata["labels"] = map[string]any{ttl.Label: value}
	if uid != "" {
		metadata["uid"] = uid
	}
	return o
}

// granted puts a grant for one object into another.
func granted(t *testing.T, k *record.Keeper, of, into map[string]any, at time.Time) map[string]any {
	t.Helper()
	text, err := k.Lifetime(of, "alice", at)
	if err != nil {
		t.Fatal(err)
	}
	copied := maps.Clone(into)
	metadata := maps.Clone(into["metadata"].(map[string]any)) //nolint:forcetypeassert // made above
	metadata["annotations"] = map[string]any{record.LifetimeAnnotation: text}
	copied["metadata"] = metadata
	return copied
}

func TestLifetime(t *testing.T) {
	k, now := keeper(t, 1), asked(t)
	for _, row := range []struct {
		reason   string
		of, into map[string]any
		at       time.Time
		err      error
	}{
		{"of a new object", labelled("a", "", "", "1h"), labelled("a", "", "u1", "1h"), now, nil},
		{"of a new object with a generated name", labelled("", "a-", "", "1h"), labelled("a-x1", "a-", "u1", "1h"), now, nil},
		{"of an object that exists", labelled("a", "", "u1", "1h"), labelled("a", "", "u1", "1h"), now.Add(time.Hour), nil},
		{"for another value", labelled("a", "", "u1", "1d"), labelled("a", "", "u1", "1h"), now, record.ErrForged},
		{"of another object", labelled("a", "", "", "1h"), labelled("b", "", "u2", "1h"), now, record.ErrForged},
		{"of an object of the same name before", labelled("a", "", "u0", "1h"), labelled("a", "", "u1", "1h"), now, record.ErrForged},
		{"of an earlier creation of the same name", labelled("a", "", "", "1h"), labelled("a", "", "u1", "1h"), now.Add(-time.Hour), record.ErrForged},
		{"of another prefix", labelled("", "a-", "", "1h"), labelled("b-x1", "a-", "u1", "1h"), now, record.ErrForged},
		{"of no prefix any more", labelled("", "a-", "", "1h"), labelled("a-x1", "", "u1", "1h"), now, record.ErrForged},
	} {
		by, err := k.ReadLifetime(granted(t, k, row.of, row.into, row.at))
		if !errors.Is(err, row.err) || err == nil && by != "alice" {
			t.Errorf("%s: %q, %v; want %v", row.reason, by, err, row.err)
		}
	}
	if _, err := k.ReadLifetime(labelled("a", "", "u1", "1h")); !errors.Is(err, record.ErrNone) {
		t.Errorf("without a grant: %v", err)
	}
	if _, err := keeper(t, 2).ReadLifetime(granted(t, k, labelled("a", "", "u1", "1h"), labelled("a", "", "u1", "1h"), now)); !errors.Is(err, record.ErrForged) {
		t.Errorf("under another key: %v", err)
	}
	if _, err := k.Lifetime(object("a", "", nil), "alice", now); err == nil {
		t.Error("a grant without a label")
	}
}

// TestLifetimeOfALongName: the name of a user is cut, and never makes an annotation too large.
func TestLifetimeOfALongName(t *testing.T) {
	k := keeper(t, 1)
	text, err := k.Lifetime(labelled("a", "", "u1", "1h"), strings.Repeat("é", 100_000), asked(t))
	if err != nil || len(text) > 1024 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
