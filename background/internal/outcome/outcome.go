// Package outcome makes the results of rules about other objects for reports, from the work on each
// object. Of several results for one object the worst counts, and where an object is tried again
// soon there is none yet.
package outcome

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// The properties that name objects, as in Kyverno's reports.
const (
	generatedProperty = "generated-resources"
	patchedProperty   = "patched-target"
)

// maxNamed bounds the objects that a property names: reports shorten it further.
const maxNamed = 20

// severity orders the results of one object, the worst last.
type severity int

const (
	none severity = iota
	skipped
	passed
	pending // it is tried again soon
	failed
)

// names are objects for a property.
type names struct {
	list  []string
	count int
}

// add names an object as Kyverno does: group/version, Kind=kind Name=name Namespace=namespace.
func (n *names) add(object map[string]any) {
	n.count++
	if len(n.list) >= maxNamed {
		return
	}
	text := func(of map[string]any, name string) string {
		value, _ := of[name].(string)
		return value
	}
	metadata, _ := object["metadata"].(map[string]any)
	version := text(object, "apiVersion")
	if !strings.Contains(version, "/") {
		version = "/" + version
	}
	name := version + ", Kind=" + text(object, "kind") + " Name=" + text(metadata, "name")
	if namespace := text(metadata, "namespace"); namespace != "" {
		name += " Namespace=" + namespace
	}
	n.list = append(n.list, name)
}

// in returns properties with these names, unless the author uses the property.
func (n *names) in(properties map[string]string, property string) map[string]string {
	if _, taken := properties[property]; taken || n.count == 0 {
		return properties
	}
	named := strings.Join(n.list, "; ")
	if more := n.count - len(n.list); more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	all := maps.Clone(properties)
	if all == nil {
		all = map[string]string{}
	}
	all[property] = named
	return all
}

// Generated is the outcome of a generate rule for its trigger.
type Generated struct {
	made  names
	state severity
	err   error
}

// There records that an object exists as the rule requires. Made means that the rule made it.
func (g *Generated) There(object map[string]any, made bool) {
	if made {
		g.made.add(object)
	}
}

// Absent records that an object does not exist, and that this trigger does not require it: it is older
// than the rule.
func (g *Generated) Absent() { g.state = max(g.state, pending) }

// Fail records an error. An error that is not reported is tried again soon.
func (g *Generated) Fail(err error, reported bool) {
	if !reported {
		g.state = max(g.state, pending)
		return
	}
	g.state = failed
	if g.err == nil {
		g.err = err
	}
}

// Result returns the result of a rule that passed for its trigger, and false if there is none yet.
func (g *Generated) Result(r policy.RuleResult) (policy.RuleResult, bool) {
	switch g.state {
	case pending:
		return r, false
	case failed:
		r.Err = g.err
	default:
		r.Ruling = pass(fmt.Sprintf("the objects that the rule requires exist; %d of them are its own", g.made.count))
	}
	r.Action, r.Properties = policy.Audit, g.made.in(r.Properties, generatedProperty)
	return r, true
}

// Altered is the outcome of a mutate-existing rule for one trigger and its targets. The zero value is
// ready for use.
type Altered struct {
	targets map[string]*target
	patched names
	state   severity
	err     error
}

// target is an object that the rule selects.
type target struct {
	object map[string]any
	state  severity
	result policy.RuleResult
}

// Fail records an error that is not about one target.
func (a *Altered) Fail(err error, reported bool) {
	if !reported {
		a.state = max(a.state, pending)
		return
	}
	a.state = failed
	if a.err == nil {
		a.err = err
	}
}

// Target records the result for a target, which is known by a text. An error that is not reported is
// tried again soon.
func (a *Altered) Target(at string, object map[string]any, is policy.Mutated, err error, reported bool) {
	one := target{object: essential(object), result: policy.RuleResult{Properties: is.Properties}}
	switch {
	case err != nil && !reported:
		one.state = pending
	case err != nil:
		one.state, one.result.Err = failed, err
	case is.Result == policy.Pass:
		one.state, one.result.Ruling = passed, pass("the object is as the rule makes it")
	case is.Result == policy.Skipped:
		one.state, one.result.Skip = skipped, "the rule's conditions exclude the object"
		if len(is.Reasons) > 0 {
			one.result.Skip = is.Reasons[0].Message
		}
	default:
		return // it is no target any more
	}
	if err != nil {
		a.Fail(fmt.Errorf("%s: %w", at, err), reported)
	}
	if a.targets == nil {
		a.targets = map[string]*target{}
	}
	before := a.targets[at]
	if before == nil || one.state > before.state {
		a.targets[at] = &one
	}
}

// essential returns the identity of an object: reports need no more, and a rule may have thousands of
// targets.
func essential(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range []string{"name", "namespace", "uid", "ownerReferences"} {
		if value, ok := metadata[name]; ok {
			kept[name] = value
		}
	}
	return map[string]any{"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": kept}
}

// Each passes on the result of the rule for its trigger, which is known by a text, and for each target.
// A trigger that is a target has one result, the worse.
func (a *Altered) Each(at string, trigger map[string]any, of policy.RuleResult, do func(object map[string]any, r policy.RuleResult)) {
	sorted := slices.Sorted(maps.Keys(a.targets))
	for _, name := range sorted {
		if t := a.targets[name]; t.state == passed {
			a.patched.add(t.object)
		}
	}
	own := target{object: trigger, state: max(a.state, passed), result: policy.RuleResult{Err: a.err, Properties: a.patched.in(of.Properties, patchedProperty)}}
	if a.err == nil {
		own.result.Ruling = pass(fmt.Sprintf("the targets of the rule are as it makes them: %d", a.patched.count))
	}
	if self := a.targets[at]; self != nil && self.state > own.state {
		own = *self
	}
	emit := func(t *target) {
		if t.state != pending {
			r := of
			r.Err, r.Skip, r.Ruling, r.Properties, r.Action = t.result.Err, t.result.Skip, t.result.Ruling, t.result.Properties, policy.Audit
			do(t.object, r)
		}
	}
	emit(&own)
	for _, name := range sorted {
		if name != at {
			emit(a.targets[name])
		}
	}
}

func pass(message string) policy.Ruling {
	return policy.Ruling{Result: policy.Pass, Reasons: []policy.Reason{{Message: message}}}
}

// Failed returns the result of a rule that could not be applied.
func Failed(r policy.RuleResult, err error) policy.RuleResult {
	if err == nil {
		err = errors.New("the rule could not be applied")
	}
	r.Err, r.Action = err, policy.Audit
	return r
}
