package finding

import (
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
)

// Of returns the findings of a run's records, in their order.
func Of(list report.List) Run {
	run := Run{Summary: list.Summary, Error: report.Clean(list.Error), Objects: make([]Object, 0, len(list.Items))}
	for i := range list.Items {
		run.Objects = append(run.Objects, ofRecord(&list.Items[i]))
	}
	return run
}

// Unverified is the reason why a run without failures verified nothing; empty where a rule
// matched an image or an object.
func (r Run) Unverified() string {
	if r.Error != "" {
		return "nothing was decided: " + r.Error
	}
	for i := range r.Objects {
		if slices.ContainsFunc(r.Objects[i].Findings, func(f Finding) bool { return f.Status != Skip && f.Status != Note }) {
			return ""
		}
	}
	switch {
	case len(r.Objects) == 0:
		return "nothing was verified: there was nothing to verify"
	case r.Summary.Images == 0:
		return "nothing was verified: there is no image in it, and no rule matches the objects"
	default:
		return "nothing was verified: no policy applies to the images"
	}
}

// record makes the findings of one record.
type record struct {
	*report.Record
	object   Object
	reported map[key]bool
}

// key identifies a reason. A reason of an image is not repeated for its object.
type key struct {
	code    policy.Code
	message string
}

func ofRecord(r *report.Record) Object {
	m := record{Record: r, reported: map[key]bool{}, object: Object{
		Title: title(r), Source: report.Clean(r.Object.Source), Template: report.Clean(r.Object.Template),
		Position: r.Object.Position, Result: r.Result,
	}}
	for i := range r.Images {
		m.image(&r.Images[i])
	}
	for i := range r.Rules {
		m.rule(&r.Rules[i])
	}
	m.whole()
	return m.object
}

// title is kind, namespace and name, or the image for a command that names only an image.
func title(r *report.Record) string {
	o := r.Object
	if o.Kind == "" && o.Source != "" {
		return "document"
	}
	if o.Source == "" && o.Name == "image" && len(r.Images) == 1 && r.Images[0].Container == "image" {
		return report.Clean(r.Images[0].Written)
	}
	name := o.Name
	if name == "" {
		name = "(no name yet)"
	}
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return strings.TrimSpace(report.Clean(o.Kind + " " + name))
}

// add adds a finding with sanitized reasons.
func (m *record) add(f Finding, reasons []policy.Reason) {
	for _, r := range reasons {
		m.reported[key{r.Code, r.Message}] = true
		f.Reasons = append(f.Reasons, policy.Reason{
			Code: policy.Code(report.Clean(string(r.Code))), Path: report.Clean(r.Path), Message: report.Clean(r.Message),
			Expected: report.Clean(r.Expected), Found: report.Clean(r.Found), Where: report.Clean(r.Where), Hint: report.Clean(r.Hint),
		})
	}
	if len(f.Reasons) == 0 {
		f.Reasons = []policy.Reason{{Code: policy.Internal, Message: "no reason was given; this is a defect", Hint: hint.Of(policy.Internal)}}
	}
	if f.Position == nil {
		f.Position = m.object.Position
	}
	f.Policy, f.Rule, f.Exception = report.Clean(f.Policy), report.Clean(f.Rule), report.Clean(f.Exception)
	m.object.Findings = append(m.object.Findings, f)
}

// unreported returns the reasons without a finding.
func (m *record) unreported(reasons []policy.Reason) []policy.Reason {
	return slices.DeleteFunc(slices.Clone(reasons), func(r policy.Reason) bool { return m.reported[key{r.Code, r.Message}] })
}

func worst(findings []Finding) Status {
	status := Skip
	for _, f := range findings {
		if weight(f.Status) > weight(status) {
			status = f.Status
		}
	}
	return status
}

