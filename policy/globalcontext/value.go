package globalcontext

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// value builds a value from the decoded JSON, with its projections.
func (e *Entry) value(native any) (*value, error) {
	v := &value{native: native, size: Size(native), projected: make(map[string]projected, len(e.projections))}
	if v.size > MaxValue {
		return nil, fmt.Errorf("%d bytes exceed the bound of %d", v.size, MaxValue)
	}
	var err error
	v.plain, err = jmespath.Normalize(native)
	if err != nil {
		return nil, err
	}
	for _, p := range e.projections {
		made, err := p.query.Search(v.plain)
		if err == nil && made == nil {
			err = errors.New("it is null")
		}
		v.projected[p.name] = projected{made, err}
		v.size += Size(made)
	}
	if v.size > MaxValue {
		return nil, fmt.Errorf("%d bytes with projections exceed the bound of %d", v.size, MaxValue)
	}
	return v, nil
}

// Size is about how many bytes a value takes as JSON; it stops counting beyond
// MaxValues.
func Size(of any) int {
	size := 0
	measure(of, &size)
	return size
}

func measure(of any, size *int) {
	if *size > MaxValues {
		return
	}
	switch v := of.(type) {
	case string:
		*size += len(v) + 2
	case []any:
		*size += 2
		for _, item := range v {
			*size++
			measure(item, size)
		}
	case map[string]any:
		*size += 2
		for key, item := range v {
			*size += len(key) + 4
			measure(item, size)
		}
	default:
		*size += 8
	}
}
