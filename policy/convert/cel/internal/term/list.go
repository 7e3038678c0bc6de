package term

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
)

// List is a list in the making: lists in lists, of which each element gives one of the result, if it is there.
type List struct {
	Levels []Level
	// Element is made of the last level's; nil if it is that one itself.
	Element *Term
}

// Level is a list with a name for its elements.
type Level struct {
	// Strict fails where the list is missing, Soft is empty then.
	Strict, Soft         string
	StrictRank, SoftRank Rank
	Name                 string
	Of                   shape.Shape // of the elements
	// Filter selects elements; empty for all.
	Filter string
	// Names: the elements are the names of an object's members.
	Names bool
}

// ListOf makes a list of a value that is one.
func ListOf(t Term, name string) *List {
	one := Level{Strict: t.Text, StrictRank: t.Rank, Soft: t.Text, SoftRank: t.Rank, Of: t.Shape.Element(), Name: name}
	t.List = nil
	if text, rank, ok := t.Softly("[]"); ok {
		one.Soft, one.SoftRank = text, rank
	}
	return &List{Levels: []Level{one}}
}

// Last is the element of the last level.
func (l *List) Last() Term {
	at := l.Levels[len(l.Levels)-1]
	return At(at.Name, at.Of)
}

// Each is the element of the result.
func (l *List) Each() Term {
	if l.Element != nil {
		return *l.Element
	}
	return l.Last()
}

// Clone returns a list with levels of its own.
func (l *List) Clone() *List {
	return &List{Levels: append([]Level(nil), l.Levels...), Element: l.Element}
}

// Softened is the list that is empty where the source has none.
func (l *List) Softened() *List {
	out := l.Clone()
	out.Levels[0].Strict, out.Levels[0].StrictRank = out.Levels[0].Soft, out.Levels[0].SoftRank
	return out
}

// Text writes the list.
func (l *List) Text(soft bool) (string, Rank) { return l.from(0, soft) }

func (at Level) list(soft bool) (string, Rank) {
	if soft {
		return at.Soft, at.SoftRank
	}
	return at.Strict, at.StrictRank
}

func (l *List) from(i int, soft bool) (string, Rank) {
	at := l.Levels[i]
	text, rank := at.list(soft)
	mapped := func(filter, each string) (string, Rank) {
		if filter != "" {
			filter += ", "
		}
		return Grouped(text, rank, Primary) + ".map(" + at.Name + ", " + filter + each + ")", Primary
	}
	if i < len(l.Levels)-1 {
		inner, _ := l.from(i+1, true)
		made, _ := mapped(at.Filter, inner)
		return made + ".flatten()", Primary
	}
	if l.Element != nil {
		there, _ := l.Element.Present()
		return mapped(Conjoined(at.Filter, there), l.Element.Text)
	}
	switch {
	case at.Filter == "" && at.Names:
		return mapped("", at.Name)
	case at.Filter == "":
		return text, rank
	}
	return Grouped(text, rank, Primary) + ".filter(" + at.Name + ", " + at.Filter + ")", Primary
}

// Conjoined joins conditions, of which each may be empty.
func Conjoined(all ...string) string {
	var parts []string
	for _, one := range all {
		if one != "" {
			parts = append(parts, one)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	for i, one := range parts {
		if strings.Contains(one, "||") || strings.Contains(one, " ? ") {
			parts[i] = "(" + one + ")"
		}
	}
	return strings.Join(parts, " && ")
}

// Exists writes that a condition holds for an element. A list that is missing has none if soft, and fails
// otherwise.
func (l *List) Exists(soft bool, holds func(element Term) (string, Rank)) string {
	return l.quantified(0, soft, "exists", holds)
}

// Every writes that a condition holds for every element.
func (l *List) Every(soft bool, holds func(element Term) (string, Rank)) string {
	return l.quantified(0, soft, "all", holds)
}

func (l *List) quantified(i int, soft bool, macro string, holds func(Term) (string, Rank)) string {
	at := l.Levels[i]
	text, rank := at.list(soft)
	filter := at.Filter
	var body string
	var bodyRank Rank
	if i < len(l.Levels)-1 {
		body, bodyRank = l.quantified(i+1, true, macro, holds), Primary
	} else {
		element := l.Each()
		there, _ := element.Present()
		filter = Conjoined(filter, there)
		body, bodyRank = holds(element)
	}
	switch {
	case filter == "":
	case macro == "exists":
		body = Conjoined(filter, Grouped(body, bodyRank, Relation))
	default:
		body = Not(filter) + " || " + Grouped(body, bodyRank, Relation)
	}
	return Grouped(text, rank, Primary) + "." + macro + "(" + at.Name + ", " + body + ")"
}

// Has writes that an element of the list equals a value that is sure.
func (l *List) Has(what Term, soft bool) (string, Rank) {
	last := l.Levels[len(l.Levels)-1]
	if l.Element != nil || last.Filter != "" {
		return l.Exists(soft, func(e Term) (string, Rank) { return e.In(Sum) + " == " + what.In(Sum), Relation }), Primary
	}
	if len(l.Levels) == 1 {
		text, rank := last.list(soft)
		return what.In(Sum) + " in " + Grouped(text, rank, Sum), Relation
	}
	// The last level is a list that has it, or not.
	upper := List{Levels: l.Levels[:len(l.Levels)-1]}
	return upper.Exists(soft, func(Term) (string, Rank) {
		return what.In(Sum) + " in " + Grouped(last.Soft, last.SoftRank, Sum), Relation
	}), Primary
}

// Not writes a negation.
func Not(text string) string {
	if strings.ContainsAny(text, " !") {
		return "!(" + text + ")"
	}
	return "!" + text
}
