package gate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// TestUnfinished: the reason for an image that was begun and not evaluated in time names its registry. One
// that was not begun waited for others, and no registry is the cause.
func TestUnfinished(t *testing.T) {
	for _, row := range []struct {
		reason, written string
		begun           bool
		names           string
	}{
		{"begun", "ghcr.io/shop/web:1", true, "ghcr.io"},
		{"begun, by a short name", "nginx:1.27", true, "docker.io"},
		{"not begun", "ghcr.io/shop/web:1", false, ""},
	} {
		e := &imageEvaluation{ref: image.MustParse(row.written)}
		e.begun.Store(row.begun)
		err := e.unfinished()
		if errors.Is(err, context.DeadlineExceeded) != row.begun || errors.Is(err, policy.ErrCrowdedOut) == row.begun || !strings.Contains(err.Error(), row.names) {
			t.Errorf("%s: %v, want %q in it", row.reason, err, row.names)
		}
	}
}
