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
}

type arguments []any

func (a arguments) text(i int) string           { return a[i].(string) }
func (a arguments) number(i int) float64        { return a[i].(float64) }
func (a arguments) list(i int) []any            { return a[i].([]any) }
func (a arguments) object(i int) map[string]any { return a[i].(map[string]any) }

// entry makes the library's form of a function. The checks are ours, for the
// library's messages print Go types.
func (f function) entry(name string) jp.FunctionEntry {
	return jp.FunctionEntry{Name: name, Handler: func(given []any) (any, error) {
		if len(given) != len(f.arguments) {
			return nil, fmt.Errorf("%s: want %d arguments, got %d", name, len(f.arguments), len(given))
		}
		for i, want := range f.arguments {
			if got := kindOf(given[i]); got&want == 0 {
				return nil, fmt.Errorf("%s: argument %d: want %s, got %s", name, i+1, want, got)
			}
			if s, ok := given[i].(string); ok && len(s) > maxText {
				return nil, fmt.Errorf("%s: argument %d: %w", name, i+1, tooLarge("a string", len(s), maxText))
			}
		}
		if err := checkArguments(name, given); err != nil {
			return nil, err
		}
		result, err := f.call(given)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return result, nil
	}}
}

// checkArguments keeps functions from walking values that refer to themselves
// many times over. The functions that Compile puts in walk nothing.
func checkArguments(name string, given []any) error {
	if name == copyList || name == boundList || name == memberValues {
		return nil
	}
	for i, argument := range given {
		if err := checkResult(argument); err != nil {
			return fmt.Errorf("%s: argument %d: %w", name, i+1, err)
		}
	}
	return nil
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

// builtin reports whether the library itself has a function.
func builtin(name string) bool {
	switch name {
	case "abs", "avg", "ceil", "contains", "ends_with", "floor", "join", "keys", "length", "map", "max", "max_by",
		"merge", "min", "min_by", "not_null", "reverse", "sort", "sort_by", "starts_with", "sum", "to_array",
		"to_number", "to_string", "type", "values":
		return true
	}
	return false
}

// Functions that Compile puts into an expression; their names are none that an
// expression can call.
const (
	copyList     = "(copy)"
	boundList    = "(bound)"
	memberValues = "(values)"
)

// table lists every function of Kyverno 1.19, and builtins that are replaced.
func (e *Engine) table() map[string]function {
	table := map[string]function{}
	for _, functions := range []map[string]function{textFunctions(), numberFunctions(), e.timeFunctions(), e.dataFunctions(), replacements()} {
		maps.Copy(table, functions)
	}
	return table
}

// words returns the kinds of n strings.
func words(n int) []kind { return slices.Repeat([]kind{aString}, n) }

const textOrNumber = aString | aNumber

// textFunctions work on strings.
func textFunctions() map[string]function {
	return map[string]function{
		"compare":                   {words(2), compare},
		"equal_fold":                {words(2), equalFold},
		"replace":                   {[]kind{aString, aString, aString, aNumber}, replace},
		"replace_all":               {words(3), replaceAll},
		"to_upper":                  {words(1), toUpper},
		"to_lower":                  {words(1), toLower},
		"trim":                      {words(2), trim},
		"trim_prefix":               {words(2), trimPrefix},
		"split":                     {words(2), split},
		"truncate":                  {[]kind{aString, aNumber}, truncate},
		"to_boolean":                {words(1), toBoolean},
		"path_canonicalize":         {words(1), pathCanonicalize},
		"regex_match":               {[]kind{aString, textOrNumber}, regexMatch},
		"regex_replace_all":         {[]kind{aString, textOrNumber, textOrNumber}, regexReplaceAll},
		"regex_replace_all_literal": {[]kind{aString, textOrNumber, textOrNumber}, regexReplaceAllLiteral},
		"pattern_match":             {[]kind{aString, textOrNumber}, patternMatch},
		"semver_compare":            {words(2), semverCompare},
	}
}

// numberFunctions work on numbers, quantities and durations.
func numberFunctions() map[string]function {
	return map[string]function{
		"add":      {[]kind{anything, anything}, add},
		"subtract": {[]kind{anything, anything}, subtract},
		"multiply": {[]kind{anything, anything}, multiply},
		"divide":   {[]kind{anything, anything}, divide},
		"modulo":   {[]kind{anything, anything}, modulo},
		"sum":      {[]kind{anArray}, sum},
		"round":    {[]kind{aNumber, aNumber}, round},
	}
}

// timeFunctions work on times.
func (e *Engine) timeFunctions() map[string]function {
	return map[string]function{
		"time_since":    {words(3), e.timeSince},
		"time_now":      {nil, e.timeNow},
		"time_now_utc":  {nil, e.timeNowUTC},
		"time_to_cron":  {words(1), timeToCron},
		"time_add":      {words(2), timeAdd},
		"time_parse":    {words(2), timeParse},
		"time_utc":      {words(1), timeUTC},
		"time_diff":     {words(2), timeDiff},
		"time_before":   {words(2), timeBefore},
		"time_after":    {words(2), timeAfter},
		"time_between":  {words(3), timeBetween},
		"time_truncate": {words(2), timeTruncate},
	}
}

// dataFunctions work on everything else.
func (e *Engine) dataFunctions() map[string]function {
	return map[string]function{
		"label_match":       {[]kind{anObject, anObject}, labelMatch},
		"lookup":            {[]kind{anObject | anArray, textOrNumber}, lookup},
		"items":             {[]kind{anObject | anArray, aString, aString}, items},
		"object_from_lists": {[]kind{anArray, anArray}, objectFromLists},

		"base64_decode": {words(1), base64Decode},
		"base64_encode": {words(1), base64Encode},
		"parse_json":    {words(1), parseJSON},
		"parse_yaml":    {words(1), parseYAML},
		"x509_decode":   {words(1), x509Decode},
		"sha256":        {words(1), sumSHA256},
		"sha1":          {words(1), sumSHA1},
		"md5":           {words(1), sumMD5},

		"random":          {words(1), e.random},
		"image_normalize": {words(1), e.imageNormalize},
		"is_external_url": {words(1), e.isExternalURL},
	}
}

// replacements stand in for builtins, to keep order (keys, values) or a bound
// (join, to_string), and are what Compile puts into expressions.
func replacements() map[string]function {
	return map[string]function{
		"keys":       {[]kind{anObject}, keys},
		"values":     {[]kind{anObject}, values},
		"join":       {[]kind{aString, anArray}, join},
		"to_string":  {[]kind{anything}, toString},
		copyList:     {[]kind{anything}, copied},
		boundList:    {[]kind{anything}, bounded},
		memberValues: {[]kind{anything}, valuesOfAny},
	}
}
