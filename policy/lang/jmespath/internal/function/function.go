package function

import (
	"io"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// Function is one that Kyverno adds, or that replaces a builtin.
type Function struct {
	Arguments []Kind
	// Call gets arguments of the right number and kinds.
	Call func(a Arguments) (any, error)
	// Cost is the cost of a call beyond the traversal of its arguments and its result; it may be
	// nil.
	Cost func(a Arguments) (int, error)
	// Variadic functions accept the last argument one or more times.
	Variadic bool
	// Shallow functions do not read nested values of their arguments beyond those that Cost
	// counts.
	Shallow bool
	// Native functions are called by the library itself.
	Native bool
}

// Takes reports whether a function accepts n arguments.
func (f Function) Takes(n int) bool {
	return n == len(f.Arguments) || f.Variadic && n > len(f.Arguments)
}

// Arguments are the arguments of a call, of the kinds that the function declares.
type Arguments []any

// Text returns an argument that is a string.
func (a Arguments) Text(i int) string { return a[i].(string) }

// Number returns an argument that is a number.
func (a Arguments) Number(i int) float64 { return a[i].(float64) }

// List returns an argument that is an array.
func (a Arguments) List(i int) []any { return a[i].([]any) }

// Object returns an argument that is an object.
func (a Arguments) Object(i int) map[string]any { return a[i].(map[string]any) }

// Library holds the external dependencies of the functions.
type Library struct {
	Now    func() time.Time
	Random io.Reader
	// Hosts resolves names for is_external_url; nil refuses names.
	Hosts           HostLookup
	DefaultRegistry string
}

// HostLookup resolves a host name to its addresses.
type HostLookup interface {
	LookupHost(name string) ([]netip.Addr, error)
}

// Table lists the functions of Kyverno 1.19, and replacements of the library's own.
func (l Library) Table() map[string]Function {
	table := map[string]Function{}
	for _, functions := range []map[string]Function{
		textFunctions(), numberFunctions(), l.timeFunctions(), l.dataFunctions(), inventoryFunctions(), replacements(),
	} {
		maps.Copy(table, functions)
	}
	return table
}

// Strings returns the kinds of n strings.
func Strings(n int) []Kind { return slices.Repeat([]Kind{String}, n) }

// TextOrNumber are texts, and numbers that are read as text.
const TextOrNumber = String | Number

// textFunctions work on strings.
func textFunctions() map[string]Function {
	return map[string]Function{
		"compare":                   {Arguments: Strings(2), Call: compare},
		"equal_fold":                {Arguments: Strings(2), Call: equalFold},
		"replace":                   {Arguments: []Kind{String, String, String, Number}, Call: replace},
		"replace_all":               {Arguments: Strings(3), Call: replaceAll},
		"to_upper":                  {Arguments: Strings(1), Call: toUpper},
		"to_lower":                  {Arguments: Strings(1), Call: toLower},
		"trim":                      {Arguments: Strings(2), Call: trim},
		"trim_prefix":               {Arguments: Strings(2), Call: trimPrefix},
		"split":                     {Arguments: Strings(2), Call: split},
		"truncate":                  {Arguments: []Kind{String, Number}, Call: truncate},
		"to_boolean":                {Arguments: Strings(1), Call: toBoolean},
		"path_canonicalize":         {Arguments: Strings(1), Call: pathCanonicalize},
		"regex_match":               {Arguments: []Kind{String, TextOrNumber}, Call: regexMatch},
		"regex_replace_all":         {Arguments: []Kind{String, TextOrNumber, TextOrNumber}, Call: regexReplaceAll},
		"regex_replace_all_literal": {Arguments: []Kind{String, TextOrNumber, TextOrNumber}, Call: regexReplaceAllLiteral},
		"pattern_match":             {Arguments: []Kind{String, TextOrNumber}, Call: patternMatch},
		"semver_compare":            {Arguments: Strings(2), Call: semverCompare},
	}
}

// numberFunctions work on numbers, quantities and durations.
func numberFunctions() map[string]Function {
	return map[string]Function{
		"add":      {Arguments: []Kind{Anything, Anything}, Call: add},
		"subtract": {Arguments: []Kind{Anything, Anything}, Call: subtract},
		"multiply": {Arguments: []Kind{Anything, Anything}, Call: multiply},
		"divide":   {Arguments: []Kind{Anything, Anything}, Call: divide},
		"modulo":   {Arguments: []Kind{Anything, Anything}, Call: modulo},
		"sum":      {Arguments: []Kind{Array}, Call: sum},
		"round":    {Arguments: []Kind{Number, Number}, Call: round},
	}
}

// timeFunctions work on times.
func (l Library) timeFunctions() map[string]Function {
	return map[string]Function{
		"time_since":    {Arguments: Strings(3), Call: l.timeSince},
		"time_now":      {Arguments: nil, Call: l.timeNow},
		"time_now_utc":  {Arguments: nil, Call: l.timeNowUTC},
		"time_to_cron":  {Arguments: Strings(1), Call: timeToCron},
		"time_add":      {Arguments: Strings(2), Call: timeAdd},
		"time_parse":    {Arguments: Strings(2), Call: timeParse},
		"time_utc":      {Arguments: Strings(1), Call: timeUTC},
		"time_diff":     {Arguments: Strings(2), Call: timeDiff},
		"time_before":   {Arguments: Strings(2), Call: timeBefore},
		"time_after":    {Arguments: Strings(2), Call: timeAfter},
		"time_between":  {Arguments: Strings(3), Call: timeBetween},
		"time_truncate": {Arguments: Strings(2), Call: timeTruncate},
	}
}

// dataFunctions work on everything else.
func (l Library) dataFunctions() map[string]Function {
	return map[string]Function{
		"label_match":       {Arguments: []Kind{Object, Object}, Call: labelMatch},
		"lookup":            {Arguments: []Kind{Object | Array, TextOrNumber}, Call: lookup},
		"items":             {Arguments: []Kind{Object | Array, String, String}, Call: items},
		"object_from_lists": {Arguments: []Kind{Array, Array}, Call: objectFromLists},

		"base64_decode": {Arguments: Strings(1), Call: base64Decode},
		"base64_encode": {Arguments: Strings(1), Call: base64Encode},
		"parse_json":    {Arguments: Strings(1), Call: parseJSON},
		"parse_yaml":    {Arguments: Strings(1), Call: parseYAML},
		"x509_decode":   {Arguments: Strings(1), Call: x509Decode},
		"sha256":        {Arguments: Strings(1), Call: sumSHA256},
		"sha1":          {Arguments: Strings(1), Call: sumSHA1},
		"md5":           {Arguments: Strings(1), Call: sumMD5},

		"random":          {Arguments: Strings(1), Call: l.random},
		"image_normalize": {Arguments: Strings(1), Call: l.imageNormalize},
		"is_external_url": {Arguments: Strings(1), Call: l.isExternalURL},
	}
}

// replacements replace builtins, to keep order (keys, values), a bound (join, to_string) or the
// numbers of JSON (to_number).
func replacements() map[string]Function {
	return map[string]Function{
		"keys":      {Arguments: []Kind{Object}, Call: keys, Shallow: true},
		"values":    {Arguments: []Kind{Object}, Call: Values, Shallow: true},
		"join":      {Arguments: []Kind{String, Array}, Call: join},
		"to_string": {Arguments: []Kind{Anything}, Call: toString},
		"to_number": {Arguments: []Kind{Anything}, Call: toNumber, Shallow: true},
	}
}
