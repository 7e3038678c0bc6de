package cel

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
)

// TestTheLastThatIsPaidFor: a budget can be spent to the last unit, and not beyond.
func TestTheLastThatIsPaidFor(t *testing.T) {
	s := trendScope(t)
	p, err := s.Compile("e", "true")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason      string
		cost, spent uint64 // before
		pay         func(*Activation) error
		paid        bool
	}{
		{"the last call", cost.MaxCost - 3, 0, func(a *Activation) error { return (*meter)(a).Charge(3) }, true},
		{"one call more", cost.MaxCost - 3, 0, func(a *Activation) error { return (*meter)(a).Charge(4) }, false},
		{"the last step of a loop", cost.MaxCost - 1, 0, stepOf, true},
		{"one step more", cost.MaxCost, 0, stepOf, false},
		{"the last expression", 0, maxTotalCost - p.step, func(a *Activation) error { _, err := a.run(p); return err }, true},
		{"one expression more", 0, maxTotalCost - p.step + 1, func(a *Activation) error { _, err := a.run(p); return err }, false},
	} {
		a := s.NewActivation(Inputs{})
		a.ctx, a.cost, a.spent, a.step = t.Context(), c.cost, c.spent, 1
		err := c.pay(a)
		if _, exceeded := errors.AsType[*BudgetError](err); (err == nil) != c.paid || err != nil && !exceeded {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func stepOf(a *Activation) error {
	if a.interrupted() {
		return &BudgetError{}
	}
	return nil
}

// TestFinal: after which error nothing more can be evaluated.
func TestFinal(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	fault := errors.New("no such key")
	for _, c := range []struct {
		reason string
		a      Activation
		err    error
		want   bool
	}{
		{"an answer", Activation{ctx: t.Context()}, nil, false},
		{"an answer at the very end", Activation{ctx: ended}, nil, false},
		{"a fault of the expression", Activation{ctx: t.Context()}, fault, false},
		{"it cost too much", Activation{ctx: t.Context(), exceeded: true}, fault, true},
		{"a fault when all is spent", Activation{ctx: t.Context(), spent: maxTotalCost}, fault, false},
		{"more than that is", Activation{ctx: t.Context(), spent: maxTotalCost + 1}, fault, true},
		{"the time is over", Activation{ctx: ended}, fault, true},
	} {
		if got := c.a.final(c.err); got != c.want {
			t.Errorf("%s: %t", c.reason, got)
		}
	}
}

// TestItems: a list that is gone through has its items, and none behind the last.
func TestItems(t *testing.T) {
	it := (&list{[]any{"a"}}).Iterator()
	if item := it.Next(); item == nil || item.Value() != "a" {
		t.Errorf("the first is %v", item)
	}
	if item := it.Next(); item != nil {
		t.Errorf("there is %v behind the last", item)
	}
	if _, err := it.ConvertToNative(nil); err == nil {
		t.Error("it became something else")
	}
	for _, c := range []struct {
		reason string
		value  ref.Val
		want   any // nil: an error
	}{
		{"the first item", (&list{[]any{"a", "b"}}).Get(types.Int(0)), "a"},
		{"the last", (&list{[]any{"a", "b"}}).Get(types.Int(1)), "b"},
		{"the one behind it", (&list{[]any{"a", "b"}}).Get(types.Int(2)), nil},
		{"the one before the first", (&list{[]any{"a", "b"}}).Get(types.Int(-1)), nil},
		{"a member", (&object{map[string]any{"a": "b"}}).Get(types.String("a")), "b"},
		{"no member", (&object{map[string]any{"a": "b"}}).Get(types.String("b")), nil},
		{"no name", (&object{map[string]any{"": "b"}}).Get(types.Int(0)), nil},
	} {
		if c.value == nil || types.IsError(c.value) != (c.want == nil) || c.want != nil && c.value.Value() != c.want {
			t.Errorf("%s: %v", c.reason, c.value)
		}
	}
	for name, want := range map[ref.Val]bool{types.String(""): true, types.String("a"): false, types.Int(0): false} {
		if value, found := (&object{map[string]any{"": "b"}}).Find(name); found != want {
			t.Errorf("%v: %v", name, value)
		}
	}
	if same := (libraryContext{is: httpType()}).Equal(types.String("http")); same != types.False {
		t.Errorf("a text is the library: %v", same)
	}
}

// TestLoopsStop: a loop that calls nothing stops where the cost is spent or the time is
// over, and not at its end.
func TestLoopsStop(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, c := range []struct {
		reason, expression string
		ctx                context.Context
		most               uint64 // times the step
		over               bool
	}{
		{"a short one", "object.l.all(a, object.a)", t.Context(), 1002, false},
		{"a long one", "object.l.all(a, object.l.all(b, object.a))", t.Context(), 0, true},
		{"the time is over", "n('a') > 0 && object.l.all(a, object.a)", ended, 200, true},
	} {
		s := trendScope(t)
		p, err := s.Compile("e", c.expression)
		if err != nil {
			t.Fatal(err)
		}
		a := s.NewActivation(Inputs{
			Variables: map[string]any{"object": map[string]any{"a": true, "l": make([]any, 1000)}},
			Functions: map[string]Call{"n": func(context.Context, []ref.Val) (any, error) { cancel(); return int64(1), nil }},
		})
		held, err := p.Bool(c.ctx, a)
		most := c.most * p.step
		if c.most == 0 {
			most = cost.MaxCost + 2*p.step // a step of each loop
		}
		if held == c.over || (err != nil) != c.over || a.spent > most {
			t.Errorf("%s: %t %v; it cost %d, want at most %d", c.reason, held, err, a.spent, most)
		}
	}
}

// TestNothingMoreIsEvaluated: once the budget or the time is over, no other world is looked
// at, however open the counts are.
func TestNothingMoreIsEvaluated(t *testing.T) {
	const open = "n('a') != 5"
	for _, c := range []struct {
		reason, expression string
		spent              uint64 // before
		cancels            bool
		calls              int
		over               bool
	}{
		{reason: "an expression that costs little", expression: open, calls: 5},
		{reason: "one that costs too much", expression: open + " && lists.range(1000).all(a, lists.range(1000).all(b, true))", calls: 1, over: true},
		{reason: "one that costs too much in another world", expression: "n('a') > 0 && lists.range(1000).all(a, lists.range(1000).all(b, true))", calls: 2, over: true},
		{reason: "one that costs more than is left", expression: open + " && object.missing", spent: maxTotalCost, calls: 1, over: true},
		{reason: "one that exceeds its time", expression: open, cancels: true, calls: 1, over: true},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s, calls := trendScope(t), 0
		p, err := s.Compile("e", c.expression)
		if err != nil {
			t.Fatal(err)
		}
		a := s.NewActivation(Inputs{
			Variables: map[string]any{"object": map[string]any{}},
			Functions: map[string]Call{"n": func(context.Context, []ref.Val) (any, error) {
				calls++
				if c.cancels {
					cancel()
				}
				return Count{Upper: 2, Gaps: []error{context.DeadlineExceeded}}, nil
			}},
		})
		a.spent = c.spent
		held, err := p.Bool(ctx, a)
		_, dear := errors.AsType[*BudgetError](err)
		if stopped := dear || errors.Is(err, context.Canceled); calls != c.calls || held == c.over || stopped != c.over {
			t.Errorf("%s: %d calls, want %d; %t %v", c.reason, calls, c.calls, held, err)
		}
		cancel()
	}
}

// TestFieldNames: what may be named beside a type's fields.
func TestFieldNames(t *testing.T) {
	for _, c := range []struct {
		reason, name string
		patches      bool
		want         []string
		known        bool
	}{
		{"a type of ours", "libs.Exception", false, []string{"allowedImages", "allowedValues"}, true},
		{"one of the language", "google.protobuf.Int32Value", false, []string{"value"}, true},
		{"one that is made", "Object", true, nil, true},
		{"and is not", "Object", false, nil, false},
		{"none", "Other", true, nil, false},
	} {
		e, err := NewEnv(Options{Patches: c.patches})
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.NewScope()
		if err != nil {
			t.Fatal(err)
		}
		names, known := s.cel.CELTypeProvider().FindStructFieldNames(c.name)
		if !slices.Equal(names, c.want) || known != c.known {
			t.Errorf("%s: %q %t", c.reason, names, known)
		}
	}
}

// TestVariablesAreReadByName: what holds the variables is read by a name that is a text, and
// nothing else is taken for it.
func TestVariablesAreReadByName(t *testing.T) {
	s := trendScope(t)
	if err := s.Declare("v", "broken", "object.missing"); err != nil {
		t.Fatal(err)
	}
	a := s.NewActivation(Inputs{Variables: map[string]any{"object": map[string]any{"a": true}}})
	a.ctx = t.Context()
	own := (*variables)(a)
	for _, c := range []struct {
		reason, name string
		of           any
		set, read    bool
	}{
		{"a variable", "steady", own, true, true},
		{"one that has no value", "broken", own, true, false},
		{"of a text", "steady", "text", false, false},
		{"of nothing", "steady", nil, false, false},
	} {
		field := s.fields[c.name]
		if set := field.IsSet(c.of); set != c.set {
			t.Errorf("%s: is there: %t", c.reason, set)
		}
		if value, err := field.GetFrom(c.of); (err == nil) != c.read {
			t.Errorf("%s: %v %v", c.reason, value, err)
		}
	}
	for _, c := range []struct {
		reason    string
		name      ref.Val
		set, read bool
	}{
		{"a name", types.String("steady"), true, true},
		{"another name", types.String("other"), false, false},
		{"no name", types.Int(0), false, false},
	} {
		if set := own.IsSet(c.name); (set == types.True) != c.set || (c.name.Type() == types.IntType) != types.IsError(set) {
			t.Errorf("%s: is there: %v", c.reason, set)
		}
		if value := own.Get(c.name); types.IsError(value) == c.read {
			t.Errorf("%s: %v", c.reason, value)
		}
	}
}

// TestNoOtherForm: the types of this package cannot be converted to others.
func TestNoOtherForm(t *testing.T) {
	for _, value := range []ref.Val{&variables{}, libraryContext{is: httpType()}, groupVersionResource{}} {
		if form, err := value.ConvertToNative(reflect.TypeFor[string]()); err == nil {
			t.Errorf("%T became %v", value, form)
		}
		if form := value.ConvertToType(types.StringType); !types.IsError(form) {
			t.Errorf("%T became %v", value, form)
		}
	}
}
