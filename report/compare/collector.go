package compare

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// Collector collects the verdicts of both engines. It is not safe for concurrent use. Create one
// with New.
type Collector struct {
	ours, theirs map[id]*engineVerdict
	// owners are the controllers of objects, by UID and by name. changed is the time of a
	// policy's last change, by kind, namespace and name.
	owners  map[string]report.Owner
	changed map[policyName]time.Time

	most                int // MaxVerdicts
	leftOut, unreadable int

	own         timing
	ownRequests int64
	lastCounted string
	metrics     map[timingKey]timing
}

// New returns an empty Collector.
func New() *Collector {
	return &Collector{
		ours: map[id]*engineVerdict{}, theirs: map[id]*engineVerdict{}, owners: map[string]report.Owner{}, changed: map[policyName]time.Time{},
		metrics: map[timingKey]timing{}, most: MaxVerdicts,
	}
}

// Unreadable counts the inputs that could not be read. Unread adds one that the caller could not
// read.
func (c *Collector) Unreadable() int { return c.unreadable }

// Unread counts an input that could not be read.
func (c *Collector) Unread() { c.unreadable++ }

// take stores a verdict if it is the newest of its kind.
func (c *Collector) take(s engineVerdict) {
	s.message = cut(strings.TrimSpace(s.message), maxMessage)
	for _, text := range []*string{
		&s.rule, &s.code, &s.container, &s.written, &s.digest, &s.policy.kind, &s.policy.namespace, &s.policy.name,
		&s.object.APIVersion, &s.object.Kind, &s.object.Namespace, &s.object.Name, &s.object.UID,
	} {
		*text = cut(*text, maxText)
	}
	side := c.ours
	if s.engine != Quaymaster {
		side = c.theirs
		s.written = cmp.Or(s.written, onlyImage(s.message))
	}
	key := s.id()
	have := side[key]
	switch {
	case have != nil && !s.isNewer(have):
	case have == nil && len(side) >= c.most:
		c.leftOut++
	default:
		side[key] = &s
	}
}

// object holds the fields that are read of any object.
type object struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
}

type metadata struct {
	Name         string            `json:"name"`
	GenerateName string            `json:"generateName"`
	Namespace    string            `json:"namespace"`
	UID          string            `json:"uid"`
	Labels       map[string]string `json:"labels"`
	Created      time.Time         `json:"creationTimestamp"`
	Owners       []struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		UID        string `json:"uid"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
	Managed []struct {
		Time        time.Time `json:"time"`
		Subresource string    `json:"subresource"`
	} `json:"managedFields"`
}

func (o *object) resource() report.Resource {
	r := report.Resource{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, UID: o.Metadata.UID}
	if r.Name == "" && o.Metadata.GenerateName != "" {
		r.Name = o.Metadata.GenerateName + "*"
	}
	r.Owner = o.controller()
	return r
}

func (o *object) controller() *report.Owner {
	for _, owner := range o.Metadata.Owners {
		if owner.Controller {
			return &report.Owner{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID}
		}
	}
	return nil
}

// Object adds an object of the cluster as JSON: a report, an event, a policy, or any other
// object, of which the controller is recorded. An error means that the object is unreadable; it
// is counted.
func (c *Collector) Object(text []byte) error {
	err := c.read(text)
	if err != nil {
		c.unreadable++
	}
	return err
}

func (c *Collector) read(text []byte) error {
	var o object
	if len(text) > maxObject {
		return fmt.Errorf("an object of %d bytes: want at most %d", len(text), maxObject)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return fmt.Errorf("read an object: %w", err)
	}
	group, _, _ := strings.Cut(o.APIVersion, "/")
	switch {
	case o.Kind == "":
		return errors.New("read an object: it has no kind")
	case isReport(o.APIVersion, o.Kind) && o.Metadata.Labels[policyreport.ManagedByLabel] == result.Source:
		return c.ownReport(text)
	case isReport(o.APIVersion, o.Kind):
		return c.foreignReport(text)
	case o.Kind == "Event" && (o.APIVersion == "v1" || group == "events.k8s.io"):
		return c.event(text)
	case isPolicies(group):
		c.policyChange(&o)
		return nil
	}
	if owner := o.controller(); owner != nil && len(c.owners) < maxPlaces {
		c.owners[nameOf(o.Kind, o.Metadata.Namespace, o.Metadata.Name)] = *owner
		if o.Metadata.UID != "" {
			c.owners[o.Metadata.UID] = *owner
		}
	}
	return nil
}

func isReport(apiVersion, kind string) bool {
	for _, api := range policyreport.APIs() {
		if string(api) == apiVersion && (kind == api.Kind("") || kind == api.Kind("any")) {
			return true
		}
	}
	return false
}

// isPolicies reports whether the objects of a group are policies.
func isPolicies(group string) bool {
	return group == "kyverno.io" || group == "policies.kyverno.io" || group == "policy.sigstore.dev"
}

// policyChange records the time of a policy's last change. Status updates are not changes.
func (c *Collector) policyChange(o *object) {
	at := o.Metadata.Created
	for _, field := range o.Metadata.Managed {
		if field.Subresource == "" && field.Time.After(at) {
			at = field.Time
		}
	}
	if len(c.changed) < maxPlaces {
		c.changed[policyName{o.Kind, o.Metadata.Namespace, o.Metadata.Name}] = at
	}
}

// isStale reports whether a verdict is older than the last change of its policy.
func (c *Collector) isStale(s *engineVerdict) bool {
	if s.policy.name == "" || s.at.IsZero() {
		return false
	}
	at := c.changed[s.policy]
	if s.policy.kind == "" {
		for _, kind := range policyKinds() {
			if changed, ok := c.changed[policyName{kind, s.policy.namespace, s.policy.name}]; ok {
				at = changed
			}
		}
	}
	return s.at.Before(at.Truncate(time.Second)) // reports have times in seconds
}

// policyKinds are the kinds of policies that both engines support.
func policyKinds() []string {
	return []string{
		"ClusterPolicy", "Policy", "ImageValidatingPolicy", "NamespacedImageValidatingPolicy", "ValidatingPolicy", "NamespacedValidatingPolicy",
		"MutatingPolicy", "NamespacedMutatingPolicy", "ClusterImagePolicy",
	}
}

// places are the further names under which an object is matched: its controller's and those of
// the controllers above.
func (c *Collector) places(of report.Resource) []string {
	var names []string
	owner := of.Owner
	if owner == nil {
		if known, ok := c.owners[of.UID]; ok && of.UID != "" {
			owner = &known
		} else if known, ok := c.owners[nameOf(of.Kind, of.Namespace, of.Name)]; ok && of.UID == "" {
			owner = &known
		}
	}
	for range 3 { // a CronJob's Job's pod is two steps
		if owner == nil {
			break
		}
		names = append(names, nameOf(owner.Kind, of.Namespace, owner.Name))
		next, ok := c.owners[nameOf(owner.Kind, of.Namespace, owner.Name)]
		if !ok {
			break
		}
		owner = &next
	}
	return names
}

func splitted(name string) []string { return strings.Split(name, "/") }
