package publish

import (
	"encoding/json"
	"time"
	"unique"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// content is a result without its object and time. Thousands of pods have equal results, so each is
// stored once.
type content struct {
	about    line
	policy   result.Policy
	image    result.Image
	hasImage bool
	status   result.Status
	enforced bool
	code     policy.Code
	message  string
	// exception exempted the object; properties are JSON, or empty.
	exception, properties string
	process               report.Process
}

// line identifies a result of one object.
type line struct{ kind, policy, rule, container string }

// A word and its time, in nanoseconds since the epoch.
type entry struct {
	content unique.Handle[content]
	at      int64
}

func entryOf(r result.Result) entry {
	w := content{
		about:  line{kind: r.Policy.Kind, policy: r.Policy.String(), rule: r.Rule},
		policy: r.Policy, status: r.Status, enforced: r.Enforced, code: r.Code, message: r.Message, exception: r.Exception, process: r.Process,
	}
	if r.Image != nil {
		w.image, w.hasImage, w.about.container = *r.Image, true, r.Image.Container
	}
	if len(r.Properties) > 0 {
		text, _ := json.Marshal(r.Properties) // a map of texts
		w.properties = string(text)
	}
	return entry{unique.Make(w), r.Time.UnixNano()}
}

// result combines it with an object again.
func (s entry) result(of report.Resource) result.Result {
	w := s.content.Value()
	r := result.Result{
		Policy: w.policy, Rule: w.about.rule, Resource: of, Status: w.status, Enforced: w.enforced, Code: w.code, Message: w.message,
		Exception: w.exception, Time: time.Unix(0, s.at), Process: w.process,
	}
	if w.hasImage {
		r.Image = &w.image
	}
	if w.properties != "" {
		_ = json.Unmarshal([]byte(w.properties), &r.Properties) // encoded above
	}
	return r
}

// item holds the pending results of one object.
type item struct {
	of      report.Resource
	entries []entry
	// whole is the time from which the results are complete but for the rules in others, and gone the
	// time of the object's deletion; zero for neither.
	whole, gone time.Time
	others      []result.Rule
}

// add adds a result, which replaces an older one on the same line.
func (i *item) add(s entry) {
	about := s.content.Value().about
	for at, before := range i.entries {
		if before.content == s.content || before.content.Value().about == about {
			if before.at <= s.at {
				i.entries[at] = s
			}
			return
		}
	}
	i.entries = append(i.entries, s)
}

// results returns the results that are newer than the object's deletion.
func (i *item) results() []result.Result {
	results := make([]result.Result, 0, len(i.entries))
	for _, s := range i.entries {
		if i.gone.IsZero() || s.at > i.gone.UnixNano() {
			results = append(results, s.result(i.of))
		}
	}
	return results
}

// bytes is the approximate size, without the words themselves.
func (i *item) bytes() int {
	return itemCost + wordCost*(len(i.entries)+len(i.others)) + len(i.of.Name) + len(i.of.UID)
}
