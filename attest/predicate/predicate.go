package predicate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// errAbsent: predicates are optional in in-toto v1, and each type here requires one.
var errAbsent = errors.New("the statement has no predicate")

// decode decodes the predicate of a statement of one of the types into v. It ignores unknown
// fields: producers add their own.
func decode(s attest.Statement, v any, types ...string) error {
	if !slices.Contains(types, s.PredicateType) {
		return fmt.Errorf("predicate type %q is not %s", s.PredicateType, types[0])
	}
	raw := bytes.TrimSpace(s.Predicate)
	if len(raw) == 0 || string(raw) == "null" {
		return errAbsent
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("predicate of type %s: %w", s.PredicateType, strictjson.Readable(err))
	}
	return nil
}

// required fails if a required field of the predicate is empty.
func required(s attest.Statement, field, value string) error {
	if value == "" {
		return fmt.Errorf("predicate of type %s: it has no %s", s.PredicateType, field)
	}
	return nil
}

// Value returns the predicate of any type as plain JSON: maps, slices, strings,
// numbers (float64) and booleans.
func Value(s attest.Statement) (any, error) {
	raw := bytes.TrimSpace(s.Predicate)
	if len(raw) == 0 {
		return nil, errAbsent
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("predicate of type %s: %w", s.PredicateType, err)
	}
	return value, nil
}

// Generic is cosign's predicate for content without a type of its own.
type Generic struct {
	// Data is the attached content, as text.
	Data string
	// Timestamp is the time of attaching, by the signer's clock.
	Timestamp time.Time
}

// ParseGeneric reads cosign's generic predicate v1.
func ParseGeneric(s attest.Statement) (Generic, error) {
	var wire struct {
		Data      json.RawMessage
		Timestamp string
	}
	if err := decode(s, &wire, attest.PredicateCustom); err != nil {
		return Generic{}, err
	}
	if len(wire.Data) == 0 {
		return Generic{}, required(s, "Data", "")
	}
	g := Generic{Data: string(wire.Data)}
	var text string
	if json.Unmarshal(wire.Data, &text) == nil {
		g.Data = text
	}
	if wire.Timestamp != "" {
		at, err := time.Parse(time.RFC3339, wire.Timestamp)
		if err != nil {
			return Generic{}, fmt.Errorf("predicate of type %s: Timestamp: %w", s.PredicateType, err)
		}
		g.Timestamp = at
	}
	return g, nil
}
