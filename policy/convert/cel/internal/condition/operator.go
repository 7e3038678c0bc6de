package condition

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	engine "github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func refuse(format string, args ...any) error {
	return &source.Unsupported{Found: fmt.Sprintf(format, args...)}
}

// operator writes the comparison of a key with a value.
func (c compiler) operator(name string, key, value term.Term) (result, error) {
	switch name {
	case "Equal", "Equals":
		return c.equals(key, value, true)
	case "NotEqual", "NotEquals":
		made, err := c.equals(key, value, false)
		return made.opposite(), err
	case "In", "AllIn", "AnyIn", "NotIn", "AnyNotIn", "AllNotIn":
		return c.set(name, key, value)
	case "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals":
		return order(name, key, value)
	case "DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals":
		return orderOfDurations(strings.TrimPrefix(name, "Duration"), key, value)
	}
	return result{}, refuse("the operator %s", name)
}

func (r result) opposite() result {
	r.holds, r.fails = r.fails, r.holds
	return r
}

// relation is a condition that is written with a sign of comparison.
func relation(holds, fails string) result {
	return result{holds: term.Term{Text: holds, Rank: term.Relation}, fails: term.Term{Text: fails, Rank: term.Relation}}
}

// whole is a condition that a person negates by an exclamation mark.
func whole(holds string) result {
	return result{holds: term.Term{Text: holds, Rank: rankOf(holds)}, fails: term.Term{Text: "!" + holds, Rank: term.Unary}}
}

func rankOf(text string) term.Rank {
	if strings.HasPrefix(text, "!") {
		return term.Unary
	}
	return term.Primary
}

// equals writes equality. Positive conditions do not hold for null, negated ones are indeterminate: the text
// then fails.
func (c compiler) equals(key, value term.Term, positive bool) (result, error) {
	if key.Fixed != nil && value.Fixed == nil {
		key, value = value, key
	}
	switch {
	case key.Fixed != nil:
		return result{}, refuse("a condition of constants")
	case key.Instead != nil || key.May(shape.List) && key.Shape.Kinds != shape.Any:
		return result{}, refuse("the equality of a list")
	case key.Null && positive && c.nulls(key):
		return result{}, refuse("the equality of a value that may be null")
	case value.Fixed == nil:
		return c.equalValues(key, value, positive)
	}
	made, err := c.equalsFixed(key, *value.Fixed, positive)
	if err == nil && key.Null && positive {
		made = where(key.Path.Present, made)
	}
	return made, err
}

// nulls reports whether there is no text that tells null from a value.
func (c compiler) nulls(key term.Term) bool {
	there, ok := key.Present()
	return !ok || there == ""
}

// where is a condition that holds only where another one does.
func where(present string, made result) result {
	return result{
		holds:  term.Term{Text: present + " && " + made.holds.In(term.And), Rank: term.And},
		fails:  term.Term{Text: term.Not(present) + " || " + made.fails.In(term.Or), Rank: term.Or},
		strict: made.strict,
	}
}

// equalValues compares two values of the data.
func (c compiler) equalValues(key, value term.Term, positive bool) (result, error) {
	made := relation(key.In(term.Sum)+" == "+value.In(term.Sum), key.In(term.Sum)+" != "+value.In(term.Sum))
	switch {
	case value.Null && positive || value.Instead != nil:
		return result{}, refuse("the equality of values that may be null")
	case key.Is(shape.Number) && value.Is(shape.Number), key.Is(shape.Bool) && value.Is(shape.Bool):
		return made, nil
	case key.Is(shape.Text) && value.Is(shape.Text) && !positive && c.use != acts:
		return made, nil // two spellings of one amount are equal in the source, and denied in the result
	}
	return result{}, refuse("the equality of two values that may be amounts or of several types")
}

// equalsFixed compares with a value of the policy.
func (c compiler) equalsFixed(key term.Term, value any, positive bool) (result, error) {
	if _, isText := value.(string); c.use == acts && positive && key.Shape.Kinds == shape.Any && !isText {
		literal := term.Literal(value) // a text is not equal, which may be in the source: what is in doubt does not hold
		return relation(key.In(term.Sum)+" == "+literal, key.In(term.Sum)+" != "+literal), nil
	}
	switch v := value.(type) {
	case bool:
		if !key.Is(shape.Bool) {
			return result{}, refuse("the equality of a value that may be no boolean with %t", v)
		}
		if v {
			return result{holds: key, fails: term.Term{Text: "!" + key.In(term.Unary), Rank: term.Unary}}, nil
		}
		return result{fails: key, holds: term.Term{Text: "!" + key.In(term.Unary), Rank: term.Unary}}, nil
	case float64:
		if key.Is(shape.Number) {
			return relation(key.In(term.Sum)+" == "+term.Literal(v), key.In(term.Sum)+" != "+term.Literal(v)), nil
		}
	case string:
		if key.Is(shape.Number) || isAmount(v) {
			return amountEquals(key, v)
		}
		return c.textEquals(key, v, positive)
	}
	return result{}, refuse("the equality of a value that may be of another type")
}

