package kyverno

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// contradictions refuses settings that prevent the rules from taking effect, as Kyverno does when
// the policy is written. In Kyverno an absent background means true. Here an absent one omits
// rules from scans that cannot evaluate them, with the reason, and only an explicit one is
// refused.
func (s *spec) contradictions() error {
	var errs []error
	admits := s.Admission == nil || *s.Admission
	if !admits && s.Background != nil && !*s.Background {
		errs = append(errs, field.Fail("spec.background", "is false, as spec.admission is, and so the policy would never be evaluated"))
	}
	for i, raw := range s.Rules {
		var doc ruleShape
		if json.Unmarshal(raw, &doc) != nil {
			continue // compiling the rule returns the error
		}
		errs = append(errs, s.contradictionsOf(&doc, raw, "spec.rules["+strconv.Itoa(i)+"]", admits)...)
	}
	return errors.Join(errs...)
}

// ruleShape is the part of a rule that settings may contradict.
type ruleShape struct {
	Match struct {
		kinded
		Any []kinded `json:"any"`
		All []kinded `json:"all"`
	} `json:"match"`
	Preconditions any   `json:"preconditions"`
	Validate      any   `json:"validate"`
	VerifyImages  []any `json:"verifyImages"`
	Generate      any   `json:"generate"`
	Mutate        *struct {
		MutateExistingOnPolicyUpdate *bool            `json:"mutateExistingOnPolicyUpdate"`
		Targets                      []map[string]any `json:"targets"`
	} `json:"mutate"`
}

type kinded struct {
	Resources struct {
		Kinds []string `json:"kinds"`
	} `json:"resources"`
}

func (r *ruleShape) kinds() []string {
	list := r.Match.Resources.Kinds
	for _, one := range slices.Concat(r.Match.Any, r.Match.All) {
		list = append(list, one.Resources.Kinds...)
	}
	return list
}

func (s *spec) contradictionsOf(doc *ruleShape, raw json.RawMessage, path string, admits bool) []error {
	var errs []error
	fail := func(at, format string, args ...any) { errs = append(errs, field.Fail(at, format, args...)) }
	if !admits && (doc.Mutate != nil || doc.Generate != nil) {
		fail("spec.admission", "is false, and the rule %s changes or generates objects when others are admitted", path)
	}
	scanned := s.Background != nil && *s.Background
	if scanned && doc.Validate != nil {
		if reason := s.unscanned(); reason != "" {
			fail("spec.background", "is true, and %s: write background: false, or remove what reads the requester", reason)
		}
		for _, kind := range doc.kinds() {
			if namesSubresource(kind) {
				fail("spec.background", "is true, and the rule %s matches the subresource %s, of which no object exists to scan: write background: false", path, kind)
			}
		}
	}
	if len(doc.VerifyImages) > 0 && slices.ContainsFunc(doc.kinds(), func(kind string) bool { return strings.Trim(kind, "*/") == "" && kind != "" }) {
		fail(path+".match", "every kind is matched, and most have no images: name the kinds, such as Pod")
	}
	if doc.Mutate == nil || len(doc.Mutate.Targets) == 0 {
		existing := s.MutateExistingOnPolicyUpdate
		at := "spec.mutateExistingOnPolicyUpdate"
		if doc.Mutate != nil && doc.Mutate.MutateExistingOnPolicyUpdate != nil {
			existing, at = doc.Mutate.MutateExistingOnPolicyUpdate, path+".mutate.mutateExistingOnPolicyUpdate"
		}
		if doc.Mutate != nil && existing != nil && *existing {
			fail(at, "is true, and the rule has no mutate.targets: name the objects that it changes")
		}
		// Conditions of attestations read the statement.
		if len(doc.VerifyImages) == 0 && !bytes.Contains(raw, []byte(`"name":"target"`)) && readsTarget(decoded(raw)) {
			fail(path, "a variable reads target, which only a rule with mutate.targets has")
		}
		return errs
	}
	if readsTarget(doc.Preconditions) {
		fail(path+".preconditions", "a variable reads target, which is not chosen yet: write the condition into mutate.targets[].preconditions")
	}
	for i, target := range doc.Mutate.Targets {
		for _, name := range []string{"apiVersion", "kind", "namespace", "name"} {
			if readsTarget(target[name]) {
				fail(path+".mutate.targets["+strconv.Itoa(i)+"]."+name, "a variable reads target, which this field chooses")
			}
		}
	}
	return errs
}

func decoded(raw json.RawMessage) (value any) {
	_ = json.Unmarshal(raw, &value) // it was decoded before
	return value
}

// readsTarget reports whether a variable in a value reads target.
func readsTarget(value any) bool {
	switch v := value.(type) {
	case string:
		return readsIn(v)
	case []any:
		return slices.ContainsFunc(v, readsTarget)
	case map[string]any:
		for key, member := range v {
			if readsIn(key) || readsTarget(member) {
				return true
			}
		}
	}
	return false
}

// readsIn searches a text for variables that begin with target.
func readsIn(text string) bool {
	for {
		_, after, found := strings.Cut(text, "{{")
		if !found {
			return false
		}
		expression := strings.TrimLeft(after, " \t\n")
		if rest, is := strings.CutPrefix(expression, "target"); is && (strings.HasPrefix(rest, ".") || strings.HasPrefix(strings.TrimLeft(rest, " "), "}}")) {
			return true
		}
		text = after
	}
}

// namesSubresource reports whether the last part of a kind is a subresource: it is in
// lower case, and the kind before it is not.
func namesSubresource(kind string) bool {
	parts := strings.Split(kind, "/")
	if len(parts) < 2 {
		return false
	}
	last, before := parts[len(parts)-1], parts[len(parts)-2]
	return last != "" && last == strings.ToLower(last) && last != "*" && before != "" && before != strings.ToLower(before)
}
