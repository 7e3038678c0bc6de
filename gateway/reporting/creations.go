package reporting

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// creationAge bounds the wait for the second call about a new object: each webhook of the API server
	// has at most 30 seconds.
	creationAge = time.Minute
	// maxCreations bounds the objects that wait, each with the results of its mutation rules. The results
	// of others are left to the scan.
	maxCreations = 2048
)

// Creations holds the results of mutation rules for new objects. Only the mutating endpoint has them,
// and only the validating one has the UID. The two calls share no identifier, so that the same object in
// the second one is found by its content: if another webhook changed it, or another replica received
// the call, the scan reports these results. The zero value is ready for use.
type Creations struct {
	mu      sync.Mutex
	waiting map[fingerprint]creation
}

type fingerprint [sha256.Size]byte

type creation struct {
	rules []policy.RuleResult
	until time.Time
}

// put stores results for an object as the mutating endpoint leaves it. Of two equal objects the worse
// result of each rule counts: a failure is never reported as a success. They wait as long as the first
// one, so that a stream of equal objects does not prolong a failure.
func (c *Creations) put(d *report.Decided, rules []policy.RuleResult) {
	of, ok := mutatedPrint(d)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := d.Occasion.Time
	maps.DeleteFunc(c.waiting, func(_ fingerprint, old creation) bool { return !old.until.After(now) })
	if c.waiting == nil {
		c.waiting = map[fingerprint]creation{}
	}
	old, there := c.waiting[of]
	switch {
	case there:
		c.waiting[of] = creation{worse(old.rules, rules), old.until}
	case len(c.waiting) < maxCreations:
		c.waiting[of] = creation{rules, now.Add(creationAge)}
	}
}

// worse returns the worse result of each rule, and of equal ones the newer. A rule that only one of the
// objects has a result of keeps it. Neither list is changed: readers may hold the old one.
func worse(old, rules []policy.RuleResult) []policy.RuleResult {
	type key struct {
		policy, rule string
		kind         policy.RuleKind
		nth          int // of the rules without another difference
	}
	keysOf := func(of []policy.RuleResult) []key {
		keys, times := make([]key, len(of)), map[key]int{}
		for i := range of {
			k := key{rule: of[i].Rule, kind: of[i].Kind}
			if of[i].Policy != nil {
				k.policy = of[i].Policy.ID()
			}
			times[k]++
			keys[i], keys[i].nth = k, times[k]
		}
		return keys
	}
	merged, at := slices.Clone(rules), map[key]int{}
	for i, k := range keysOf(rules) {
		at[k] = i
	}
	for i, k := range keysOf(old) {
		switch n, both := at[k]; {
		case !both:
			merged = append(merged, old[i])
		case severity(&old[i]) > severity(&merged[n]):
			merged[n] = old[i]
		}
	}
	return merged
}

// severity is greater for a worse result.
func severity(r *policy.RuleResult) int {
	switch {
	case r.Ruling.Result == policy.Fail:
		return 3
	case r.Err != nil, r.Ruling.Result == policy.Indeterminate:
		return 2
	case !r.Ruling.Passes():
		return 1
	default:
		return 0
	}
}

// get returns the results for an object as the validating endpoint received it; nil for none.
func (c *Creations) get(d *report.Decided) []policy.RuleResult {
	if c.isEmpty() || d.Outcome.Subject == nil {
		return nil
	}
	of, ok := printOf(d, d.Outcome.Subject.Object.Map())
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.waiting[of]; found.until.After(d.Occasion.Time) {
		return found.rules
	}
	return nil
}

func (c *Creations) isEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) == 0
}

// mutatedPrint is the fingerprint of the object with the patch of the mutating endpoint.
func mutatedPrint(d *report.Decided) (fingerprint, bool) {
	object := d.Outcome.Object
	if !d.Outcome.Changed.IsZero() {
		object = d.Outcome.Changed
	}
	if d.Outcome.Subject == nil || object.IsZero() {
		return fingerprint{}, false
	}
	if pins := pinsOf(&d.Outcome); len(pins) > 0 {
		pinned, err := workload.Apply(object, pins)
		if err != nil {
			return fingerprint{}, false // the scan reports the results
		}
		object = pinned
	}
	return printOf(d, object.Content())
}

func pinsOf(o *gate.Outcome) []workload.Operation { return o.Patch[min(o.Mutations, len(o.Patch)):] }

// printOf hashes the content of an object without the members that the API server sets at its creation.
func printOf(d *report.Decided, object map[string]any) (fingerprint, bool) {
	s := d.Outcome.Subject
	content := maps.Clone(object)
	delete(content, "status")
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{}
	names := []string{"generateName", "labels", "ownerReferences", "finalizers"}
	if prefix, _ := metadata["generateName"].(string); prefix == "" {
		names = append(names, "name")
	}
	for _, name := range names {
		kept[name] = metadata[name]
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	maps.DeleteFunc(annotations, func(name string, _ any) bool { return strings.HasPrefix(name, ownAnnotations) })
	kept["annotations"] = annotations
	content["metadata"] = kept
	text, err := json.Marshal([]any{s.Group, s.Version, s.Kind, s.Namespace, d.Occasion.User, withoutEmpty(content)})
	return sha256.Sum256(text), err == nil
}

// ownAnnotations is the prefix of the gateway's records, which its mutating endpoint adds.
const ownAnnotations = "quaymaster.dev/"

// withoutEmpty returns a copy without members that are null or empty: the API server keeps none.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, member := range v {
			if stays := withoutEmpty(member); stays != nil {
				kept[name] = stays
			}
		}
		if len(kept) > 0 {
			return kept
		}
		return nil
	case []any:
		items := make([]any, len(v))
		for i := range v {
			items[i] = withoutEmpty(v[i])
		}
		if len(items) > 0 {
			return items
		}
		return nil
	}
	return value
}