// amountEquals compares with a text that is an amount.
func amountEquals(key term.Term, amount string) (result, error) {
	if _, err := engine.ParseQuantity(amount); err != nil || !key.Shape.Quantity || !key.Is(shape.Text) {
		return result{}, refuse("the equality with the amount %q", amount)
	}
	compared := "quantity(" + key.Text + ").compareTo(quantity(" + celtext.String(amount) + "))"
	return relation(compared+" == 0", compared+" != 0"), nil
}

// isAmount reports whether a text may be equal to another one by its amount.
func isAmount(text string) bool {
	_, err1 := time.ParseDuration(text)
	_, err2 := resource.ParseQuantity(text)
	return err1 == nil || err2 == nil || text != "" && strings.ContainsAny(text[:1], "eE0123456789+-.")
}

// textEquals compares with a text of the policy, which may have wildcards.
func (c compiler) textEquals(key term.Term, text string, positive bool) (result, error) {
	if c.use == acts && positive && key.Shape.Kinds == shape.Any && text != "" && !strings.ContainsAny(text, "*?") {
		quoted := celtext.String(text) // a value of another type is not equal, nor is one that may cover the text
		return relation(key.In(term.Sum)+" == "+quoted, key.In(term.Sum)+" != "+quoted), nil
	}
	if c.scope.Untyped && !positive && key.Shape.Kinds == shape.Any { // a value of another type is unequal, or is not compared
		return result{}, refuse("a value that may be no text")
	}
	value, err := c.textOf(key)
	if err == nil && key.ASCII && strings.ContainsAny(text, "SIKsik*?") {
		err = refuse("letters that other letters become in to_upper() or to_lower()")
	}
	if err != nil {
		return result{}, err
	}
	made := whole(celtext.Matches(text, value))
	if !strings.ContainsAny(text, "*?") || text == "?*" || strings.Trim(text, "*") == "" {
		made = relation(celtext.Matches(text, value), celtext.NotMatches(text, value))
	}
	if !c.covers(key, positive) || text == "?*" {
		return made, nil
	}
	return c.covered(made, []string{text}, value)
}

// textOf writes a value as a text. One of a type that is not known fails unless it is a scalar.
func (c compiler) textOf(key term.Term) (string, error) {
	switch {
	case key.Is(shape.Text):
		return key.In(term.Primary), nil
	case key.Is(shape.Text | shape.Number), key.Shape.Kinds == shape.Any && (c.use != acts || c.scope.Untyped):
		return "string(" + key.Text + ")", nil
	}
	return "", refuse("a value that may be no text")
}

// covers reports whether a wildcard in a value of the data may decide. For a denial or an evaluation it decides
// by the texts that it matches, and for conditions that act by those that it may match.
func (c compiler) covers(key term.Term, positive bool) bool {
	return positive != (c.use == acts) && !key.Shape.Plain && !key.Shape.Quantity && !key.Is(shape.Number|shape.Bool)
}

// patternOf writes a text of the data, in which * and ? are wildcards, as a regular expression.
func patternOf(value string) string {
	return `'^(?s:' + regex.replace(` + value + `, '([[:punct:]])', r'\\\1').replace(r'\*', '.*').replace(r'\?', '.') + ')$'`
}

// covered adds the texts that a value of the data matches as a pattern, or has itself. For conditions that act, the
// condition does not hold then, in either polarity.
func (c compiler) covered(made result, texts []string, value string) (result, error) {
	var plain, covers []string
	for _, one := range texts {
		if !strings.ContainsAny(one, "*?") {
			plain = append(plain, celtext.String(one))
			continue
		}
		both, ok := overlap(one, value)
		if !ok {
			return made, refuse("the pattern %q for texts that may have wildcards, too", one)
		}
		covers = append(covers, both)
	}
	pattern := patternOf(value)
	switch {
	case len(plain) == 1:
		covers = append([]string{plain[0] + ".matches(" + pattern + ")"}, covers...)
	case len(plain) > 1:
		covers = append([]string{"[" + strings.Join(plain, ", ") + "].exists(text, text.matches(" + pattern + "))"}, covers...)
	}
	if len(plain) == len(texts) && c.use != acts {
		return whole(covers[0]), nil
	}
	for _, cover := range covers {
		if c.use != acts {
			made.holds = term.Term{Text: made.holds.In(term.Or) + " || " + cover, Rank: term.Or}
		}
		not := "!" + cover
		if strings.Contains(cover, " && ") {
			not = "!(" + cover + ")"
		}
		made.fails = term.Term{Text: made.fails.In(term.And) + " && " + not, Rank: term.And}
	}
	return made, nil
}