// image makes the findings of one image: one for each rule, and one for each other cause, such as
// a missing policy, an override or a mirror.
func (m *record) image(v *report.Image) {
	about := Finding{
		Image: report.Clean(v.Written), Place: place(m.Record, v), Pointer: report.Clean(v.Pointer),
		Repository: report.Clean(repository(v.Reference)), Position: v.Position,
	}
	m.object.Images = append(m.object.Images, Image{
		Place: about.Place, Written: about.Image, Digest: v.Digest.String(), Result: v.Result, Position: v.Position,
	})
	before := m.reported
	m.reported = map[key]bool{} // reasons of another image get findings of their own
	defer func() {
		maps.Copy(before, m.reported)
		m.reported = before
	}()
	begin := len(m.object.Findings)
	for _, said := range byRule(v.Decisions) {
		f := about
		f.Status, f.Policy, f.Rule, f.Exception = said.status, said.policy, said.rule, said.exception
		m.add(f, said.reasons)
	}
	rest := m.unreported(v.Reasons)
	f := about
	f.Status, f.Policy = statusOf(v.Result), v.Override
	switch own := worst(m.object.Findings[begin:]); {
	case !v.Result.Admits() && weight(f.Status) > weight(own):
		m.add(f, orAll(rest, v.Reasons))
	case v.Override != "":
		f.Status, f.Exception = Skip, firstMessage(v.Reasons)
		m.add(f, v.Reasons)
	default:
		m.beside(about, rest)
	}
	for _, warning := range m.unreported(v.Warnings) {
		f := about
		f.Status = Warn
		m.add(f, []policy.Reason{warning})
	}
}

// beside adds findings for reasons of an image that come from no rule.
func (m *record) beside(about Finding, reasons []policy.Reason) {
	for _, reason := range reasons {
		f := about
		f.Status = Note
		if reason.Code == policy.NotConcerned || reason.Code == policy.Unchanged {
			f.Status = Skip
		}
		m.add(f, []policy.Reason{reason})
	}
}

func orAll(some, all []policy.Reason) []policy.Reason {
	if len(some) == 0 {
		return all
	}
	return some
}

func firstMessage(reasons []policy.Reason) string {
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0].Message
}

// place names the container; empty for an image without an object.
func place(r *report.Record, v *report.Image) string {
	switch {
	case r.Object.Source == "" && v.Container == "image":
		return ""
	case v.Role == "" || v.Role == "container":
		return report.Clean(v.Container)
	}
	return report.Clean(v.Container) + " (" + report.Clean(v.Role) + ")"
}

// repository strips the tag and digest of a reference.
func repository(reference string) string {
	reference, _, _ = strings.Cut(reference, "@")
	if colon := strings.LastIndexByte(reference, ':'); colon > strings.LastIndexByte(reference, '/') {
		return reference[:colon]
	}
	return reference
}

// The result of one rule for one image.
type ruleResult struct {
	policy, rule, exception string
	status                  Status
	reasons                 []policy.Reason
}

// byRule joins the decisions of each rule. The worst of its entries determines the result.
func byRule(decisions []report.Decision) []ruleResult {
	var all []ruleResult
	for i := range decisions {
		d := &decisions[i]
		one := ruleResult{policy: d.Policy.String(), rule: d.Rule, status: effectOf(d), reasons: located(d)}
		if d.Exception != nil {
			one.exception = d.Exception.String()
		}
		same := slices.IndexFunc(all, func(s ruleResult) bool { return s.policy == one.policy && s.rule == one.rule })
		switch {
		case same < 0:
			all = append(all, one)
		case weight(one.status) > weight(all[same].status):
			all[same] = one
		case one.status == all[same].status:
			all[same].reasons = append(all[same].reasons, one.reasons...)
		}
	}
	return all
}

// located returns the reasons of a decision, with the decision's entry in their paths.
func located(d *report.Decision) []policy.Reason {
	reasons := slices.Clone(d.Reasons)
	for i := range reasons {
		if path := reasons[i].Path; d.Entry != "" && !strings.HasPrefix(path, d.Entry) {
			reasons[i].Path = strings.TrimSuffix(d.Entry+"."+path, ".")
		}
	}
	return reasons
}

