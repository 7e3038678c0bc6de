package merge

import (
	"cmp"
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/result"
)

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