// overlap writes that a text of the data has wildcards, and that there may be a text which it matches as well as a
// pattern of the policy: one with wildcards at its ends alone.
func overlap(pattern, value string) (string, bool) {
	core := strings.Trim(pattern, "*")
	begins, ends := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	has := value + ".matches('[*?]')"
	switch {
	case strings.ContainsAny(core, "*?"):
		return "", false
	case begins && ends:
		return has, true
	case ends:
		return has + " && " + celtext.String(core) + ".startsWith(regex.replace(" + value + ", '(?s:[*?].*)$', ''))", true
	}
	return has + " && " + celtext.String(core) + ".endsWith(regex.replace(" + value + ", '^(?s:.*[*?])', ''))", true
}

// signs are the operator of an order, and its opposite.
func signs(name string) (sign, opposite string) {
	switch name {
	case "GreaterThan":
		return ">", "<="
	case "GreaterThanOrEquals":
		return ">=", "<"
	case "LessThan":
		return "<", ">="
	}
	return "<=", ">"
}

// order writes an order of numbers or quantities.
func order(name string, key, value term.Term) (result, error) {
	sign, opposite := signs(name)
	if key.Null || value.Null || key.Instead != nil || value.Instead != nil {
		return result{}, refuse("the order of a value that may be null")
	}
	if key.Duration || value.Duration {
		return orderOfDurations(name, key, value)
	}
	left, right := number(key), number(value)
	if left != "" && right != "" {
		return relation(left+" "+sign+" "+right, left+" "+opposite+" "+right), nil
	}
	left, right = quantity(key), quantity(value)
	if left == "" || right == "" {
		return result{}, refuse("the order of values that may be no numbers")
	}
	compared := left + ".compareTo(" + right + ")"
	return relation(compared+" "+sign+" 0", compared+" "+opposite+" 0"), nil
}

// number writes a number, or a text that is one; empty if it may be none.
func number(t term.Term) string {
	if t.Is(shape.Number) {
		return t.In(term.Sum)
	}
	if t.Fixed == nil {
		if t.Shape.Kinds == shape.Any {
			return t.In(term.Sum) // a value of another type fails, and is denied
		}
		return ""
	}
	text, _ := (*t.Fixed).(string)
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return term.Literal(n)
	}
	return ""
}

// quantity writes a quantity; empty if it may be none.
func quantity(t term.Term) string {
	switch {
	case t.Fixed != nil:
		text, isText := (*t.Fixed).(string)
		if number, isNumber := (*t.Fixed).(float64); isNumber {
			text, isText = term.Literal(number), true
		}
		if _, err := engine.ParseQuantity(text); err != nil || !isText {
			return ""
		}
		return "quantity(" + celtext.String(text) + ")"
	case t.Shape.Quantity && t.Is(shape.Text):
		return "quantity(" + t.Text + ")"
	}
	return ""
}

// orderOfDurations writes an order of durations; a number counts seconds.
func orderOfDurations(name string, key, value term.Term) (result, error) {
	if key.Null || value.Null {
		return result{}, refuse("the order of a value that may be null")
	}
	left, right := duration(key), duration(value)
	if left == "" || right == "" {
		return result{}, refuse("the order of values that may be no durations")
	}
	sign, opposite := signs(name)
	return relation(left+" "+sign+" "+right, left+" "+opposite+" "+right), nil
}

// duration writes a duration; empty if it may be none.
func duration(t term.Term) string {
	if t.Duration {
		return t.In(term.Sum)
	}
	if t.Fixed == nil {
		if t.Is(shape.Text) && !t.ASCII {
			return "duration(" + t.Text + ")"
		}
		return ""
	}
	text, isText := (*t.Fixed).(string)
	if number, isNumber := (*t.Fixed).(float64); isNumber {
		text, isText = term.Literal(number)+"s", true
	}
	if _, err := time.ParseDuration(text); err != nil || !isText {
		return ""
	}
	return "duration(" + celtext.String(text) + ")"
}
