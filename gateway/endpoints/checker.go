package endpoints

import (
	"errors"

	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/mirrors"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// Checker refuses broken mirrors and global context entries, and passes policies to another
// checker.
type Checker struct {
	Policies interface {
		Check(raw []byte) error
		Warnings(raw []byte) []string
	}
	Entries entryCompiler // nil: their documents are not checked
	// Kyverno reports whether Kyverno is installed, which runs rules about other objects that are
	// invalid here. nil: it is not.
	Kyverno func() bool
}

// entryCompiler compiles global context entries.
type entryCompiler interface {
	Compile(raw []byte) (*globalcontext.Entry, error)
}

// Warnings implements admission.Checker.
func (c Checker) Warnings(raw []byte) []string {
	if c.Entries != nil && kinds.IsGlobalContextEntry(raw) || kinds.IsMirror(raw) {
		return nil
	}
	return c.Policies.Warnings(raw)
}

// Check implements admission.Checker.
func (c Checker) Check(raw []byte) error {
	switch {
	case c.Entries != nil && kinds.IsGlobalContextEntry(raw):
		_, err := c.Entries.Compile(raw)
		return err
	case !kinds.IsMirror(raw):
		err := c.Policies.Check(raw)
		if _, is := errors.AsType[*catalog.BackgroundError](err); is && c.Kyverno != nil && c.Kyverno() {
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
