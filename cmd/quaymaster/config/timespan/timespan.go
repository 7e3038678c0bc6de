// Package timespan reads time spans of settings, in the syntax of Go: 30s, 72h.
package timespan

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// Duration is a time span, written as in 30s.
type Duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(text []byte) error {
	parsed, err := time.ParseDuration(strings.Trim(string(text), `"`))
	if err != nil || parsed < 0 {
		return strictjson.Unfit[Duration](text)
	}
	*d = Duration(parsed)
	return nil
}

// Wanted implements strictjson.Wanter.
func (Duration) Wanted() string { return "a duration such as 30s" }
