package dryrun

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

const (
	// maxKnown bounds the earlier results of a Comparison, at some 200 bytes each, and maxChanges
	// its changes.
	maxKnown   = 500_000
	maxChanges = 10_000
	// MaxTold bounds the lines that Write writes.
	MaxTold = 200
)

// Unknown is the earlier status where it is unknown.
const Unknown result.Status = "unknown"

// Change is a rule with a new result for a workload.
type Change struct {
	Policy, Rule          string
	Kind, Namespace, Name string
	Container             string
	Was, Is               result.Status
	// Denies: the failure is enforced.
	Denies  bool
	Code    policy.Code
	Message string
}

// about identifies a result of a workload, whichever of its pods it comes from.
type about struct {
	policy, rule string
	of           place
	container    string
}

// Comparison compares current results with earlier ones. It is a report.Sink of current results,
// and safe for concurrent use. Create one with NewComparison.
type Comparison struct {
	mu      sync.Mutex
	was     map[about]result.Status
	known   map[place]bool // workloads with an earlier result
	changes map[about]Change
	objects int
	dropped int
}

// NewComparison creates a Comparison without earlier results.
func NewComparison() *Comparison {
	return &Comparison{was: map[about]result.Status{}, known: map[place]bool{}, changes: map[about]Change{}}
}

// Before adds earlier results. A result that is missing from a workload's reports was a pass.
func (c *Comparison) Before(results ...result.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range results {
		key := aboutOf(r, workloadOfResource(r.Resource))
		c.known[key.of] = true
		if have, known := c.was[key]; known && rank(have) >= rank(r.Status) || !known && len(c.was) >= maxKnown {
			continue
		}
		c.was[key] = r.Status
	}
}

// Known counts the workloads with earlier results.
func (c *Comparison) Known() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.known)
}

// Objects counts the evaluated objects.
func (c *Comparison) Objects() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects
}

// Take implements report.Sink.
func (c *Comparison) Take(d report.Decided) {
	if isOver(d.Outcome.Object) {
		return
	}
	at := workloadOf(report.ResourceOf(d.Outcome), d.Outcome.Object)
	results := result.Of(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects++
	for _, r := range results {
		c.compare(r, at)
	}
}

func (c *Comparison) compare(r result.Result, at place) {
	key := aboutOf(r, at)
	was := c.before(r, at)
	if was == r.Status || agrees(was) && agrees(r.Status) || was == Unknown && agrees(r.Status) {
		return
	}
	if have, is := c.changes[key]; is && rank(have.Is) >= rank(r.Status) {
		return
	} else if !is && len(c.changes) >= maxChanges {
		c.dropped++
		return
	}
	c.changes[key] = Change{
		Policy: key.policy, Rule: r.Rule, Kind: at.kind, Namespace: at.namespace, Name: at.name, Container: key.container,
		Was: was, Is: r.Status, Denies: r.Enforced && (r.Status == result.Fail || r.Status == result.Error), Code: r.Code, Message: short(r.Message),
	}
}

// before is the earlier result of the object, of its owner, or of the workload.
func (c *Comparison) before(r result.Result, at place) result.Status {
	own := place{r.Resource.Kind, r.Resource.Namespace, r.Resource.Name}
	was := Unknown
	for _, of := range []place{own, workloadOfResource(r.Resource), at} {
		if said, known := c.was[aboutOf(r, of)]; known {
			return said
		}
		if c.known[of] {
			was = result.Pass
		}
	}
	return was
}

// Changes returns the changes, new denials first, then by workload.
func (c *Comparison) Changes() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]Change, 0, len(c.changes))
	for _, change := range c.changes {
		list = append(list, change)
	}
	first := func(change Change) int {
		if change.Denies {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b Change) int {
		return cmp.Or(first(a)-first(b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Container, b.Container))
	})
	return list
}

// Write writes the changes, a line each and at most MaxTold.
func (c *Comparison) Write(w io.Writer) error {
	list := c.Changes()
	var b strings.Builder
	for i, change := range list {
		if i == MaxTold {
			fmt.Fprintf(&b, "and %d more\n", len(list)-i+c.dropped)
			break
		}
		fmt.Fprintln(&b, report.Escape(change.String()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String returns a line, as in "Deployment shop/web, container c: ClusterPolicy/signed,
// rule by-key: pass -> fail, denied [unsigned] no signature found".
func (c Change) String() string {
	name := c.Name
	if c.Namespace != "" {
		name = c.Namespace + "/" + name
	}
	text := c.Kind + " " + name
	if c.Container != "" {
		text += ", container " + c.Container
	}
	text += ": " + c.Policy
	if c.Rule != "" {
		text += ", rule " + c.Rule
	}
	text += fmt.Sprintf(": %s -> %s", c.Was, c.Is)
	if c.Denies {
		text += ", denied"
	}
	if c.Code != "" {
		text += " [" + string(c.Code) + "]"
	}
	if c.Message != "" {
		text += " " + c.Message
	}
	return text
}

func aboutOf(r result.Result, at place) about {
	key := about{policy: r.Policy.Kind + "/" + r.Policy.String(), rule: baseRule(r.Rule), of: at}
	if r.Image != nil {
		key.container = r.Image.Container
	}
	return key
}

// baseRule is the rule for pods from which another one was generated, in Kyverno's dialects.
func baseRule(rule string) string {
	for _, prefix := range []string{"autogen-cronjobs-", "autogen-cronjob-", "autogen-"} {
		if base, ok := strings.CutPrefix(rule, prefix); ok && base != "" {
			return base
		}
	}
	return rule
}

// workloadOfResource returns the workload of an object with only its own name and its owner's.
func workloadOfResource(r report.Resource) place {
	if r.Owner != nil && r.Kind == "Pod" {
		return place{r.Owner.Kind, r.Namespace, r.Owner.Name}
	}
	return place{r.Kind, r.Namespace, r.Name}
}

func agrees(s result.Status) bool { return s == result.Pass || s == result.Skip }

// rank orders statuses, the most severe last.
func rank(s result.Status) int {
	return slices.Index([]result.Status{result.Skip, result.Pass, result.Warn, result.Error, result.Fail}, s)
}
