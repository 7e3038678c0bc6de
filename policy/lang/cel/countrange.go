package cel

import (
	"fmt"
	"strconv"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// countRange are the possible values of open counts. An expression that reads some is evaluated with
// all at their lower end, and with all at their upper end. Unless it is monotonic (see trend), it
// is also evaluated for each combination of their values. If the result is always the same, that
// is the value, however the expression computes with counts.
type countRange struct {
	current int  // the number of the evaluation, from 1
	touched bool // an open count was read since it was last cleared
	upper   bool // counts that have no value yet are at their upper end, not the lower
	open    []openCount
	index   map[string]int // by call
}

type openCount struct {
	Count
	value  int64
	chosen bool
}

// begin makes ready for another evaluation.
func (w *countRange) begin() {
	w.current++
	w.touched = false
}

// pick gives an open count its value in the current world.
func (w *countRange) pick(call string, c Count) int64 {
	w.touched = true
	i, ok := w.index[call]
	if !ok {
		if w.index == nil {
			w.index = map[string]int{}
		}
		i = len(w.open)
		w.index[call] = i
		w.open = append(w.open, openCount{Count: c})
	}
	switch o := &w.open[i]; {
	case o.chosen:
		return o.value
	case w.upper:
		return o.Upper
	default:
		return o.Lower
	}
}

// decide evaluates a program in as many worlds as necessary.
func (a *Activation) decide(p *Program) (ref.Val, error) {
	w := &a.countRange
	w.open, w.index, w.upper = nil, nil, false
	w.begin()
	value, err := a.run(p)
	if len(w.open) == 0 || a.final(err) {
		return value, err
	}
	same := func() (bool, error) {
		w.begin()
		other, otherErr := a.run(p)
		if a.final(otherErr) {
			return false, otherErr
		}
		return agree(value, err, other, otherErr), nil
	}
	w.upper = true
	agreed, stop := same()
	w.upper = false
	if agreed && stop == nil && p.monotonicity == unsteady {
		agreed, stop = w.all(same)
	}
	switch {
	case stop != nil:
		return nil, stop
	case agreed:
		return value, err
	}
	return nil, w.unknown()
}

// all goes through every combination of the counts known so far, until one
// disagrees. When an evaluation meets a new count it begins anew.
func (w *countRange) all(same func() (bool, error)) (bool, error) {
	defer func() {
		for i := range w.open {
			w.open[i].chosen = false
		}
	}()
	for known := -1; known != len(w.open); {
		known = len(w.open)
		if w.combinations() > maxWorlds {
			return false, nil
		}
		for i := range w.open {
			w.open[i].value, w.open[i].chosen = w.open[i].Lower, true
		}
		for more := true; more; more = w.next(known) {
			if agreed, err := same(); !agreed || err != nil {
				return false, err
			}
			if len(w.open) != known {
				break
			}
		}
	}
	return true, nil
}

func (w *countRange) combinations() int64 {
	product := int64(1)
	for _, o := range w.open {
		if o.Upper-o.Lower >= maxWorlds || o.Upper-o.Lower < 0 {
			return maxWorlds + 1
		}
		product *= o.Upper - o.Lower + 1
		if product > maxWorlds {
			return product
		}
	}
	return product
}

// next counts up the first known values, and reports false after the last.
func (w *countRange) next(known int) bool {
	for i := range known {
		o := &w.open[i]
		if o.value < o.Upper {
			o.value++
			return true
		}
		o.value = o.Lower
	}
	return false
}

func (w *countRange) unknown() error {
	unknown := &UnknownError{}
	seen := map[string]bool{}
	for _, o := range w.open {
		for _, gap := range o.Gaps {
			if text := gap.Error(); !seen[text] {
				seen[text] = true
				unknown.Gaps = append(unknown.Gaps, gap)
			}
		}
	}
	return unknown
}

func agree(a ref.Val, aErr error, b ref.Val, bErr error) bool {
	if aErr != nil || bErr != nil {
		return aErr != nil && bErr != nil
	}
	return types.Equal(a, b) == types.True
}

// callKey identifies a call, so that the same call has the same value in a world.
func callKey(function string, arguments []ref.Val) string {
	key := []byte(function)
	for _, argument := range arguments {
		key = appendKey(key, argument)
	}
	return string(key)
}

func appendKey(key []byte, value ref.Val) []byte {
	switch v := value.(type) {
	case types.String:
		return strconv.AppendQuote(key, string(v))
	case traits.Lister:
		key = append(key, '[')
		for it := v.Iterator(); it.HasNext() == types.True; {
			key = appendKey(key, it.Next())
		}
		return append(key, ']')
	}
	return strconv.AppendQuote(key, fmt.Sprint(value.Value()))
}
