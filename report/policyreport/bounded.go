package policyreport

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// hashLength is the length of a policy's hash in a report, enough to distinguish versions of a
// policy.
const hashLength = 12

// bounded returns a result in the form of reports: bounded, and without the fields that reports
// lack.
func bounded(r result.Result) result.Result {
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
	r.Resource = boundedResource(r.Resource)
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

// allBounded, boundedResource and boundedPolicies do the same for lists and parts.
func allBounded(results []result.Result) []result.Result {
	all := make([]result.Result, len(results))
	for i, r := range results {
		all[i] = bounded(r)
	}
	return all
}

func boundedResource(of report.Resource) report.Resource {
	return report.Resource{APIVersion: text(of.APIVersion), Kind: text(of.Kind), Namespace: text(of.Namespace), Name: text(of.Name), UID: text(of.UID)}
}

func boundedPolicies(of []result.Policy) []result.Policy {
	all := make([]result.Policy, len(of))
	for i, p := range of {
		all[i] = bounded(result.Result{Policy: p}).Policy
	}
	return all
}

func boundedRules(of []result.Rule) []result.Rule {
	all := make([]result.Rule, len(of))
	for i, r := range of {
		b := bounded(result.Result{Policy: r.Policy, Rule: r.Rule})
		all[i] = result.Rule{Policy: b.Policy, Rule: b.Rule}
	}
	return all
}

// properties returns the properties of a policy's author for a report: without reserved names,
// and the first by name if there are too many.
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

// severity returns a severity that the APIs define, or none.
func severity(of string) string {
	of = strings.ToLower(of)
	if slices.Contains([]string{"critical", "high", "medium", "low", "info"}, of) {
		return of
	}
	return ""
}

func text(of string) string { return shorten(of, maxText) }

// shorten truncates a text to a number of bytes, with an ellipsis.
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
