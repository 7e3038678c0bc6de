package equality

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// The results of a Verdict.
const (
	Admitted = "admitted"
	Denied   = "denied"
	// Failed: a rule could not be evaluated, and the object is refused for that.
	Failed = "error"
)

// Verdict is the part of an evaluation that users see.
type Verdict struct {
	// Result is Admitted, Denied or Failed.
	Result string `json:"result"`
	// Reported are the failures that deny nothing: the actions, such as audit, with the word error for a rule
	// that could not be evaluated.
	Reported []string `json:"reported,omitempty"`
	// Messages are the authors' texts of the rules that failed, without the additions of engines about rules and
	// paths; sorted. A failure without a text of its author has none.
	Messages []string `json:"messages,omitempty"`
	// Object is the object after its mutation; nil where nothing changed. Made are the objects that were
	// generated.
	Object map[string]any   `json:"object,omitempty"`
	Made   []map[string]any `json:"generated,omitempty"`
	// Altered are the other objects that were mutated.
	Altered []map[string]any `json:"mutated,omitempty"`
	// Deletes are the decisions of rules that delete the object where it exists: yes with the treatment of
	// dependent objects, or that they could not be evaluated.
	Deletes []string `json:"deletes,omitempty"`

	rules       []string // results by rule, for the search for new behaviour
	isExplained bool     // every failure has a text of its author
	matched     bool
}

// verdictOf is the verdict about an object.
func verdictOf(a *evaluation.Answer, before workload.Object) Verdict {
	v := Verdict{Result: Admitted, isExplained: true}
	switch {
	case a.Err != nil || a.Outcome.Result == gate.Error:
		v.Result = Failed
	case !a.Outcome.Result.Admits():
		v.Result = Denied
	}
	changed := false
	for i := range a.Rules {
		r := &a.Rules[i]
		v.rules = append(v.rules, r.Rule+"="+r.Result)
		if r.Deletion != nil {
			v.matched = v.matched || r.Deletion.Verdict != ""
			if decided := deletes(r); decided != "" {
				v.Deletes = append(v.Deletes, decided)
			}
			continue
		}
		v.matched, changed = true, changed || r.Changed
		v.Made = append(v.Made, r.Made...)
		v.alter(r)
		switch {
		case r.Result == evaluation.Error && r.Action.Admits():
			v.Reported = append(v.Reported, string(r.Action)+" error")
		case r.Result == evaluation.Fail && r.Action.Admits():
			v.Reported = append(v.Reported, string(r.Action))
			v.explain(r)
		case r.Result == evaluation.Fail:
			v.explain(r)
		}
	}
	if changed && !reflect.DeepEqual(a.Object.Content(), before.Content()) {
		v.Object = a.Object.Content()
	}
	slices.Sort(v.Messages)
	slices.Sort(v.Reported)
	slices.Sort(v.rules)
	slices.Sort(v.Deletes)
	v.Messages, v.Reported, v.Deletes = slices.Compact(v.Messages), slices.Compact(v.Reported), slices.Compact(v.Deletes)
	for _, list := range [][]map[string]any{v.Made, v.Altered} {
		slices.SortFunc(list, func(a, b map[string]any) int { return strings.Compare(canonical(a), canonical(b)) })
	}
	return v
}

// alter adds the objects that a rule changed because of another.
func (v *Verdict) alter(r *evaluation.RuleResult) {
	for i := range r.Altered {
		one := &r.Altered[i]
		switch {
		case one.Result == evaluation.Error:
			v.Reported = append(v.Reported, "mutation of "+one.Target.String()+" error")
		case !reflect.DeepEqual(one.After.Content(), one.Target.Content()):
			v.Altered = append(v.Altered, one.After.Content())
		}
	}
}

// canonical is the JSON of a value, in which a number has one form.
func canonical(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// sameObjects compares objects by their JSON.
func sameObjects(a, b any) bool { return reflect.DeepEqual(a, b) || canonical(a) == canonical(b) }

// explain adds the author's text of a failed rule.
func (v *Verdict) explain(r *evaluation.RuleResult) {
	text := authorText(r.Message)
	if text == "" {
		v.isExplained = false
		return
	}
	v.Messages = append(v.Messages, text)
}

var (
	enginePrefix = regexp.MustCompile(`^(validation failure: |validation error: )+`)
	engineSuffix = regexp.MustCompile(`(^| )rule \S+ failed( at path \S*)?( rule \S+ failed at path \S*)*$`)
	engineText   = regexp.MustCompile(`^(failed expression: |Validation rule '\S+' failed\. It violates PodSecurity )`)
)

// authorText removes the additions of engines to the text of an author: words before it, a full stop and the rule with
// its path behind it. It is empty where the author has none.
func authorText(message string) string {
	text := engineSuffix.ReplaceAllString(enginePrefix.ReplaceAllString(message, ""), "")
	if engineText.MatchString(text) {
		return ""
	}
	return strings.TrimRight(strings.TrimSpace(text), ".")
}

// The kinds of differences, the gravest first.
const (
	ByVerdict = "verdict"
	ByMessage = "message"
	ByObject  = "object"
)

// differ returns the kind of the gravest difference between the verdict of the source and that of its result; empty
// for none. A policy in CEL shows the message of its first failure alone, so that the source may have more. Where the
// source cannot evaluate a deletion, the result may keep the object for another condition, which does not hold.
func differ(source, result *Verdict) string {
	isKept := slices.Equal(source.Deletes, []string{undecided}) && len(result.Deletes) == 0
	switch {
	case source.Result != result.Result || !slices.Equal(source.Reported, result.Reported) || !isKept && !slices.Equal(source.Deletes, result.Deletes):
		return ByVerdict
	case !sameObjects(source.Object, result.Object) || !sameObjects(source.Made, result.Made) || !sameObjects(source.Altered, result.Altered):
		return ByObject
	case source.isExplained && (len(source.Messages) > 0) != (len(result.Messages) > 0),
		source.isExplained && slices.ContainsFunc(result.Messages, func(m string) bool { return !slices.Contains(source.Messages, m) }):
		return ByMessage
	}
	return ""
}