func effectOf(d *report.Decision) Status {
	switch d.Effect {
	case report.EffectDeny:
		return Deny
	case report.EffectWarn:
		return Warn
	case report.EffectAllow:
		if d.Result == policy.Skipped && (d.Exception == nil || !d.Exception.AsPass) {
			return Skip
		}
		return Pass
	default:
		return Error
	}
}

// rule makes the finding of a rule for the object, including a rule that could not be evaluated.
func (m *record) rule(r *report.Rule) {
	f := Finding{Policy: r.Policy.String(), Rule: r.Rule}
	reasons := r.Reasons
	switch {
	case r.Error != "":
		if m.tellsOf(r.Error) {
			return
		}
		f.Status, reasons = m.unasked(r)
	case r.Exception != nil:
		f.Status, f.Exception = Skip, r.Exception.String()
		if r.Exception.AsPass {
			f.Status = Pass
		}
		reasons = []policy.Reason{{Code: policy.Excepted, Message: r.Skipped}}
	case r.Result == policy.Pass:
		f.Status = Pass
		reasons = orAll(reasons, []policy.Reason{{Code: policy.Verified, Message: "the object satisfies the rule"}})
	case r.Result == policy.Skipped:
		f.Status = Skip
	case r.Result == "":
		return
	case r.Action.Admits():
		f.Status = Warn
	case r.Result == policy.Fail:
		f.Status = Deny
	case r.Policy.FailOpen:
		f.Status = Warn
	default:
		f.Status = Error
	}
	m.add(f, reasons)
}

// unasked returns the status of a rule that could not be evaluated, from the object's reasons and
// warnings.
func (m *record) unasked(r *report.Rule) (Status, []policy.Reason) {
	for _, reason := range m.Reasons {
		if strings.Contains(reason.Message, r.Error) {
			return Error, []policy.Reason{reason}
		}
	}
	for _, warning := range m.Warnings {
		if strings.Contains(warning.Message, r.Error) {
			return Warn, []policy.Reason{warning}
		}
	}
	reasons := []policy.Reason{{Code: policy.PolicyError, Message: r.Error, Hint: hint.Of(policy.PolicyError)}}
	if m.Result.Admits() {
		return Warn, reasons
	}
	return Error, reasons
}

// tellsOf reports whether a finding contains an error.
func (m *record) tellsOf(err string) bool {
	for told := range m.reported {
		if strings.Contains(told.message, err) {
			return true
		}
	}
	return false
}

// each makes a finding of each reason, at the reason's path in the object.
func (m *record) each(status Status, reasons []policy.Reason) {
	for _, reason := range reasons {
		f := Finding{Status: status}
		if strings.HasPrefix(reason.Path, "/") {
			f.Pointer, f.Position = report.Clean(reason.Path), m.PositionOf(reason.Path)
		}
		m.add(f, []policy.Reason{reason})
	}
}

// whole makes the findings of the object that belong to no single image or rule. It ensures that
// the worst finding equals the answer.
func (m *record) whole() {
	rest := m.unreported(m.Reasons)
	status := statusOf(m.Result)
	switch own := worst(m.object.Findings); {
	case !m.Result.Admits() && weight(status) > weight(own):
		rest = orAll(rest, m.Reasons)
		if len(rest) == 0 {
			m.add(Finding{Status: status}, nil)
		}
		m.each(status, rest)
	case !m.Result.Admits():
		m.each(Error, rest)
	default:
		m.each(Note, rest)
	}
	m.each(Warn, m.unreported(m.Warnings))
	if len(m.object.Findings) == 0 {
		m.add(Finding{Status: Skip}, []policy.Reason{{Code: policy.NotConcerned, Message: "it has no images, and no rule matches it"}})
	}
}
