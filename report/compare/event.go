package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
)

// event is an Event of v1 or of events.k8s.io/v1, which name the same fields differently.
type event struct {
	Metadata   metadata  `json:"metadata"`
	Involved   reference `json:"involvedObject"`
	Regarding  reference `json:"regarding"`
	Related    reference `json:"related"`
	Reason     string    `json:"reason"`
	Message    string    `json:"message"`
	Note       string    `json:"note"`
	Controller string    `json:"reportingController"`
	Component  string    `json:"reportingComponent"`
	Source     struct {
		Component string `json:"component"`
	} `json:"source"`
	EventTime      time.Time `json:"eventTime"`
	LastTimestamp  time.Time `json:"lastTimestamp"`
	DeprecatedLast time.Time `json:"deprecatedLastTimestamp"`
	Series         *struct {
		Last time.Time `json:"lastObservedTime"`
	} `json:"series"`
}

// Reasons are the reasons of events that Object supports, so that a client can request only
// those.
func Reasons() []string {
	return []string{reasonViolation, reasonError, reasonSkipped, reasonApplied, reasonFailedCreate}
}

const (
	reasonViolation    = "PolicyViolation"
	reasonError        = "PolicyError"
	reasonSkipped      = "PolicySkipped"
	reasonApplied      = "PolicyApplied"
	reasonFailedCreate = "FailedCreate"
)

// event adds an event of Kyverno, or of a controller with a denied pod. It applies to its own
// namespace. An event on a cluster policy, which is in the namespace default, applies to all.
func (c *Collector) event(text []byte) error {
	var e event
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	about := e.Involved
	if about.Kind == "" {
		about = e.Regarding
	}
	note := cut(e.Message+e.Note, maxDenial)
	at := latest(e.EventTime, e.LastTimestamp, e.DeprecatedLast, e.Metadata.Created)
	if e.Series != nil {
		at = latest(at, e.Series.Last)
	}
	switch e.Reason {
	case reasonFailedCreate:
		if about.Namespace == e.Metadata.Namespace {
			c.failedCreate(about, note, at)
		}
		return nil
	case reasonViolation, reasonError, reasonSkipped, reasonApplied:
	default:
		return nil
	}
	if !strings.HasPrefix(cmp.Or(e.Controller, e.Component, e.Source.Component), "kyverno") {
		return nil
	}
	s, ok := kyvernoSaid(e.Reason, about, e.Related, note)
	if !ok || s.object.Namespace != e.Metadata.Namespace && (e.Metadata.Namespace != "default" || about.Namespace != "") {
		return nil
	}
	s.engine, s.where, s.at = Kyverno, InEvent, at
	c.take(s)
	return nil
}

func latest(times ...time.Time) time.Time {
	var last time.Time
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// kyvernoSaid parses an event's note. On a policy it is "Pod ns/name: [rule] fail (blocked);
// message" or "Pod ns/name: pass", with the object in the related field. On an object it is
// "policy name/rule fail: message".
func kyvernoSaid(reason string, about, related reference, note string) (engineVerdict, bool) {
	group, _, _ := strings.Cut(about.APIVersion, "/")
	if !isPolicies(group) {
		return onObject(about, note)
	}
	s := engineVerdict{policy: policyName{about.Kind, about.Namespace, about.Name}, object: related.resource()}
	if related.Kind == "" || related.Name == "" {
		return engineVerdict{}, false
	}
	if reason == reasonSkipped {
		_, rest, _ := strings.Cut(note, " was skipped from rule ")
		s.rule, _, _ = strings.Cut(rest, " ")
		s.verdict, s.skipped, s.message = Admit, true, note
		return s, s.rule != ""
	}
	_, rest, ok := strings.Cut(note, ": ")
	if !ok {
		return engineVerdict{}, false
	}
	if ruled, is := strings.CutPrefix(rest, "["); is {
		s.rule, rest, ok = strings.Cut(ruled, "] ")
		if !ok {
			return engineVerdict{}, false
		}
	}
	rest, s.message, _ = strings.Cut(rest, "; ")
	status, _, _ := strings.Cut(rest, " ")
	return s, s.means(status)
}

func onObject(about reference, note string) (engineVerdict, bool) {
	rest, ok := strings.CutPrefix(note, "policy ")
	head, message, told := strings.Cut(rest, ": ")
	named, status, stated := strings.Cut(head, " ")
	name, rule, ruled := strings.Cut(named, "/")
	if !ok || !told || !stated || !ruled || name == "" || about.Name == "" {
		return engineVerdict{}, false
	}
	s := engineVerdict{object: about.resource(), policy: policyName{name: name}, rule: rule, message: message}
	return s, s.means(status)
}

// means sets a rule's status and returns false for an unknown one.
func (s *engineVerdict) means(status string) bool {
	switch status {
	case "pass":
		s.verdict = Admit
	case "skip":
		s.verdict, s.skipped = Admit, true
	case "fail":
		s.verdict = Deny
	case "warn":
		s.verdict, s.audited = Deny, true
	case "error":
		s.verdict = Error
	default:
		return false
	}
	return true
}

// failedCreate adds the denial of a controller's pod. The event does not name the pod.
func (c *Collector) failedCreate(by reference, note string, at time.Time) {
	pod := report.Resource{
		APIVersion: "v1", Kind: "Pod", Namespace: by.Namespace,
		Owner: &report.Owner{APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, UID: by.UID},
	}
	c.denial(note, pod, at, InEvent)
}
