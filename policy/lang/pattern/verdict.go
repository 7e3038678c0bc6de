package pattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// kind is the result of matching a part of a pattern.
type kind byte

const (
	held kind = iota
	// partly means that a part holds, and that conditions skip another one: Kyverno skips both. It
	// is enough for a rule's only pattern, and not where something else is skipped for a match.
	partly
	failed
	// left means that conditions skip all elements of a list: its siblings still count.
	left
	// skipped means that a conditional anchor does not hold: its siblings do not count, up to the
	// enclosing list or equality anchor.
	skipped
	// skippedAll means that a global anchor does not hold: as skipped, but beyond the first
	// enclosing list or equality anchor up to the next.
	skippedAll
	// broken means that the match could not be evaluated.
	broken
)

// holds reports whether nothing fails, and a part holds.
func (k kind) holds() bool { return k == held || k == partly }

// verdict is one part's kind, and why if it does not hold, or not all of it.
type verdict struct {
	kind kind
	why  *reason
}

// reason is built on the way out of the object, innermost step first.
type reason struct {
	steps  []string
	anchor string // that does not hold
	want   string
	got    any
	absent bool // got is not null but not there
	err    error
	doubt  error // of a failure: in another reading it would hold
}

func fail(want string, got any) verdict {
	return verdict{failed, &reason{want: want, got: got}}
}

// doubt returns why a failure may be none; nil for a certain one.
func (v verdict) doubt() error {
	if v.kind != failed {
		return nil
	}
	return v.why.doubt
}

func breaks(err error) verdict { return verdict{broken, &reason{err: err}} }

// partly returns the verdict of a skipped part for one that has others.
func (v verdict) partly() verdict { return verdict{partly, v.why} }

// enclosed returns the verdict of a list or an equality anchor for that of what is in it.
func (v verdict) enclosed() verdict {
	switch v.kind {
	case skipped:
		v.kind = left
	case skippedAll:
		v.kind = skipped
	}
	return v
}

// under adds the key or index of a verdict.
func (v verdict) under(step string) verdict {
	if v.why != nil {
		v.why.steps = append(v.why.steps, step)
	}
	return v
}

// missing notes that the value which was judged is not there at all.
func (v verdict) missing(is bool) verdict {
	if is && v.why != nil && len(v.why.steps) == 0 {
		v.why.absent = true
	}
	return v
}

// path is as Kyverno prints it: /spec/containers/0/image/.
func (r *reason) path() string {
	var out strings.Builder
	out.WriteByte('/')
	for _, step := range slices.Backward(r.steps) {
		out.WriteString(step)
		out.WriteByte('/')
	}
	return out.String()
}

func (r *reason) String() string {
	found := "nothing"
	if !r.absent {
		found = show(r.got)
	}
	s := "expected " + r.want + ", found " + found
	if r.anchor != "" {
		s = "the condition " + r.anchor + " does not hold: " + s
	}
	return s
}

// show keeps a value readable in a message.
func show(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	case string:
		return strconv.Quote(shorten(v))
	}
	return shorten(jmespath.Text(value))
}

func shorten(s string) string {
	return limit.Text(s, maxShown)
}
