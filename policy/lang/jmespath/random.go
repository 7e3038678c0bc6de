package jmespath

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/internal/random"
)

// random returns a text that the regular expression matches, each choice
// equally likely.
func (e *Engine) random(a arguments) (any, error) {
	if a.text(0) == "" {
		return nil, errors.New("the pattern is empty")
	}
	if len(a.text(0)) > maxPattern {
		return nil, tooLarge("the pattern", len(a.text(0)), maxPattern)
	}
	text, err := random.Text(a.text(0), e.options.Random)
	switch {
	case errors.Is(err, random.ErrTooLong):
		return nil, fmt.Errorf("the result %w of %d characters", ErrTooLarge, random.Most)
	case err != nil:
		return nil, err
	}
	return text, nil
}
