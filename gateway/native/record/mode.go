package record

import "github.com/quaymaster/quaymaster/internal/strictjson"

// Mode says which policies the API server evaluates. The empty mode leaves native policies alone.
type Mode string

// The modes. Off removes all native policies; Requested is for policies that ask for one by a field of their own; Auto is
// for all that can be converted.
const (
	Off       Mode = "off"
	Requested Mode = "requested"
	Auto      Mode = "auto"
)

// UnmarshalJSON implements json.Unmarshaler. In YAML 1.1 off without quotes is false.
func (m *Mode) UnmarshalJSON(text []byte) error {
	modes := map[string]Mode{`""`: "", `"off"`: Off, "false": Off, `"requested"`: Requested, `"auto"`: Auto}
	mode, known := modes[string(text)]
	if !known {
		return strictjson.Unfit[Mode](text)
	}
	*m = mode
	return nil
}

// Wanted implements strictjson.Wanter.
func (Mode) Wanted() string { return "off, requested or auto" }
