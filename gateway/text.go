package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Shorten bounds a text that may be from an untrusted author, in bytes.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// MaxStatusMessage bounds the message of a condition, in bytes; the bound of the API is 32,768.
const MaxStatusMessage = 4 << 10

// Recovered converts the value of recover() to an error: a document that makes its compiler panic
// is broken, and does not end the process. err is returned if there was no panic.
func Recovered(err error, panicked any) error {
	if panicked != nil {
		return fmt.Errorf("internal error, which is a defect: %v", panicked)
	}
	return err
}

// Warn returns a function that logs errors after which the process continues.
func Warn(log *slog.Logger, message string) func(error) {
	return func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Warn(message, slog.String("error", err.Error()))
		}
	}
}
