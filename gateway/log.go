package gateway

import (
	"context"
	"errors"
	"log/slog"
)

// Warn returns a function that logs errors after which the process continues.
func Warn(log *slog.Logger, message string) func(error) {
	return func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			log.Warn(message, slog.String("error", err.Error()))
		}
	}
}
