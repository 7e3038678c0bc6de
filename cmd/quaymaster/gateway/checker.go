package gateway

import (
	"errors"

	"github.com/quaymaster/quaymaster/gateway/globals"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/mirrors"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// checker refuses broken mirrors and global context entries, and passes policies to another
// checker.
type checker struct {
	policies interface {
		Check(raw []byte) error
		Warnings(raw []byte) []string
	}
	entries *globals.Entries // nil: their documents are not checked
	// kyverno reports whether Kyverno is installed, which runs rules about other objects that are
	// invalid here. nil: it is not.
	kyverno func() bool
}

// Warnings implements admission.Checker.
func (c checker) Warnings(raw []byte) []string {
	if c.entries != nil && kinds.IsGlobalContextEntry(raw) || kinds.IsMirror(raw) {
		return nil
	}
	return c.policies.Warnings(raw)
}

// Check implements admission.Checker.
func (c checker) Check(raw []byte) error {
	switch {
	case c.entries != nil && kinds.IsGlobalContextEntry(raw):
		_, err := c.entries.Compile(raw)
		return err
	case !kinds.IsMirror(raw):
		err := c.policies.Check(raw)
		if _, is := errors.AsType[*catalog.BackgroundError](err); is && c.kyverno != nil && c.kyverno() {
			return &admission.Advice{Err: err}
		}
		return err
	}
	_, err := mirrors.Compile(raw, "the request")
	if errors.Is(err, mirror.ErrNoMapping) {
		return nil
	}
	return err
}
