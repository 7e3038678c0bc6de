// Package preview lists the objects that policies would delete at their next run (kyverno.io
// CleanupPolicy, policies.kyverno.io DeletingPolicy), with the limits of a run, for the commands.
package preview

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/report"
)

// maxObjects bounds the listed objects of a rule; more are counted. A cluster may have any number, and
// a run deletes far fewer.
const maxObjects = 1000

// Object is an object that a rule selects.
type Object struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Source    string `json:"source,omitempty"`
	// Why is the reason for keeping it; empty if it would be deleted.
	Why string `json:"why,omitempty"`
}

// Run is the next run of a rule.
type Run struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
	// Next is the time of the run; nil if the schedule has none.
	Next        *time.Time `json:"next,omitempty"`
	Propagation string     `json:"propagation,omitempty"`
	// Limit is the number of objects after which the run stops.
	Limit int `json:"limit"`
	// Deletes, Protected, Kept and Errors count the objects; Kept are those that a condition or an
	// exception keeps.
	Deletes   int `json:"deletes"`
	Protected int `json:"protected"`
	Kept      int `json:"kept"`
	Errors    int `json:"errors"`
	// Delete are the objects that would be deleted, and Keep those that are protected or could not be
	// evaluated, up to a bound each.
	Delete []Object `json:"delete"`
	Keep   []Object `json:"keep,omitempty"`
}

// Preview is the list of the next runs. The zero Preview is not usable.
type Preview struct {
	Runs []*Run `json:"runs"`
	// Protected are the namespaces of which no object is deleted.
	Protected []string `json:"protectedNamespaces"`
	limit     int
	now       time.Time
}

// Limits are those of a gateway's runs.
type Limits struct {
	Protection deletion.Protection
	// Objects is the number of objects after which a run stops; at least 1.
	Objects int
}

// Defaults are the limits of a gateway without settings for them, in a namespace.
func Defaults(namespace string) Limits {
	return Limits{Protection: deletion.Protection{Namespace: namespace}, Objects: deletion.DefaultLimit}
}

// LimitsOf are those of a gateway with settings.
func LimitsOf(c config.Configuration) Limits {
	protection := deletion.Protection{Namespace: c.Namespace, AllowedKinds: c.Cleanup.Kinds(), AllowedNamespaces: c.Cleanup.AllowedNamespaces}
	return Limits{Protection: protection, Objects: cmp.Or(c.Cleanup.Limit, deletion.DefaultLimit)}
}

// New starts a list at a time.
func New(limits Limits, now time.Time) *Preview {
	return &Preview{Runs: []*Run{}, Protected: limits.Protection.Namespaces(), limit: limits.Objects, now: now}
}

// Rule adds the run of a rule, without objects, and returns it; one that is there is returned again.
func (p *Preview) Rule(of *policy.Policy, rule policy.Deletion) *Run {
	for _, run := range p.Runs {
		if run.Policy == of.ID() && run.Rule == rule.Name() {
			return run
		}
	}
	run := &Run{Policy: of.ID(), Rule: rule.Name(), Propagation: string(rule.Propagation()), Limit: p.limit, Delete: []Object{}}
	if next := rule.Next(p.now); !next.IsZero() {
		run.Next = &next
	}
	p.Runs = append(p.Runs, run)
	return run
}

// Add adds the decision about an object.
func (r *Run) Add(object Object, decided deletion.Decision) {
	var words []string
	for _, reason := range decided.Reasons {
		words = append(words, reason.Message)
	}
	object.Why = strings.Join(words, "; ")
	switch {
	case decided.Verdict == deletion.Delete:
		r.Deletes++
		r.Delete = bounded(r.Delete, object)
	case decided.Verdict == deletion.Unknown:
		r.Errors++
		object.Why = "could not be evaluated, and is kept: " + object.Why
		r.Keep = bounded(r.Keep, object)
	case decided.Protected:
		r.Protected++
		r.Keep = bounded(r.Keep, object)
	case decided.Verdict == deletion.Keep:
		r.Kept++
	}
}

func bounded(list []Object, object Object) []Object {
	if len(list) >= maxObjects {
		return list
	}
	return append(list, object)
}

// Incomplete reports whether a rule could not be evaluated for an object.
func (p *Preview) Incomplete() bool {
	for _, run := range p.Runs {
		if run.Errors > 0 {
			return true
		}
	}
	return false
}

// Text writes the list.
func (p *Preview) Text(b *strings.Builder) {
	for _, run := range p.Runs {
		run.text(b)
	}
	if len(p.Runs) > 0 {
		fmt.Fprintf(b, "protected: the namespaces %s; Namespaces, CustomResourceDefinitions, policies, and what configures admission\n",
			report.Clean(strings.Join(p.Protected, ", ")))
	}
}

func (r *Run) text(b *strings.Builder) {
	when := "no run is due"
	if r.Next != nil {
		when = "the run at " + r.Next.Format(time.RFC3339)
	}
	fmt.Fprintf(b, "%s: %s would delete %d", report.Clean(r.Policy), when, r.Deletes)
	for _, more := range []struct {
		n    int
		what string
	}{{r.Kept, "kept"}, {r.Protected, "protected"}, {r.Errors, "could not be evaluated"}} {
		if more.n > 0 {
			fmt.Fprintf(b, ", %d %s", more.n, more.what)
		}
	}
	b.WriteByte('\n')
	for _, o := range r.Delete {
		fmt.Fprintf(b, "  delete  %s\n", o.title())
	}
	if hidden := r.Deletes - len(r.Delete); hidden > 0 {
		fmt.Fprintf(b, "  delete  ... and %d more\n", hidden)
	}
	for _, o := range r.Keep {
		fmt.Fprintf(b, "  keep    %s: %s\n", o.title(), report.Escape(o.Why))
	}
	if hidden := r.Protected + r.Errors - len(r.Keep); hidden > 0 {
		fmt.Fprintf(b, "  keep    ... and %d more\n", hidden)
	}
	if r.Deletes > r.Limit {
		fmt.Fprintf(b, "  limit   a run stops after %d objects, and reports that there are more: the next runs delete the others\n", r.Limit)
	}
}

func (o Object) title() string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return report.Clean(strings.Trim(o.Kind+"/"+name, "/"))
}
