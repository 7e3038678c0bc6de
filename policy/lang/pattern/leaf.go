package pattern

import (
	"errors"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
)

// leaf is a pattern that is neither object nor list. Of a list every element
// must match it.
type leaf struct{ *comparison.Comparison }

func newLeaf(pattern any) (node, error) {
	c, err := comparison.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return leaf{c}, nil
}

// newFilled is newLeaf for a pattern in which parts are comparison.Literal.
func newFilled(pattern any) (node, error) {
	c, err := comparison.CompileFilled(pattern)
	if err != nil {
		return nil, err
	}
	return leaf{c}, nil
}

func (l leaf) match(r *run, value any) verdict {
	elements, ok := value.([]any)
	if !ok {
		return l.one(r, value)
	}
	for _, element := range elements {
		if v := l.one(r, element); v.kind != held {
			return v
		}
	}
	return verdict{}
}

func (l leaf) one(r *run, value any) verdict {
	switch ok, err := l.Holds(&r.budget, value); {
	case errors.Is(err, comparison.ErrIndeterminate):
		v := fail(source(l.Source()), value)
		v.why.doubt = err
		return v
	case err != nil:
		return breaks(err)
	case !ok:
		return fail(source(l.Source()), value)
	}
	return verdict{}
}

// isStar reports whether a pattern is `*`: as the value of a key it requires any value but null,
// also an object or a list.
func isStar(r *run, n node) bool {
	if slot, ok := n.(filled); ok {
		n = r.filled[slot]
	}
	l, ok := n.(leaf)
	return ok && l.Star()
}

// source writes a pattern in a message.
func source(pattern any) string {
	if s, ok := pattern.(string); ok {
		return shorten(strconv.Quote(s))
	}
	return shorten(jmespath.Text(pattern))
}
