package compare

import (
	"io"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// ownReport adds the results of one of our reports. It does not record which failures deny.
func (c *Collector) ownReport(text []byte) error {
	results, err := policyreport.Results(text)
	if err != nil {
		return err
	}
	for i := range results {
		r := &results[i]
		s := engineVerdict{
			engine: Quaymaster, object: r.Resource, policy: policyName{r.Policy.Kind, r.Policy.Namespace, r.Policy.Name}, rule: r.Rule,
			code: string(r.Code), message: r.Message, at: r.Time, where: InReport,
		}
		if r.Image != nil {
			s.container, s.written, s.digest = r.Image.Container, r.Image.Written, r.Image.Digest
		}
		s.verdict, s.skipped, s.audited = wordOfStatus(r.Status)
		s.verdict = wordOf(s.verdict, s.code)
		c.take(s)
	}
	return nil
}

// wordOfStatus maps a report's status. A failure that is not enforced is still a failure, but
// denies no request.
func wordOfStatus(status result.Status) (word Verdict, skipped, onlyTold bool) {
	switch status {
	case result.Fail:
		return Deny, false, false
	case result.Warn:
		return Deny, false, true
	case result.Error:
		return Error, false, false
	case result.Skip:
		return Admit, true, false
	}
	return Admit, false, false
}

// Decision adds a line of the decision log: the result of each rule, independent of the response.
// Other kinds of lines and decisions on deletions are left out.
func (c *Collector) Decision(line decisionlog.Entry) {
	d := line.Decision
	if d == nil || d.Operation == "DELETE" {
		return
	}
	c.count(d)
	about := engineVerdict{engine: Quaymaster, object: d.Object, at: line.Time, where: InDecisionLog}
	if d.Image != nil {
		about.container, about.written, about.digest = d.Image.Container, d.Image.Written, d.Image.Digest
	}
	if d.Undecided != "" {
		about.verdict, about.code, about.message = Error, d.Undecided, "not decided: "+d.Undecided
		c.take(about)
		return
	}
	held := false
	for i := range d.Rules {
		s := about
		c.ofRule(&s, &d.Rules[i])
		held = held || s.verdict != Admit && !s.audited
		c.take(s)
	}
	if d.Result.Admits() || held {
		return
	}
	// No rule decided: an override did, or the evaluation failed.
	about.verdict = Error
	if len(d.Reasons) > 0 {
		about.code, about.message = string(d.Reasons[0].Code), d.Reasons[0].Message
	}
	if d.Result == gate.Deny {
		about.verdict = wordOf(Deny, about.code)
	}
	c.take(about)
}

func (c *Collector) ofRule(s *engineVerdict, r *decisionlog.Rule) {
	s.policy, s.rule = policyOf(r.Policy), r.Rule
	// A failure that a gateway setting only audits is enforced once that setting is removed.
	s.audited = r.AuditedBy == "" && (r.Action == policy.Audit || r.Action == policy.Warn)
	switch r.Result {
	case policy.Pass:
		s.verdict = Admit
	case policy.Skipped:
		s.verdict, s.skipped = Admit, true
	case policy.Indeterminate:
		s.verdict = Error
	default:
		s.verdict = Deny
	}
	if r.Reason != nil {
		s.code, s.message = string(r.Reason.Code), r.Reason.Message
	}
	s.verdict = wordOf(s.verdict, s.code)
}

// policyOf reads kind/name or kind/namespace/name.
func policyOf(id string) policyName {
	parts := splitted(id)
	switch len(parts) {
	case 3:
		return policyName{parts[0], parts[1], parts[2]}
	case 2:
		return policyName{kind: parts[0], name: parts[1]}
	}
	return policyName{name: id}
}

// count adds up the costs of decisions, once for each object: each line of an object repeats
// them.
func (c *Collector) count(d *decisionlog.Decision) {
	if d.Process != report.ProcessAdmission || d.Milliseconds <= 0 {
		return
	}
	if this := d.UID + "\x00" + d.Endpoint; this != c.lastCounted {
		c.lastCounted = this
		c.own.calls++
		c.own.milliseconds += d.Milliseconds
		c.ownRequests += d.Requests
	}
}

// Log adds lines of a decision log, in the format of its files and sinks. An unreadable line is
// counted.
func (c *Collector) Log(from io.Reader) error {
	return lines(from, maxLine, func(text []byte, long bool) {
		line, err := decisionlog.ParseLine(text)
		if long || err != nil {
			c.unreadable++
			return
		}
		c.Decision(line.Entry)
	})
}
