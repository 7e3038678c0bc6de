package jmespath

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"
)

// kind is a set of types that an argument may have.
type kind byte

const (
	aString kind = 1 << iota
	aNumber
	anArray
	anObject
	aBoolean
	aNull
	anExpression

	anything = aString | aNumber | anArray | anObject | aBoolean | aNull
)

// function is one that Kyverno adds, or that replaces a builtin.
type function struct {
	arguments []kind
	// call gets arguments of the right number and kinds.
	call func(a arguments) (any, error)
	// price is the cost of a call beyond the traversal of its arguments and its result; it may be
	// nil.
	price func(a arguments) (int, error)
	// variadic functions accept the last argument one or more times.
	variadic bool
	// shallow functions do not read nested values of their arguments beyond those that price
	// counts.
	shallow bool
	// native functions are called by the library itself.
	native bool
}

// takes reports whether a function accepts n arguments.
func (f function) takes(n int) bool {
	return n == len(f.arguments) || f.variadic && n > len(f.arguments)
}

type arguments []any

func (a arguments) text(i int) string           { return a[i].(string) }
func (a arguments) number(i int) float64        { return a[i].(float64) }
func (a arguments) list(i int) []any            { return a[i].([]any) }
func (a arguments) object(i int) map[string]any { return a[i].(map[string]any) }

