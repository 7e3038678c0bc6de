// Package limit bounds the size of input, and of texts in messages.
//
// All external input is read through it, so that a larger body is an error with the limit, and
// never truncated silently.
package limit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxKeyFile bounds a key's file, in bytes; RSA of 8192 bits has some 9,000.
const MaxKeyFile = 64 << 10

// ExceededError means that the input exceeds the bound.
type ExceededError struct {
	What string // the kind of input, as in "manifest"
	Most int64  // the bound in bytes
}

// Error implements error.
func (e *ExceededError) Error() string {
	return fmt.Sprintf("%s is larger than %d bytes", e.What, e.Most)
}

// ReadAll reads r to its end, which must come within most bytes; otherwise the error is an
// *ExceededError and nothing is returned. what names the input. Memory stays below twice most.
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

// ReadFile reads a file by ReadAll.
func ReadFile(name string, most int64, what string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return ReadAll(file, most, what)
}

// OpenRegular opens a regular file for reading, and nothing else: a pipe may block for ever, and a
// device may have no end. Links are followed.
func OpenRegular(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else opening a pipe awaits its writer
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: is no regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// CheckRegular refuses a path that is neither a regular file nor a folder, without opening it.
func CheckRegular(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = fmt.Errorf("%s: is no regular file", name)
	}
	return err
}

// ReadRegular reads a regular file by ReadAll.
func ReadRegular(name string, most int64, what string) ([]byte, error) {
	file, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return ReadAll(file, most, what)
}

// valueCost is the approximate memory of a decoded JSON value in addition to its text, in bytes.
const valueCost = 80

// Held returns the approximate memory of a decoded JSON value in bytes, or if that is more than
// most, any larger number.
func Held(value any, most int) int {
	size := valueCost
	switch v := value.(type) {
	case string:
		size += len(v)
	case map[string]any:
		for key, member := range v {
			size += len(key) + Held(member, most-size)
			if size > most {
				break
			}
		}
	case []any:
		for _, item := range v {
			size += Held(item, most-size)
			if size > most {
				break
			}
		}
	}
	return size
}
