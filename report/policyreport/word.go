package policyreport

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// hashLength is how much of a policy's hash stands in a report: enough to tell one
// version of a policy from another.
const hashLength = 12

// worded returns a result as a report can hold it: bounded, and without what no report
// says.
func worded(r result.Result) result.Result {
	r.Policy = result.Policy{
		Kind: text(r.Policy.Kind), Namespace: text(r.Policy.Namespace), Name: text(r.Policy.Name), Category: text(r.Policy.Category),
		Severity: severity(r.Policy.Severity), Hash: clip(text(r.Policy.Hash), hashLength), Unscored: r.Policy.Unscored,
	}
	if r.Policy.Kind == "" {
		r.Policy.Kind = defaultKind(r.Policy.Namespace != "")
	}
	r.Rule, r.Exception, r.Code = text(r.Rule), text(r.Exception), policy.Code(text(string(r.Code)))
	r.Message = shorten(r.Message, maxMessage)
	r.Process = report.Process(text(string(r.Process)))
	r.Enforced = false
	r.Time = time.Unix(r.Time.Unix(), int64(r.Time.Nanosecond())).UTC()
	r.Resource = report.Resource{
		APIVersion: text(r.Resource.APIVersion), Kind: text(r.Resource.Kind), Namespace: text(r.Resource.Namespace),
		Name: text(r.Resource.Name), UID: text(r.Resource.UID),
	}
	if r.Image != nil {
		image := result.Image{
			Container: text(r.Image.Container), Written: text(r.Image.Written), Digest: text(r.Image.Digest),
			Signer: text(r.Image.Signer), Evidence: text(r.Image.Evidence),
		}
		r.Image = &image
		if image == (result.Image{}) {
			r.Image = nil
		}
	}
	r.Properties = properties(r.Properties)
	return r
}

// properties returns those of a policy's author that a report shows: none that has the
// name of one of ours, and the first of too many by name.
func properties(of map[string]string) map[string]string {
	var kept map[string]string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if isOwn(name) || name == "" || len(name) > maxPropertyName || !utf8.ValidString(name) || of[name] == "" {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = shorten(of[name], maxProperty)
		if len(kept) == maxProperties {
			break
		}
	}
	return kept
}

// severity returns a severity that the APIs know, or none.
func severity(of string) string {
	of = strings.ToLower(of)
	if slices.Contains([]string{"critical", "high", "medium", "low", "info"}, of) {
		return of
	}
	return ""
}

func text(of string) string { return shorten(of, maxText) }

// shorten cuts a text to a number of bytes, with an ellipsis for what is missing.
func shorten(of string, most int) string {
	of = strings.ToValidUTF8(of, "\uFFFD")
	if len(of) <= most {
		return of
	}
	const ellipsis = "…"
	cut := most - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(of[cut]) {
		cut--
	}
	return of[:cut] + ellipsis
}

func clip(of string, most int) string { return of[:min(len(of), most)] }

// verdict is what a word says: what was decided and why, and about which image.
type verdict struct {
	status                             result.Status
	code                               policy.Code
	exception, digest, signer, message string
}

// verdictOf returns what a result says, as all objects of one workload may say it. How
// an image is written is not a part of that, nor where in the object something is (a
// pod has it at another place than its template), nor where evidence was found. Of an
// error only the code counts: what a network says differs each time.
func verdictOf(r result.Result) verdict {
	v := verdict{status: r.Status, code: r.Code, exception: r.Exception}
	if r.Image != nil {
		v.digest, v.signer = r.Image.Digest, r.Image.Signer
	}
	if r.Status != result.Error {
		v.message = plain(r)
	}
	return v
}

// alike reports whether two objects of one workload say the same.
func alike(a, b result.Result) bool { return verdictOf(a) == verdictOf(b) }

// same reports whether a reader sees no difference between two words of one object but
// in how and when they came about.
func same(a, b result.Result) bool {
	if !alike(a, b) || a.Rule != b.Rule || a.Policy != b.Policy || !maps.Equal(a.Properties, b.Properties) {
		return false
	}
	if a.Image != nil && b.Image != nil && a.Image.Written != b.Image.Written || (a.Image == nil) != (b.Image == nil) {
		return false
	}
	return a.Status == result.Error || a.Message == b.Message
}

// plain returns a message as it would be about a pod.
func plain(r result.Result) string {
	message := r.Message
	if base := baseRule(r.Rule); base != r.Rule {
		message = strings.ReplaceAll(message, r.Rule, base)
	}
	for _, template := range []string{"spec/jobTemplate/spec/template/spec/", "spec/template/spec/"} {
		message = strings.ReplaceAll(message, template, "spec/")
	}
	for _, template := range []string{"spec.jobTemplate.spec.template.spec.", "spec.template.spec."} {
		message = strings.ReplaceAll(message, template, "spec.")
	}
	return message
}

// supersedes reports whether a result holds in place of another of the same object and
// line: it is newer, or of the same time and later in the alphabet, so that all who see
// both keep the same one.
func supersedes(r, old result.Result) bool {
	if c := r.Time.Compare(old.Time); c != 0 {
		return c > 0
	}
	return order(r, old) > 0
}

// order compares what two results say.
func order(a, b result.Result) int {
	c := cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.Exception, b.Exception), cmp.Compare(a.Policy.Hash, b.Policy.Hash), cmp.Compare(a.Policy.Category, b.Policy.Category),
		cmp.Compare(a.Policy.Severity, b.Policy.Severity), cmp.Compare(a.Process, b.Process))
	if c == 0 && a.Image != nil && b.Image != nil {
		c = cmp.Or(cmp.Compare(a.Image.Digest, b.Image.Digest), cmp.Compare(a.Image.Written, b.Image.Written),
			cmp.Compare(a.Image.Signer, b.Image.Signer), cmp.Compare(a.Image.Evidence, b.Image.Evidence))
	}
	return c
}
