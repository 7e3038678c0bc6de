// Package limit answers: how much of this may be read?
//
// Everything that comes from outside is read through it, so that more than was
// agreed is an error that says so, and never a body that was cut in silence.
package limit

import (
	"errors"
	"fmt"
	"io"
)

// ExceededError says that there was more than the bound.
type ExceededError struct {
	What string // of what, as in "manifest"
	Most int64  // the bound in bytes
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.What, e.Most)
}

// ReadAll reads r to its end, which must come within most bytes; otherwise the
// error is an *ExceededError and nothing is returned. What names the thing that is
// read. Memory stays below twice most.
func ReadAll(r io.Reader, most int64, what string) ([]byte, error) {
	if most < 0 {
		return nil, errors.New("read " + what + ": the bound is negative")
	}
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most {
		return nil, &ExceededError{What: what, Most: most}
	}
	return body, nil
}
