package config

import "github.com/quaymaster/quaymaster/cmd/quaymaster/config/timespan"

// Duration is a time span, written as in 30s.
type Duration = timespan.Duration
