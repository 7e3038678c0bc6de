package gateway

import (
	"context"
	"errors"
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

// Warn returns a function that logs errors after which the process continues.
func Warn(log *slog.Logger, message string) func(error) {
	return func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Warn(message, slog.String("error", err.Error()))
		}
	}
}
