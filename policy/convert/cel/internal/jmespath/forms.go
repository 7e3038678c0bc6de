package jmespath

import (
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

// form is the equivalent of a function.
type form struct {
	// shown is the form in CEL, in the documentation; empty if there is none.
	shown string
	// note is a limit of the form, or the reason why there is none.
	note    string
	compile func(c *compiler, arguments []term.Term) (term.Term, bool)
}

// forms has every function of the source.
func forms() map[string]form {
	all := map[string]form{}
	for _, part := range []map[string]form{formsOfTexts(), formsOfLists(), formsOfNumbers(), formsOfData(), without()} {
		maps.Copy(all, part)
	}
	return all
}

func formsOfTexts() map[string]form {
	text, truth := shape.OfText(), shape.OfBool()
	const letters = "Only letters of ASCII: where it is compared with a text that other letters cannot become."
	return map[string]form{
		"starts_with":   {"text.startsWith('a')", "", method("startsWith", truth)},
		"ends_with":     {"text.endsWith('a')", "", method("endsWith", truth)},
		"to_upper":      {"text.upperAscii()", letters, letterCase("upperAscii")},
		"to_lower":      {"text.lowerAscii()", letters, letterCase("lowerAscii")},
		"split":         {"text.split(',')", "", method("split", shape.OfList(text))},
		"replace_all":   {"text.replace('a', 'b')", "", method("replace", text)},
		"regex_match":   {"text.matches('^a$')", "The expression is written in the policy.", regexMatch},
		"pattern_match": {"text.startsWith('a')", "The pattern is written in the policy; others are endsWith, contains and matches.", patternMatch},
		"base64_encode": {"base64.encode(bytes(text))", "", call("base64.encode(bytes(", "))", text)},
		"md5":           {"md5(text)", "", call("md5(", ")", text)},
		"sha1":          {"sha1(text)", "", call("sha1(", ")", text)},
		"sha256":        {"sha256(text)", "", call("sha256(", ")", text)},
	}
}

func formsOfLists() map[string]form {
	return map[string]form{
		"length":      {"list.size()", "", length},
		"contains":    {"'a' in list", "Of a text: text.contains('a').", contains},
		"keys":        {"object.map(key, key)", "Where names are looked for or counted, since their order is not that of the source.", keys},
		"join":        {"list.join(', ')", "", joined},
		"label_match": {"labels.all(key, key in others && others[key] == labels[key])", "", labelMatch},
	}
}

func formsOfNumbers() map[string]form {
	return map[string]form{
		"divide": {"quantity(a).asApproximateFloat() / quantity(b).asApproximateFloat()", "Of two quantities.", divide},
	}
}

func formsOfData() map[string]form {
	return map[string]form{
		"time_since": {"time.now() - timestamp(text)", "In RFC 3339 form, until now, where it is ordered with a duration.", timeSince},
		"to_string":  {"string(value)", "Of texts, whole numbers and booleans that are sure to be there, or have a default.", toString},
		"parse_json": {"json.unmarshal(text)", "", call("json.unmarshal(", ")", shape.Unknown())},
		"parse_yaml": {"yaml.parse(text)", "", call("yaml.parse(", ")", shape.Unknown())},
	}
}

// without are the functions that have no form, with the reasons.
func without() map[string]form {
	const (
		amounts  = "It takes numbers, quantities and durations, and writes the result as the first one is written; CEL has no text of a quantity."
		clock    = "The result is a text in a format of its own; time.now() is a timestamp."
		rounds   = "Numbers of the source have no whole type."
		order    = "Elements are ordered by an expression; CEL's sortBy is of other types."
		objects  = "It makes an object whose names are data."
		anything = "The result has another type for each value."
	)
	all := map[string]form{}
	for reason, names := range map[string][]string{
		amounts: {"add", "subtract", "sum", "multiply", "modulo"}, rounds: {"abs", "ceil", "floor", "round", "avg"},
		clock: {"time_add", "time_after", "time_before", "time_between", "time_diff", "time_now", "time_now_utc", "time_parse",
			"time_to_cron", "time_truncate", "time_utc"},
		"That of no elements is null in the source, and an error in CEL.": {"max", "min"},
		order: {"sort_by", "max_by", "min_by", "sort"}, objects: {"items", "object_from_lists", "merge"},
		anything: {"type", "not_null", "to_array", "lookup", "reverse", "values", "map"},
		"A text that is no number is an error in the source, and other spellings of numbers are none in CEL.": {"to_number"},
		"A range of versions has alternatives and wildcards; semver() compares two versions.":                 {"semver_compare"},
		"Letters of all alphabets are compared; CEL changes those of ASCII alone.":                            {"equal_fold"},
		"CEL's regex.replace has other references to groups.":                                                 {"regex_replace_all"},
		"The replacement may have signs that CEL reads as references to groups.":                              {"regex_replace_all_literal"},
		"The number of replacements is a number of the source.":                                               {"replace"},
		"Signs are cut off that the policy names; CEL's trim() cuts off space.":                               {"trim"},
		"It has no function in CEL.":            {"trim_prefix", "path_canonicalize", "to_boolean"},
		"The length is a number of the source.": {"truncate"},
		"A random text differs from one evaluation to the next, so that nothing shows that both forms are equal.": {"random"},
		"Name resolution is no part of CEL.":                              {"is_external_url"},
		"The default registry is a setting of the gateway.":               {"image_normalize"},
		"The members of the decoded certificate have other names in CEL.": {"x509_decode"},
		"CEL reads the attestation itself: packages(image, attestation, attestors), with isPackage, isLicensed and requiresLicense.": {
			"packages", "packages_of", "packages_not_licensed", "packages_requiring_license"},
		"CEL reads the attestations themselves: vulnerabilities(image, scan, scanners, vex, authors).": {"vulnerabilities"},
		"CEL decodes a text without padding, too, which is an error in the source.":                    {"base64_decode"},
		"It orders texts; compare them with == or <.":                                                  {"compare"},
	} {
		for _, name := range names {
			all[name] = form{note: reason}
		}
	}
	return all
}

// Function is a row of the table of functions.
type Function struct {
	Name string
	// CEL is the form; empty if there is none.
	CEL string
	// Note is a limit, or the reason why there is no form.
	Note string
}

// Functions returns the functions of JMESPath with their forms, sorted by name.
func Functions() []Function {
	var all []Function
	table := forms()
	for _, name := range slices.Sorted(maps.Keys(table)) {
		all = append(all, Function{Name: name, CEL: table[name].shown, Note: table[name].note})
	}
	return all
}
