package condition

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

// set writes a set operator: whether one or all of the keys are in the value, or not.
func (c compiler) set(name string, key, value term.Term) (result, error) {
	negated := strings.Contains(name, "Not")
	switch {
	case key.Fixed != nil && value.Fixed != nil:
		return result{}, refuse("a condition of constants")
	case key.Fixed != nil:
		return c.fixedIn(key, value, negated)
	}
	if c.use == demands && (name == "In" || name == "NotIn") && key.List != nil && !oldSet(key.List.Each(), value) {
		return result{}, refuse("%s of a list, which takes wildcards as letters in other versions", name)
	}
	in, err := c.members(value, negated)
	if err != nil {
		return result{}, err
	}
	if key.List == nil || !key.Is(shape.List) {
		return c.keyIn(key, in, negated)
	}
	return c.keysIn(name, key, in, negated)
}

// oldSet reports whether In and NotIn of a list have one meaning in every version of Kyverno: for texts
// and a list of texts without wildcards.
func oldSet(each, value term.Term) bool {
	if !each.Is(shape.Text) || value.Fixed == nil {
		return false
	}
	items, isList := (*value.Fixed).([]any)
	for _, item := range items {
		text, isText := item.(string)
		if !isText || strings.ContainsAny(text, "*?") {
			return false
		}
	}
	return isList
}

// membership writes whether an element is in a set.
type membership func(element term.Term) (result, error)

// keyIn is a set operator of one key.
func (c compiler) keyIn(key term.Term, in membership, negated bool) (result, error) {
	if key.May(shape.List) && key.Shape.Kinds != shape.Any {
		return result{}, refuse("a key that may be a list, or none")
	}
	made, err := in(key)
	switch {
	case err != nil:
		return made, err
	case key.Null && !negated:
		there, ok := key.Present()
		if !ok {
			return result{}, refuse("a key that may be null")
		}
		made = where(there, made)
	}
	if negated {
		return made.opposite(), nil
	}
	return made, nil
}

// keysIn is a set operator of a list of keys. Where the list may be null, a positive operator does not hold, and
// a negated one fails.
func (c compiler) keysIn(name string, key term.Term, in membership, negated bool) (result, error) {
	all := name == "In" || name == "AllIn"
	if all && !key.Sure() {
		return result{}, refuse("%s of a list that may be null", name)
	}
	made, err := in(key.List.Each())
	if err != nil {
		return made, err
	}
	outside := made.opposite()
	holds := func(r term.Term) func(term.Term) (string, term.Rank) {
		return func(term.Term) (string, term.Rank) { return r.Text, r.Rank }
	}
	soft := !negated && !key.Missing // a missing key fails, and a list of none does not
	exists := func(r result) result {
		return result{
			holds: term.Term{Text: key.List.Exists(soft, holds(r.holds)), Rank: term.Primary},
			fails: term.Term{Text: key.List.Every(soft, holds(r.fails)), Rank: term.Primary},
		}
	}
	var out result
	switch name {
	case "AnyIn":
		out = exists(made)
	case "In", "AllIn":
		out = exists(outside).opposite()
	case "NotIn", "AnyNotIn":
		out = exists(outside)
	default: // AllNotIn
		out = exists(made).opposite()
	}
	if key.Instead == nil {
		return out, nil
	}
	return c.instead(name, key, in, out)
}

// instead adds the case of an empty list, for which the key is another value.
func (c compiler) instead(name string, key term.Term, in membership, out result) (result, error) {
	one, err := in(term.Fixed(*key.Instead))
	if err != nil {
		return one, err
	}
	is := one.holds.Text == "true"
	if strings.Contains(name, "Not") {
		is = !is
	}
	if is == (name == "In" || name == "AllIn" || name == "AllNotIn") { // as for no keys
		return out, nil
	}
	list, _ := key.List.Text(true)
	empty := list + ".size() == 0"
	if is {
		return result{
			holds: term.Term{Text: empty + " || " + out.holds.In(term.Or), Rank: term.Or},
			fails: term.Term{Text: list + ".size() > 0 && " + out.fails.In(term.And), Rank: term.And}, strict: out.strict,
		}, nil
	}
	return result{
		holds: term.Term{Text: list + ".size() > 0 && " + out.holds.In(term.And), Rank: term.And},
		fails: term.Term{Text: empty + " || " + out.fails.In(term.Or), Rank: term.Or}, strict: out.strict,
	}, nil
}

