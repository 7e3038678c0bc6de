package globalcontext

import (
	"context"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Expressions answers globalContext.Get of expressions in CEL from a Store.
type Expressions struct{ Store *Store }

var _ cel.GlobalContext = Expressions{}

// Get implements cel.GlobalContext. An unknown value is a *cel.UnknownError, also that of
// a missing entry or projection: it may appear at any time.
func (e Expressions) Get(_ context.Context, name, projection string) (any, error) {
	value, err := e.Store.GetNative(name, projection)
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{err}}
	}
	return value, nil
}
