package review

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
)

// MaxField bounds each untrusted text in a denial, in bytes.
const MaxField = 512

// Words for the answers. A failed verification and a denial always have different words.
const (
	Denied     = "denied"
	Unverified = "could not be verified"
)

// Word returns the word for a result that does not allow.
func Word(result gate.Result) string {
	if result == gate.Error {
		return Unverified
	}
	return Denied
}

// Plain sanitises untrusted text for one line: without control characters, and of bounded length in
// bytes.
func Plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	const mark = "..."
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// Summary counts the images of an object by result, or returns the result of an object without
// denied images.
func Summary(o *gate.Outcome) string {
	of := fmt.Sprintf("of %d images ", len(o.Verdicts))
	if len(o.Verdicts) == 1 {
		of = "of 1 image "
	}
	count := map[string]int{}
	for i := range o.Verdicts {
		if result := o.Verdicts[i].Result; !result.Admits() {
			count[Word(result)]++
		}
	}
	var parts []string
	for _, word := range []string{Denied, Unverified} {
		if count[word] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s%s", count[word], of, word))
			of = ""
		}
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case o.Result == gate.Deny:
		return Denied
	}
	return Unverified
}

// RuleOf returns the policy and the rule of a decision.
func RuleOf(d *policy.Decision) string {
	if d.Check.Policy == nil {
		return Plain(d.Check.Rule, MaxField)
	}
	return Rule(d.Check.Policy, d.Check.Rule)
}

// Rule names a rule of a policy.
func Rule(p *policy.Policy, rule string) string {
	return Plain(p.ID(), MaxField) + ", rule " + Plain(rule, MaxField)
}

// Fix returns the advice of a reason, or that of its code.
func Fix(r policy.Reason) string {
	if r.Hint == "" {
		return hint.ForGateway(hint.Of(r.Code))
	}
	return hint.ForGateway(r.Hint)
}

// Codes returns the distinct codes of an outcome that does not allow, sorted: those of the object,
// and the first one of each denied image.
func Codes(o *gate.Outcome) string {
	codes := map[string]bool{}
	for _, reason := range o.Reasons {
		codes[string(reason.Code)] = true
	}
	for i := range o.Verdicts {
		if v := &o.Verdicts[i]; !v.Result.Admits() && len(v.Reasons) > 0 {
			codes[string(v.Reasons[0].Code)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(codes)), ",")
}

// WriteJSON sends a response.
func WriteJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", JSON)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // client disconnected
}
