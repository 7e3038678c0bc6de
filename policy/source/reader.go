package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// MaxSources bounds the sources of one evaluation: each is a request, and the controller follows each
	// by a watch.
	MaxSources = 100
	// MaxObjects bounds the objects of one evaluation, as those that a rule generates.
	MaxObjects = 1000
	// maxHeld bounds their content in memory, in bytes: they exist at the same time.
	maxHeld = 16 << 20
)

// Reader reads the sources of one evaluation of a rule. It is not safe for concurrent use.
type Reader struct {
	from          Objects
	guard         Guard
	read          Read
	objects, held int
}

// NewReader returns a Reader; from is nil where no objects can be read.
func NewReader(from Objects, guard Guard) *Reader { return &Reader{from: from, guard: guard} }

// Read returns the sources so far, each once.
func (r *Reader) Read() Read { return r.read }

// Get returns one object; ErrMissing.
func (r *Reader) Get(ctx context.Context, of Ref) (map[string]any, error) {
	if err := r.note(of); err != nil {
		return nil, fmt.Errorf("source %s: %w", of, err)
	}
	object, err := r.from.Source(ctx, of)
	if errors.Is(err, ErrMissing) && !slices.Contains(r.read.Missing, of) {
		r.read.Missing = append(r.read.Missing, of)
	}
	if err == nil {
		err = errors.Join(checkCopied(object), r.hold(object))
	}
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", of, err)
	}
	return object, nil
}

// List returns the selected objects in the order of their names, without the tokens of service accounts.
func (r *Reader) List(ctx context.Context, of Ref) ([]map[string]any, error) {
	if err := r.note(of); err != nil {
		return nil, fmt.Errorf("sources %s: %w", of, err)
	}
	var list []map[string]any
	err := r.from.EachSource(ctx, of, func(object map[string]any) error {
		if checkCopied(object) != nil {
			return nil //nolint:nilerr // it is selected by its labels alone
		}
		list = append(list, object)
		return r.hold(object)
	})
	if err != nil {
		return nil, fmt.Errorf("sources %s: %w", of, err)
	}
	slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(place(a), place(b)) })
	return list, nil
}

// note records a source that may be read.
func (r *Reader) note(of Ref) error {
	if r.from == nil {
		return errors.New("objects of the cluster cannot be read here")
	}
	if err := r.guard.Allows(of); err != nil {
		return err
	}
	if slices.Contains(r.read.Sources, of) {
		return nil
	}
	if len(r.read.Sources) == MaxSources {
		return fmt.Errorf("the rule reads more than %d sources for one trigger", MaxSources)
	}
	r.read.Sources = append(r.read.Sources, of)
	return nil
}

func (r *Reader) hold(object map[string]any) error {
	r.objects++
	r.held += limit.Held(object, maxHeld)
	switch {
	case r.objects > MaxObjects:
		return fmt.Errorf("the rule reads more than %d objects for one trigger", MaxObjects)
	case r.held > maxHeld:
		return fmt.Errorf("the sources of the rule exceed %d bytes for one trigger", maxHeld)
	}
	return nil
}

func place(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	return namespace + "/" + name
}
