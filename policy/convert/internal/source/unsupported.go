package source

import "errors"

// Unsupported is the error for a construct that has no exact form in the language of the result.
type Unsupported struct {
	// Path is the location below the converted part, such as spec.containers[0].image.
	Path string
	// Found is the construct.
	Found string
}

// Error returns "path: found".
func (e *Unsupported) Error() string { return e.Path + ": " + e.Found }

// Located puts a path before that of an Unsupported error; other errors stay as they are.
func Located(at string, err error) error {
	if found, ok := errors.AsType[*Unsupported](err); ok {
		return &Unsupported{Path: Below(at, found.Path), Found: found.Found}
	}
	return err
}
