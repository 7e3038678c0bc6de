package function

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/internal/random"
)

// random returns a text that the regular expression matches, each choice
// equally likely.
func (l Library) random(a Arguments) (any, error) {
	if a.Text(0) == "" {
		return nil, errors.New("the pattern is empty")
	}
	if len(a.Text(0)) > MaxPattern {
		return nil, TooLarge("the pattern", len(a.Text(0)), MaxPattern)
	}
	text, err := random.Text(a.Text(0), l.Random)
	switch {
	case errors.Is(err, random.ErrTooLong):
		return nil, fmt.Errorf("the result %w of %d characters", ErrTooLarge, random.Most)
	case err != nil:
		return nil, err
	}
	return text, nil
}