// members returns the membership of the value of a set operator.
func (c compiler) members(value term.Term, negated bool) (membership, error) {
	if value.Fixed == nil {
		if value.List == nil || !value.Is(shape.List) || value.Instead != nil {
			return nil, refuse("a value that may be no list")
		}
		return func(element term.Term) (result, error) { return c.inList(element, value, negated) }, nil
	}
	items, isList := (*value.Fixed).([]any)
	if !isList {
		if text, isText := (*value.Fixed).(string); isText {
			if low, high, is := rangeOf(text); is {
				return func(element term.Term) (result, error) { return within(element, low, high) }, nil
			}
			if strings.HasPrefix(strings.TrimSpace(text), "[") {
				return nil, refuse("a list in the text %q", text)
			}
		}
		items = []any{*value.Fixed}
	}
	for _, item := range items {
		switch item.(type) {
		case string, float64, bool:
		default:
			return nil, refuse("a list of values that are no scalars")
		}
	}
	return func(element term.Term) (result, error) { return c.inFixed(element, items, negated) }, nil
}

var rangeForm = regexp.MustCompile(`^([-|+]?\d+(?:\.\d+)?[A-Za-z]*)-([-|+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// rangeOf reads a range such as 1-10.
func rangeOf(text string) (low, high string, is bool) {
	found := rangeForm.FindStringSubmatch(text)
	if found == nil {
		return "", "", false
	}
	return found[1], found[2], true
}

// within writes that a number lies within a range.
func within(element term.Term, low, high string) (result, error) {
	from, to := number(term.Fixed(low)), number(term.Fixed(high))
	if !element.Is(shape.Number) || from == "" || to == "" {
		return result{}, refuse("the range %s-%s of values that may be no numbers", low, high)
	}
	e := element.In(term.Sum)
	return result{
		holds: term.Term{Text: e + " >= " + from + " && " + e + " <= " + to, Rank: term.And},
		fails: term.Term{Text: e + " < " + from + " || " + e + " > " + to, Rank: term.Or},
	}, nil
}

// inFixed writes that an element is in a list of the policy, which are compared as texts.
func (c compiler) inFixed(element term.Term, items []any, negated bool) (result, error) {
	if element.Fixed != nil {
		return constant(element, items)
	}
	if element.Is(shape.Number) {
		return numberIn(element, items)
	}
	if element.Is(shape.Bool) {
		if text := plain(items[0]); len(items) == 1 && (text == "true" || text == "false") {
			return c.equalsFixed(element, text == "true", !negated)
		}
		return result{}, refuse("a set of booleans")
	}
	value, err := c.textOf(element)
	if err != nil {
		return result{}, err
	}
	var texts, same, alternatives, opposite []string
	for _, item := range items {
		text := plain(item)
		texts = append(texts, text)
		if strings.ContainsAny(text, "*?") {
			alternatives, opposite = append(alternatives, celtext.Matches(text, value)), append(opposite, celtext.NotMatches(text, value))
			continue
		}
		same = append(same, celtext.String(text))
	}
	if element.ASCII && strings.ContainsAny(strings.Join(texts, ""), "SIKsik*?") {
		return result{}, refuse("letters that other letters become in to_upper() or to_lower()")
	}
	switch len(same) {
	case 0:
	case 1:
		alternatives, opposite = append([]string{value + " == " + same[0]}, alternatives...), append([]string{value + " != " + same[0]}, opposite...)
	default:
		list := value + " in [" + strings.Join(same, ", ") + "]"
		alternatives, opposite = append([]string{list}, alternatives...), append([]string{"!(" + list + ")"}, opposite...)
	}
	made := result{
		holds: term.Term{Text: strings.Join(alternatives, " || "), Rank: term.Or}, fails: term.Term{Text: strings.Join(opposite, " && "), Rank: term.And},
	}
	if len(alternatives) == 1 {
		made.holds.Rank, made.fails.Rank = term.Relation, term.Relation
	}
	if c.covers(element, !negated) {
		return c.covered(made, texts, value)
	}
	return made, nil
}

// plain is a scalar as a policy would write it in a text.
func plain(item any) string {
	if text, ok := item.(string); ok {
		return text
	}
	if number, ok := item.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return term.Literal(item)
}

// numberIn compares with the numbers in a list.
func numberIn(element term.Term, items []any) (result, error) {
	var numbers []string
	for _, item := range items {
		text := plain(item)
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case strings.ContainsAny(text, "*?"):
			return result{}, refuse("a number compared with wildcards")
		case err == nil && plain(n) == text:
			numbers = append(numbers, term.Literal(n))
		}
	}
	e := element.In(term.Sum)
	switch len(numbers) {
	case 0:
		return always().opposite(), nil
	case 1:
		return relation(e+" == "+numbers[0], e+" != "+numbers[0]), nil
	}
	list := e + " in [" + strings.Join(numbers, ", ") + "]"
	return result{holds: term.Term{Text: list, Rank: term.Relation}, fails: term.Term{Text: "!(" + list + ")", Rank: term.Unary}}, nil
}

// constant is the result for a value of the policy.
func constant(element term.Term, items []any) (result, error) {
	text := plain(*element.Fixed)
	if strings.ContainsAny(text, "*?") {
		return result{}, refuse("a constant with wildcards")
	}
	for _, item := range items {
		switch item := plain(item); {
		case item == text:
			return always(), nil
		case strings.ContainsAny(item, "*?"):
			return result{}, refuse("a constant compared with wildcards")
		}
	}
	return always().opposite(), nil
}

// inList writes that an element is in a list of the data.
func (c compiler) inList(element, value term.Term, negated bool) (result, error) {
	if !element.Is(shape.Text) && element.Shape.Kinds != shape.Any || element.ASCII || value.List.Each().ASCII {
		return result{}, refuse("a value that may be no text in a list of the data")
	}
	if c.use == acts {
		return result{}, refuse("a value in a list of the data, of which one may have wildcards")
	}
	if element.Missing { // which fails in the source, whatever is in the list
		return result{}, refuse("a value that may be missing, in a list of the data")
	}
	text, err := c.textOf(element)
	if err != nil {
		return result{}, err
	}
	each := value.List.Each()
	if !each.Is(shape.Text) && each.Shape.Kinds != shape.Any {
		return result{}, refuse("a list of the data that may have other values than texts")
	}
	soft := !negated && !value.Missing
	sought := element
	sought.Text, sought.Rank = text, term.Primary
	if !negated && (c.covers(element, true) || c.covers(each, true)) {
		var made error
		has := value.List.Exists(soft, func(one term.Term) (string, term.Rank) {
			other, err := c.textOf(one)
			made = err
			return other + ".matches(" + patternOf(text) + ") || " + text + ".matches(" + patternOf(other) + ")", term.Or
		})
		return whole(has), made
	}
	has, rank := value.List.Has(sought, soft)
	return result{holds: term.Term{Text: has, Rank: rank}, fails: term.Term{Text: term.Not(has), Rank: term.Unary}}, nil
}

// fixedIn is a set operator of one key of the policy, and a list of the data.
func (c compiler) fixedIn(key, value term.Term, negated bool) (result, error) {
	text, isText := (*key.Fixed).(string)
	switch {
	case !isText || strings.ContainsAny(text, "*?"):
		return result{}, refuse("a key that is no plain text")
	case value.Keys != nil:
		return hasKey(text, *value.Keys, negated)
	case value.List == nil || !value.Is(shape.List) || value.Instead != nil:
		return result{}, refuse("a value that may be no list")
	}
	each := value.List.Each()
	if c.use == acts && c.covers(each, !negated) {
		return result{}, refuse("a list of the data that may have wildcards")
	}
	if !each.Is(shape.Text) && (each.Shape.Kinds != shape.Any || c.use == acts) {
		return result{}, refuse("a list of the data that may have other values than texts")
	}
	if each.ASCII && strings.ContainsAny(text, "SIKsik") {
		return result{}, refuse("letters that other letters become in to_upper() or to_lower()")
	}
	soft := !negated && !value.Missing
	has, rank := value.List.Has(key, soft)
	made := result{holds: term.Term{Text: has, Rank: rank}, fails: term.Term{Text: term.Not(has), Rank: term.Unary}}
	if c.covers(each, !negated) && !negated {
		has = value.List.Exists(soft, func(element term.Term) (string, term.Rank) {
			one := relation(element.Text+" == "+celtext.String(text), "")
			covered, _ := c.covered(one, []string{text}, element.In(term.Primary)) // of a text without wildcards
			return covered.holds.Text, covered.holds.Rank
		})
		made = whole(has)
	}
	if negated {
		return made.opposite(), nil
	}
	return made, nil
}

// hasKey writes that an object has a member.
func hasKey(name string, object term.Term, negated bool) (result, error) {
	there := celtext.Path{Direct: object.In(term.Primary)}.At(name)
	made := whole(there.Present)
	if !strings.HasPrefix(there.Present, "has(") {
		made = result{holds: term.Term{Text: there.Present, Rank: term.Relation}, fails: term.Term{Text: "!(" + there.Present + ")", Rank: term.Unary}}
	}
	if object.Null && !negated {
		return result{}, refuse("the members of an object that may be null")
	}
	if negated {
		return made.opposite(), nil
	}
	return made, nil
}
