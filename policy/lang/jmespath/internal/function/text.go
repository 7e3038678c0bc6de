package function

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

func compare(a Arguments) (any, error) {
	return float64(strings.Compare(a.Text(0), a.Text(1))), nil
}

func equalFold(a Arguments) (any, error) { return strings.EqualFold(a.Text(0), a.Text(1)), nil }
func toUpper(a Arguments) (any, error)   { return strings.ToUpper(a.Text(0)), nil }
func toLower(a Arguments) (any, error)   { return strings.ToLower(a.Text(0)), nil }
func trim(a Arguments) (any, error)      { return strings.Trim(a.Text(0), a.Text(1)), nil }

func trimPrefix(a Arguments) (any, error) { return strings.TrimPrefix(a.Text(0), a.Text(1)), nil }

func replace(a Arguments) (any, error) {
	return replaceText(a.Text(0), a.Text(1), a.Text(2), int(a.Number(3)))
}

func replaceAll(a Arguments) (any, error) {
	return replaceText(a.Text(0), a.Text(1), a.Text(2), -1)
}

func replaceText(text, from, to string, times int) (any, error) {
	found := strings.Count(text, from)
	if times >= 0 && found > times {
		found = times
	}
	if size := len(text) + found*(len(to)-len(from)); size > MaxText {
		return nil, TooLarge("the result", size, MaxText)
	}
	return strings.Replace(text, from, to, times), nil
}

func split(a Arguments) (any, error) {
	parts := strings.Split(a.Text(0), a.Text(1))
	list := make([]any, len(parts))
	for i, part := range parts {
		list[i] = part
	}
	return list, nil
}

// truncate counts characters, not bytes.
func truncate(a Arguments) (any, error) {
	left := int(a.Number(1))
	if left <= 0 {
		return "", nil
	}
	for i := range a.Text(0) {
		if left == 0 {
			return a.Text(0)[:i], nil
		}
		left--
	}
	return a.Text(0), nil
}

func toBoolean(a Arguments) (any, error) {
	switch strings.ToLower(a.Text(0)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("want true or false, got %q", Shorten(a.Text(0)))
}

func pathCanonicalize(a Arguments) (any, error) { return path.Join(a.Text(0)), nil }

// TextOf reads an argument that may be a string or a number.
func (a Arguments) TextOf(i int) string {
	if s, ok := a[i].(string); ok {
		return s
	}
	return strconv.FormatFloat(a.Number(i), 'f', -1, 64)
}

// pattern compiles what programSize has measured.
func pattern(text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", Shorten(text), err)
	}
	return re, nil
}

// regexMatch is unanchored, as the policies that use it expect.
func regexMatch(a Arguments) (any, error) {
	re, err := pattern(a.Text(0))
	if err != nil {
		return nil, err
	}
	return re.MatchString(a.TextOf(1)), nil
}

func regexReplaceAll(a Arguments) (any, error) {
	template := a.TextOf(2)
	return replacePattern(a, func(re *regexp.Regexp, to []byte, match []int) []byte {
		return re.ExpandString(to, template, a.TextOf(1), match)
	})
}

func regexReplaceAllLiteral(a Arguments) (any, error) {
	literal := a.TextOf(2)
	return replacePattern(a, func(_ *regexp.Regexp, to []byte, _ []int) []byte { return append(to, literal...) })
}

func replacePattern(a Arguments, expand func(*regexp.Regexp, []byte, []int) []byte) (any, error) {
	re, err := pattern(a.Text(0))
	if err != nil {
		return nil, err
	}
	text := a.TextOf(1)
	var out []byte
	last := 0
	for _, match := range re.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, text[last:match[0]]...)
		out = expand(re, out, match)
		last = match[1]
		if len(out) > MaxText {
			return nil, TooLarge("the result", len(out), MaxText)
		}
	}
	return string(append(out, text[last:]...)), nil
}

func patternMatch(a Arguments) (any, error) { return wildcard.Match(a.Text(0), a.TextOf(1)), nil }

// semverCompare reports whether a version lies in a range such as
// ">=1.2.0 <2.0.0 || 3.x.x".
func semverCompare(a Arguments) (any, error) {
	if len(a.Text(0)) > MaxPattern || len(a.Text(1)) > MaxPattern {
		return nil, TooLarge("a version", max(len(a.Text(0)), len(a.Text(1))), MaxPattern)
	}
	version, err := semver.Parse(a.Text(0))
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", Shorten(a.Text(0)), err)
	}
	in, err := semver.ParseRange(a.Text(1))
	if err != nil {
		return nil, fmt.Errorf("range %q: %w", Shorten(a.Text(1)), err)
	}
	return in(version), nil
}

func join(a Arguments) (any, error) {
	var out strings.Builder
	for i, item := range a.List(1) {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("item %d: want a string, got %s", i, KindOf(item))
		}
		if i > 0 {
			out.WriteString(a.Text(0))
		}
		out.WriteString(text)
		if out.Len() > MaxText {
			return nil, TooLarge("the result", out.Len(), MaxText)
		}
	}
	return out.String(), nil
}

// Shorten keeps an expression readable in a message.
func Shorten(s string) string {
	const most = 160
	return limit.Text(s, most)
}

// Text returns a value as it reads in the middle of a string: strings as they
// are, anything else as JSON.
func Text(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	return Encode(value)
}

// Encode is JSON without the escapes that only HTML needs.
func Encode(value any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
