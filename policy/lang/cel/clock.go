package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/internal/random"
)

// defaultPattern is the pattern of random() without an argument.
const defaultPattern = "[0-9a-z]{8}"

// The functions that each Activation answers itself.
const (
	nowName        = "time.now"
	randomName     = "random"
	randomLongName = "random.random"
)

// ownFunctions are declared in every environment.
func ownFunctions() map[string][]Overload {
	text := []*types.Type{types.StringType}
	return map[string][]Overload{
		nowName: {{ID: "time_now", Result: types.TimestampType}},
		randomName: {
			{ID: "random_string", Arguments: text, Result: types.StringType},
			{ID: "random_default", Result: types.StringType},
		},
		randomLongName: {
			{ID: "random_random_string", Arguments: text, Result: types.StringType},
			{ID: "random_random_default", Result: types.StringType},
		},
	}
}

// clock reads the time once, so that an evaluation sees one moment.
func (a *Activation) clock() (any, error) {
	if a.inputs.Now == nil {
		return nil, errNotSupplied(nowName)
	}
	if a.now.IsZero() {
		a.now = a.inputs.Now().UTC()
	}
	return types.Timestamp{Time: a.now}, nil
}

func (a *Activation) random(arguments []ref.Val) (any, error) {
	if a.inputs.Random == nil {
		return nil, errNotSupplied(randomName)
	}
	pattern := defaultPattern
	if len(arguments) > 0 {
		text, _ := arguments[0].(types.String)
		pattern = string(text)
	}
	return random.Text(pattern, a.inputs.Random)
}
