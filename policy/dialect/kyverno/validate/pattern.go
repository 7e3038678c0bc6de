package validate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// onePattern is a rule's pattern.
type onePattern struct {
	path    string
	pattern *pattern.Pattern
}

func (c compiler) pattern(doc any, path string) (checker, error) {
	p, err := c.compilePattern(doc, path)
	if err != nil {
		return nil, err
	}
	return &onePattern{path: path, pattern: p}, nil
}

// compilePattern refuses a pattern without fields, which holds for every object.
func (c compiler) compilePattern(doc any, path string) (*pattern.Pattern, error) {
	if members, isObject := doc.(map[string]any); isObject && len(members) == 0 {
		return nil, field.Fail(path, "is empty, and so would hold for every object: write its fields")
	}
	p, err := pattern.Compile(c.context().Engine, doc)
	return p, field.Below(path, err)
}

// looked returns the value that patterns are matched against: the element of a foreach, or the
// object; false if there is none.
func (q *question) looked() (any, bool) {
	if q.scoped {
		return q.element, true
	}
	if q.deletes() {
		return nil, false
	}
	return q.about.Subject.Object.Map(), true
}

func (o *onePattern) check(q *question, data variable.Context) outcome {
	looked, ok := q.looked()
	if !ok {
		return outcome{}
	}
	switch r := o.pattern.Match(data, looked); {
	case r.Held:
		return outcome{result: policy.Pass, doubtful: r.Partly} // in Kyverno the rule is skipped
	case r.Err != nil:
		return undecided(o.path, r.Err)
	case r.Skip:
		return answered(rule.Skip("the pattern does not apply: " + at(r)))
	default:
		return outcome{result: policy.Fail, reasons: []policy.Reason{{
			Code: policy.Violated, Message: q.rule.message.failed(data, r.Path), Where: r.Path, Found: r.Why,
		}}}
	}
}

func at(r pattern.Result) string {
	if r.Path == "" {
		return r.Why
	}
	return r.Path + ": " + r.Why
}

// anyPattern are patterns of which one is to hold.
type anyPattern struct {
	path     string
	patterns []*pattern.Pattern
}

func (c compiler) anyPattern(docs []any, path string) (checker, error) {
	if len(docs) == 0 || len(docs) > maxPatterns {
		return nil, field.Fail(path, "want 1 to %d patterns, found %d", maxPatterns, len(docs))
	}
	s := &anyPattern{path: path}
	for i, doc := range docs {
		p, err := c.compilePattern(doc, path+"["+strconv.Itoa(i)+"]")
		if err != nil {
			return nil, err
		}
		s.patterns = append(s.patterns, p)
	}
	return s, nil
}

func (s *anyPattern) check(q *question, data variable.Context) outcome {
	looked, ok := q.looked()
	if !ok {
		return outcome{}
	}
	var failures, skips, found []string
	var unknown *outcome
	for i, p := range s.patterns {
		r := p.Match(data, looked)
		switch {
		case r.Held && !r.Partly:
			return passed()
		case r.Err != nil:
			if unknown == nil {
				one := undecided(s.path+"["+strconv.Itoa(i)+"]", r.Err)
				unknown = &one
			}
		case r.Skip, r.Partly: // as in Kyverno
			skips = append(skips, fmt.Sprintf("rule %s[%d] skipped: %s", q.rule.Name(), i, at(r)))
		case r.Path == "":
			failures = append(failures, fmt.Sprintf("rule %s[%d] failed: %s", q.rule.Name(), i, r.Why))
		default:
			failures, found = append(failures, fmt.Sprintf("rule %s[%d] failed at path %s", q.rule.Name(), i, r.Path)), append(found, r.Path+": "+r.Why)
		}
	}
	switch {
	case unknown != nil:
		return *unknown // of the others none holds
	case len(failures) == 0:
		return answered(rule.Skip(strings.Join(skips, " ")))
	}
	return outcome{result: policy.Fail, reasons: []policy.Reason{{
		Code: policy.Violated, Message: q.rule.message.failedAll(data, strings.Join(failures, " ")), Found: strings.Join(found, "; "),
	}}}
}
