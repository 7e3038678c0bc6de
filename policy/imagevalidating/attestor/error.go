package attestor

import "fmt"

// FieldError says what is wrong with a document, and where in it.
type FieldError struct {
	// Path is dotted, with indices in brackets: spec.attestors[0].cosign.key.data.
	Path string
	Err  error
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

func fail(path, format string, args ...any) error {
	return &FieldError{Path: path, Err: fmt.Errorf(format, args...)}
}

// below puts the path of a field before an error.
func below(path string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Path: path, Err: err}
}

// one wants exactly one of several ways to say a thing.
func one(path, names string, ways ...bool) error {
	said := 0
	for _, is := range ways {
		if is {
			said++
		}
	}
	if said != 1 {
		return fail(path, "want one of %s, found %d", names, said)
	}
	return nil
}

func tooLong(found, most int) error { return fmt.Errorf("%d bytes are more than %d", found, most) }

// shorten cuts a text for a message.
func shorten(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
