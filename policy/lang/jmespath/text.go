package jmespath

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

func compare(a arguments) (any, error) {
	return float64(strings.Compare(a.text(0), a.text(1))), nil
}

func equalFold(a arguments) (any, error) { return strings.EqualFold(a.text(0), a.text(1)), nil }
func toUpper(a arguments) (any, error)   { return strings.ToUpper(a.text(0)), nil }
func toLower(a arguments) (any, error)   { return strings.ToLower(a.text(0)), nil }
func trim(a arguments) (any, error)      { return strings.Trim(a.text(0), a.text(1)), nil }

func trimPrefix(a arguments) (any, error) { return strings.TrimPrefix(a.text(0), a.text(1)), nil }

func replace(a arguments) (any, error) {
	return replaceText(a.text(0), a.text(1), a.text(2), int(a.number(3)))
}

func replaceAll(a arguments) (any, error) {
	return replaceText(a.text(0), a.text(1), a.text(2), -1)
}

func replaceText(text, from, to string, times int) (any, error) {
	found := strings.Count(text, from)
	if times >= 0 && found > times {
		found = times
	}
	if size := len(text) + found*(len(to)-len(from)); size > maxText {
		return nil, tooLarge("the result", size, maxText)
	}
	return strings.Replace(text, from, to, times), nil
}

func split(a arguments) (any, error) {
	parts := strings.Split(a.text(0), a.text(1))
	list := make([]any, len(parts))
	for i, part := range parts {
		list[i] = part
	}
	return list, nil
}

// truncate counts characters, not bytes.
func truncate(a arguments) (any, error) {
	left := int(a.number(1))
	if left <= 0 {
		return "", nil
	}
	for i := range a.text(0) {
		if left == 0 {
			return a.text(0)[:i], nil
		}
		left--
	}
	return a.text(0), nil
}

func toBoolean(a arguments) (any, error) {
	switch strings.ToLower(a.text(0)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("want true or false, got %q", shorten(a.text(0)))
}

func pathCanonicalize(a arguments) (any, error) { return path.Join(a.text(0)), nil }

// textOf reads an argument that may be a string or a number.
func (a arguments) textOf(i int) string {
	if s, ok := a[i].(string); ok {
		return s
	}
	return strconv.FormatFloat(a.number(i), 'f', -1, 64)
}

// pattern compiles what programSize has measured.
func pattern(text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", shorten(text), err)
	}
	return re, nil
}

// regexMatch is unanchored, as the policies that use it expect.
func regexMatch(a arguments) (any, error) {
	re, err := pattern(a.text(0))
	if err != nil {
		return nil, err
	}
	return re.MatchString(a.textOf(1)), nil
}

func regexReplaceAll(a arguments) (any, error) {
	template := a.textOf(2)
	return replacePattern(a, func(re *regexp.Regexp, to []byte, match []int) []byte {
		return re.ExpandString(to, template, a.textOf(1), match)
	})
}

func regexReplaceAllLiteral(a arguments) (any, error) {
	literal := a.textOf(2)
	return replacePattern(a, func(_ *regexp.Regexp, to []byte, _ []int) []byte { return append(to, literal...) })
}

func replacePattern(a arguments, expand func(*regexp.Regexp, []byte, []int) []byte) (any, error) {
	re, err := pattern(a.text(0))
	if err != nil {
		return nil, err
	}
	text := a.textOf(1)
	var out []byte
	last := 0
	for _, match := range re.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, text[last:match[0]]...)
		out = expand(re, out, match)
		last = match[1]
		if len(out) > maxText {
			return nil, tooLarge("the result", len(out), maxText)
		}
	}
	return string(append(out, text[last:]...)), nil
}

func patternMatch(a arguments) (any, error) { return wildcard.Match(a.text(0), a.textOf(1)), nil }

// semverCompare reports whether a version lies in a range such as
// ">=1.2.0 <2.0.0 || 3.x.x".
func semverCompare(a arguments) (any, error) {
	if len(a.text(0)) > maxPattern || len(a.text(1)) > maxPattern {
		return nil, tooLarge("a version", max(len(a.text(0)), len(a.text(1))), maxPattern)
	}
	version, err := semver.Parse(a.text(0))
	if err != nil {
		return nil, fmt.Errorf("version %q: %w", shorten(a.text(0)), err)
	}
	in, err := semver.ParseRange(a.text(1))
	if err != nil {
		return nil, fmt.Errorf("range %q: %w", shorten(a.text(1)), err)
	}
	return in(version), nil
}

func join(a arguments) (any, error) {
	var out strings.Builder
	for i, item := range a.list(1) {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("item %d: want a string, got %s", i, kindOf(item))
		}
		if i > 0 {
			out.WriteString(a.text(0))
		}
		out.WriteString(text)
		if out.Len() > maxText {
			return nil, tooLarge("the result", out.Len(), maxText)
		}
	}
	return out.String(), nil
}
