package jmespath_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func TestRoots(t *testing.T) {
	for _, c := range []struct {
		expression string
		want       string // "*" for any
		reason     string
	}{
		{"a", "a", "a name"},
		{"a.b.c", "a", "a chain of names"},
		{"a || b", "a b", "either"},
		{"a && !b", "a b", "both"},
		{"a == b.c", "a b", "a comparison"},
		{"length(a.b)", "a", "a call"},
		{"a[?b == 'x'].c", "a", "a filter reads of the list's items"},
		{"a[].b", "a", "a projection"},
		{"a | b", "a", "a pipe reads of what came before"},
		{"a.[b, c]", "a", "a list of members of a member"},
		{"[a, b]", "a b", "a list"},
		{"{x: a, y: b.c}", "a b", "a hash"},
		{"map(&b, a)", "a", "an expression on a list's items"},
		{"sort_by(a, &b)[0]", "a", "a sorted list"},
		{"@.a", "a", "the data's member"},
		{"(a || @).b", "a b", "of the data too"},
		{"(@ || a).b", "a b", "of the data first"},
		{"(@ && a) | b", "a b", "of either"},
		{"@ || a", "*", "a member in place of the data"},
		{"'a'", "", "text"},
		{"`{}`", "", "a literal"},
		{"@", "*", "the data"},
		{"length(@)", "*", "the data in a call"},
		{"keys(@)[0]", "*", "its names"},
		{"*", "*", "all members"},
		{"[@]", "*", "the data in a list"},
		{"a || @", "*", "the data in place of a member"},
	} {
		query, err := newEngine(t).Compile(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		names, all := query.Roots()
		got := strings.Join(names, " ")
		if !all {
			got = "*"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q: %s", c.expression, got, c.want, c.reason)
		}
	}
	for _, c := range []struct {
		pieces []jmespath.Piece
		all    bool
		reason string
	}{
		{[]jmespath.Piece{{Text: "a."}, {Hole: true}}, true, "a hole below a member"},
		{[]jmespath.Piece{{Text: "to_upper('"}, {Hole: true}, {Text: "')"}}, true, "a hole in a text"},
		{[]jmespath.Piece{{Text: "a_"}, {Hole: true}}, false, "a hole in the name of a member"},
	} {
		query, err := newEngine(t).CompilePieces(c.pieces)
		if err != nil {
			t.Fatal(err)
		}
		if _, all := query.Roots(); all != c.all {
			t.Errorf("%s: known %t", c.reason, all)
		}
	}
}

// late is a member that is found out when it is read.
type late struct {
	value any
	err   error
	reads int
}

func (l *late) Value() (any, error) {
	l.reads++
	return l.value, l.err
}

func TestDeferred(t *testing.T) {
	absent := &jmespath.UndefinedError{Expression: "x", Err: errors.New("is not there")}
	gone := errors.New("the ConfigMap is gone")
	for _, c := range []struct {
		expression string
		member     late
		want       any
		err        string
		reads      bool
		reason     string
	}{
		{"other", late{value: 1.0}, "o", "", false, "an unread member is not resolved"},
		{"late.x", late{value: map[string]any{"x": "y"}}, "y", "", true, "a plain path"},
		{"late.x || 'd'", late{value: map[string]any{}}, "d", "", true, "a plain path with a default"},
		{"length(late)", late{value: "abc"}, 3.0, "", true, "in a call"},
		{"@.late", late{value: "abc"}, "abc", "", true, "through the data"},
		{"length(@)", late{value: "abc"}, 2.0, "", true, "as part of the data"},
		{"late", late{err: absent}, nil, "is not there", true, "absent"},
		{"late.x", late{err: absent}, nil, "is not there", true, "absent, below"},
		{"@.late", late{err: absent}, nil, "is not there", true, "absent, and handed on"},
		{"late || 'd'", late{err: absent}, "d", "", true, "absent, and something is in its place"},
		{"to_upper(late || 'd')", late{err: absent}, "D", "", true, "absent in a call, and something is in its place"},
		{"late", late{err: gone}, nil, "is gone", true, "a failure"},
		{"@.missing", late{err: absent}, nil, "Unknown key", false, "another one is absent"},
		{"late || 'd'", late{err: gone}, nil, "is gone", true, "a failure is no absence"},
		{"to_upper(late || 'd')", late{err: gone}, nil, "is gone", true, "a failure is no absence in a call"},
		{"length(@)", late{err: gone}, nil, "is gone", true, "a failure as part of the data"},
	} {
		query, err := newEngine(t).Compile(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		member := c.member
		got, err := query.Search(map[string]any{"late": &member, "other": "o"})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %s = %v, %v; want %v: %s", c.reason, c.expression, got, err, c.want, c.err)
		}
		if (member.reads > 0) != c.reads {
			t.Errorf("%s: read %d times", c.reason, member.reads)
		}
		undefined, is := errors.AsType[*jmespath.UndefinedError](err)
		if err != nil && is != errors.Is(c.member.err, absent) || is && undefined.Expression != c.expression {
			t.Errorf("%s: undefined %v", c.reason, undefined)
		}
	}
}

// TestAllDeferred reads data of which nothing is known before.
func TestAllDeferred(t *testing.T) {
	for expression, want := range map[string]any{"@": map[string]any{"late": 1.0}, "late": 1.0, "@.late": 1.0, "values(@)[0]": 1.0} {
		query, err := newEngine(t).Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := query.Search(map[string]any{"late": &late{value: 1.0}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v, %v; want %v", expression, got, err, want)
		}
	}
}

// TestSimpleExpressionsMeanTheSame holds what needs no library against the library.
func TestSimpleExpressionsMeanTheSame(t *testing.T) {
	data := map[string]any{
		"text": "t", "empty": "", "zero": 0.0, "no": false, "yes": true, "nothing": nil,
		"list": []any{}, "object": map[string]any{"x": "y", "none": nil}, "full": []any{"a"},
	}
	for _, path := range []string{"text", "empty", "zero", "no", "yes", "nothing", "list", "full", "object", "object.x", "object.none", "object.none.x", "text.x", "missing", "missing.x", "object.missing"} {
		for _, fallback := range []string{"", " || 'd'", " || ``", " || `[1]`", " || `false`", " || text", " || object.x", " || missing", " || @", " || length(text)"} {
			simple, err := newEngine(t).Compile(path + fallback)
			if err != nil {
				continue // no JSON
			}
			library, err := newEngine(t).Compile("(@)." + path + fallback)
			if err != nil {
				t.Fatal(err)
			}
			got, err := simple.Search(data)
			want, wanted := library.Search(data)
			if !reflect.DeepEqual(got, want) || (err == nil) != (wanted == nil) {
				t.Errorf("%s%s = %v, %v; the library returns %v, %v", path, fallback, got, err, want, wanted)
			}
		}
	}
}

// selective is a member of the data that records which members of it are read.
type selective struct{ read []string }

func (s *selective) members() map[string]any {
	return map[string]any{"a": map[string]any{"b": "c"}, "list": []any{"x"}, "none": nil}
}

func (s *selective) Value() (any, error) {
	s.read = append(s.read, "whole")
	return s.members(), nil
}

func (s *selective) Member(name string) (any, bool) {
	s.read = append(s.read, name)
	value, ok := s.members()[name]
	return value, ok
}

func (s *selective) Unknown(path []string) error {
	if len(path) == 0 || path[0] == "hidden" {
		return errHidden
	}
	return nil
}

var errHidden = errors.New("hidden is not known")

// TestSelective: a query reads the members that it names and no others, and has the result
// that the whole value gives.
func TestSelective(t *testing.T) {
	for _, c := range []struct {
		expression string
		want       any
		read       []string
		err        error
	}{
		{"m.a.b", "c", []string{"a"}, nil},
		{"m.a.b || 'd'", "c", []string{"a"}, nil},
		{"m.a.x || 'd'", "d", []string{"a"}, nil},
		{"m.x || 'd'", "d", []string{"x"}, nil},
		{"m.none || 'd'", "d", []string{"none"}, nil},
		{"m | a.b", "c", []string{"a"}, nil},
		{"m.list[0]", "x", []string{"list"}, nil},
		{"m.list[] | [0]", "x", []string{"list"}, nil},
		{"[m.a.b, m.list[0], m.a]", []any{"c", "x", map[string]any{"b": "c"}}, []string{"a", "list"}, nil},
		{"{x: m.a.b}", map[string]any{"x": "c"}, []string{"a"}, nil},
		{"length(m.list[?@ == 'x'])", 1.0, []string{"list"}, nil},
		{"n", 1.0, nil, nil},
		{"m.hidden || 'd'", nil, nil, errHidden},
		{"m.hidden[0] || 'd'", nil, nil, errHidden},
		{"m", nil, nil, errHidden},
		{"length(m.*)", nil, nil, errHidden},
		{"@ | length(@)", nil, nil, errHidden},
	} {
		s := &selective{}
		query, err := newEngine(t).Compile(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		got, err := query.Search(map[string]any{"m": s, "n": 1.0})
		if !reflect.DeepEqual(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s = %v, %v", c.expression, got, err)
		}
		slices.Sort(s.read)
		if read := slices.Compact(s.read); c.err == nil && !slices.Equal(read, c.read) {
			t.Errorf("%s reads %v, want %v", c.expression, read, c.read)
		}
	}
}
