package globalcontext

import (
	"context"

	"github.com/quaymaster/quaymaster/policy/cel"
)

// Expressions answers globalContext.Get of expressions in CEL from a Store.
type Expressions struct{ Store *Store }

var _ cel.GlobalContext = Expressions{}

// Get implements cel.GlobalContext. What is not known is a *cel.UnknownError, an
// entry or projection that is not there included: it may be there in a moment.
func (e Expressions) Get(_ context.Context, name, projection string) (any, error) {
	value, err := e.Store.GetNative(name, projection)
	if err != nil {
		return nil, &cel.UnknownError{Gaps: []error{err}}
	}
	return value, nil
}
