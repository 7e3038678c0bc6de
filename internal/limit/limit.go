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

// valueCost is about what a value of decoded JSON takes in memory beside its text, in bytes.
const valueCost = 80

// Held returns about how many bytes of memory a value of decoded JSON takes, or where that
// is more than most, something more.
func Held(value any, most int) int {
	size := valueCost
	switch v := value.(type) {
	case string:
		size += len(v)
	case map[string]any:
		for key, member := range v {
			if size += len(key) + Held(member, most-size); size > most {
				break
			}
		}
	case []any:
		for _, item := range v {
			if size += Held(item, most-size); size > most {
				break
			}
		}
	}
	return size
}