// entry makes the library's form of a function. The checks are ours, for the
// library's messages print Go types, and values however large.
func (f function) entry(name string, m *meter) jp.FunctionEntry {
	return jp.FunctionEntry{Name: name, Handler: func(given []any) (any, error) {
		for i := range given { // checkCall has counted them
			if err := f.check(i, given[i], m); err != nil {
				return nil, fmt.Errorf("%s: argument %d: %w", name, i+1, err)
			}
		}
		if f.price != nil {
			price, err := f.price(given)
			if err == nil {
				err = m.take(price)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		result, err := f.call(given)
		if err == nil {
			err = m.take(resultCost(result))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, brief(err))
		}
		return result, nil
	}}
}

// check refuses an argument of the wrong kind or size, and charges for its traversal.
func (f function) check(i int, given any, m *meter) error {
	want := f.arguments[min(i, len(f.arguments)-1)]
	if got := kindOf(given); got&want == 0 {
		if got == aNull {
			return fmt.Errorf("want %s, got %w", want, errNull)
		}
		return fmt.Errorf("want %s, got %s", want, got)
	}
	text, ok := given.(string)
	switch {
	case len(text) > maxText:
		return tooLarge("a string", len(text), maxText)
	case ok:
		return m.take(valueCost + len(text))
	case f.shallow:
		return m.take(valueCost)
	}
	return m.walk(given)
}

func kindOf(value any) kind {
	switch value.(type) {
	case nil:
		return aNull
	case string:
		return aString
	case float64:
		return aNumber
	case bool:
		return aBoolean
	case []any:
		return anArray
	case map[string]any:
		return anObject
	default:
		return anExpression
	}
}

func (k kind) String() string {
	if k == anything {
		return "any value"
	}
	var names []string
	for i, name := range []string{"a string", "a number", "an array", "an object", "a boolean", "null", "an expression"} {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// table lists every function: those of Kyverno 1.19, and the library's own, some of
// them replaced.
func (e *Engine) table() map[string]function {
	table := map[string]function{}
	for _, functions := range []map[string]function{e.natives(), textFunctions(), numberFunctions(), e.timeFunctions(), e.dataFunctions(), replacements()} {
		maps.Copy(table, functions)
	}
	for name, price := range prices() {
		f := table[name]
		f.price = price
		table[name] = f
	}
	return table
}

// words returns the kinds of n strings.
func words(n int) []kind { return slices.Repeat([]kind{aString}, n) }

const textOrNumber = aString | aNumber

// textFunctions work on strings.
func textFunctions() map[string]function {
	return map[string]function{
		"compare":                   {arguments: words(2), call: compare},
		"equal_fold":                {arguments: words(2), call: equalFold},
		"replace":                   {arguments: []kind{aString, aString, aString, aNumber}, call: replace},
		"replace_all":               {arguments: words(3), call: replaceAll},
		"to_upper":                  {arguments: words(1), call: toUpper},
		"to_lower":                  {arguments: words(1), call: toLower},
		"trim":                      {arguments: words(2), call: trim},
		"trim_prefix":               {arguments: words(2), call: trimPrefix},
		"split":                     {arguments: words(2), call: split},
		"truncate":                  {arguments: []kind{aString, aNumber}, call: truncate},
		"to_boolean":                {arguments: words(1), call: toBoolean},
		"path_canonicalize":         {arguments: words(1), call: pathCanonicalize},
		"regex_match":               {arguments: []kind{aString, textOrNumber}, call: regexMatch},
		"regex_replace_all":         {arguments: []kind{aString, textOrNumber, textOrNumber}, call: regexReplaceAll},
		"regex_replace_all_literal": {arguments: []kind{aString, textOrNumber, textOrNumber}, call: regexReplaceAllLiteral},
		"pattern_match":             {arguments: []kind{aString, textOrNumber}, call: patternMatch},
		"semver_compare":            {arguments: words(2), call: semverCompare},
	}
}

// numberFunctions work on numbers, quantities and durations.
func numberFunctions() map[string]function {
	return map[string]function{
		"add":      {arguments: []kind{anything, anything}, call: add},
		"subtract": {arguments: []kind{anything, anything}, call: subtract},
		"multiply": {arguments: []kind{anything, anything}, call: multiply},
		"divide":   {arguments: []kind{anything, anything}, call: divide},
		"modulo":   {arguments: []kind{anything, anything}, call: modulo},
		"sum":      {arguments: []kind{anArray}, call: sum},
		"round":    {arguments: []kind{aNumber, aNumber}, call: round},
	}
}

// timeFunctions work on times.
func (e *Engine) timeFunctions() map[string]function {
	return map[string]function{
		"time_since":    {arguments: words(3), call: e.timeSince},
		"time_now":      {arguments: nil, call: e.timeNow},
		"time_now_utc":  {arguments: nil, call: e.timeNowUTC},
		"time_to_cron":  {arguments: words(1), call: timeToCron},
		"time_add":      {arguments: words(2), call: timeAdd},
		"time_parse":    {arguments: words(2), call: timeParse},
		"time_utc":      {arguments: words(1), call: timeUTC},
		"time_diff":     {arguments: words(2), call: timeDiff},
		"time_before":   {arguments: words(2), call: timeBefore},
		"time_after":    {arguments: words(2), call: timeAfter},
		"time_between":  {arguments: words(3), call: timeBetween},
		"time_truncate": {arguments: words(2), call: timeTruncate},
	}
}

// dataFunctions work on everything else.
func (e *Engine) dataFunctions() map[string]function {
	return map[string]function{
		"label_match":       {arguments: []kind{anObject, anObject}, call: labelMatch},
		"lookup":            {arguments: []kind{anObject | anArray, textOrNumber}, call: lookup},
		"items":             {arguments: []kind{anObject | anArray, aString, aString}, call: items},
		"object_from_lists": {arguments: []kind{anArray, anArray}, call: objectFromLists},

		"base64_decode": {arguments: words(1), call: base64Decode},
		"base64_encode": {arguments: words(1), call: base64Encode},
		"parse_json":    {arguments: words(1), call: parseJSON},
		"parse_yaml":    {arguments: words(1), call: parseYAML},
		"x509_decode":   {arguments: words(1), call: x509Decode},
		"sha256":        {arguments: words(1), call: sumSHA256},
		"sha1":          {arguments: words(1), call: sumSHA1},
		"md5":           {arguments: words(1), call: sumMD5},

		"random":          {arguments: words(1), call: e.random},
		"image_normalize": {arguments: words(1), call: e.imageNormalize},
		"is_external_url": {arguments: words(1), call: e.isExternalURL},
	}
}

// replacements replace builtins, to keep order (keys, values) or a bound (join, to_string).
func replacements() map[string]function {
	return map[string]function{
		"keys":      {arguments: []kind{anObject}, call: keys, shallow: true},
		"values":    {arguments: []kind{anObject}, call: values, shallow: true},
		"join":      {arguments: []kind{aString, anArray}, call: join},
		"to_string": {arguments: []kind{anything}, call: toString},
	}
}
