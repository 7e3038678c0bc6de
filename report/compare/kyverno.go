package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// reference names an object, as reports and events do.
type reference struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

func (r reference) resource() report.Resource {
	return report.Resource{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, UID: r.UID}
}

// foreignEntry is a result of either API: message and resources of one are description and
// subjects of the other.
type foreignEntry struct {
	Source      string            `json:"source"`
	Policy      string            `json:"policy"`
	Rule        string            `json:"rule"`
	Message     string            `json:"message"`
	Description string            `json:"description"`
	Result      string            `json:"result"`
	Resources   []reference       `json:"resources"`
	Subjects    []reference       `json:"subjects"`
	Properties  map[string]string `json:"properties"`
	Timestamp   struct {
		Seconds int64 `json:"seconds"`
		Nanos   int64 `json:"nanos"`
	} `json:"timestamp"`
}

// sources are the sources of Kyverno's results, and the kinds of their policies. The first source
// has two kinds, which the namespace distinguishes.
func sources() map[string]string {
	return map[string]string{
		"kyverno": "", "KyvernoImageValidatingPolicy": "ImageValidatingPolicy", "KyvernoValidatingPolicy": "ValidatingPolicy",
		"KyvernoMutatingPolicy": "MutatingPolicy",
	}
}

// foreignReport adds the results of Kyverno in a report; those of other sources are left out. As
// in our reports, results for another namespace than the report's are ignored.
func (c *Collector) foreignReport(text []byte) error {
	var r struct {
		Metadata metadata       `json:"metadata"`
		Scope    *reference     `json:"scope"`
		Results  []foreignEntry `json:"results"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read a report: %w", err)
	}
	for i := range r.Results {
		entry := &r.Results[i]
		kind, known := sources()[entry.Source]
		word, ok := entry.verdict()
		if !known || !ok || entry.Policy == "" {
			continue
		}
		about := append(append([]reference{}, entry.Resources...), entry.Subjects...)
		if len(about) == 0 && r.Scope != nil {
			about = append(about, *r.Scope)
		}
		word.policy, word.rule, word.message = kyvernoPolicy(kind, entry.Policy), entry.Rule, entry.Message+entry.Description
		for _, of := range about {
			if of.Name == "" || of.Kind == "" || of.Namespace != r.Metadata.Namespace {
				continue
			}
			word.object = of.resource()
			c.take(word)
		}
	}
	return nil
}

// verdict returns the verdict of an entry without its object, and false for an unknown status.
func (e *foreignEntry) verdict() (engineVerdict, bool) {
	s := engineVerdict{engine: Kyverno, where: InReport, at: time.Unix(e.Timestamp.Seconds, e.Timestamp.Nanos).UTC()}
	status := result.Status(e.Result)
	switch status {
	case result.Pass, result.Fail, result.Warn, result.Error, result.Skip:
		s.verdict, s.skipped, s.audited = wordOfStatus(status)
	default:
		return engineVerdict{}, false
	}
	return s, true
}

// kyvernoPolicy parses a policy name of Kyverno's reports: namespace/name, or the name.
func kyvernoPolicy(kind, name string) policyName {
	namespace, bare, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, bare = "", name
	}
	switch {
	case kind == "" && namespaced:
		kind = "Policy"
	case kind == "":
		kind = "ClusterPolicy"
	case namespaced:
		kind = "Namespaced" + kind
	}
	return policyName{kind, namespace, bare}
}
