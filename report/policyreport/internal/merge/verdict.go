package merge

import (
	"cmp"
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/result"
)

// verdict is the comparable content of a result: the decision, its reason and the image.
type verdict struct {
	status                             result.Status
	code                               policy.Code
	exception, digest, signer, message string
}

// verdictOf returns the content that all objects of one workload share. It leaves out the
// spelling of the image, the path in the object (a pod and its template differ), and the location
// of evidence. Of an error only the code counts, since network messages vary.
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

// alike reports whether results of two objects of one workload are equal.
func alike(a, b result.Result) bool { return verdictOf(a) == verdictOf(b) }

// same reports whether two results of one object differ at most in their process and time.
func same(a, b result.Result) bool {
	if !alike(a, b) || a.Rule != b.Rule || a.Policy != b.Policy || !maps.Equal(a.Properties, b.Properties) {
		return false
	}
	if a.Image != nil && b.Image != nil && a.Image.Written != b.Image.Written || (a.Image == nil) != (b.Image == nil) {
		return false
	}
	return a.Status == result.Error || a.Message == b.Message
}

// plain returns a message in the form for pods.
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

// supersedes reports whether a result replaces another of the same object and line. It does if it
// is newer, or of the same time and later in the alphabet, so that all replicas choose the same
// one.
func supersedes(r, old result.Result) bool {
	if c := r.Time.Compare(old.Time); c != 0 {
		return c > 0
	}
	return order(r, old) > 0
}

// order compares the contents of two results.
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
