package config

import "github.com/quaymaster/quaymaster/internal/strictjson"

// StatusWriting selects the policy kinds with a written status, among those that another engine
// writes as well.
type StatusWriting string

// The values; the empty one is auto.
const (
	StatusAuto   StatusWriting = "auto"
	StatusAlways StatusWriting = "always"
	StatusNever  StatusWriting = "never"
)

// UnmarshalJSON implements json.Unmarshaler: true is always, and false never.
func (s *StatusWriting) UnmarshalJSON(text []byte) error {
	choices := map[string]StatusWriting{
		`"auto"`: StatusAuto, `"always"`: StatusAlways, `"never"`: StatusNever, "true": StatusAlways, "false": StatusNever,
	}
	choice, known := choices[string(text)]
	if !known {
		return strictjson.Unfit[StatusWriting](text)
	}
	*s = choice
	return nil
}

// Wanted implements strictjson.Wanter.
func (StatusWriting) Wanted() string { return "auto, always or never" }
