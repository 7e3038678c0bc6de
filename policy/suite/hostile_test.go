package suite

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/suite/result"
)

const hostilePolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate:
        message: "no {{request.object.metadata.annotations.evil}}"
        deny: {conditions: {any: [{key: "{{request.object.metadata.name}}", operator: Equals, value: a}]}}
`

const hostilePod = `apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {evil: "\e[2J\a[l](http://e.example)\r| \u202ex"}}
spec: {containers: [{name: c, image: i}]}
`

// hostile runs a suite with these results, with the filter of the command line.
func hostile(t *testing.T, resource, results string) result.Report {
	t.Helper()
	return ran(t, map[string]string{
		"policy.yaml": hostilePolicy, "pod.yaml": hostilePod,
		FileName: "policies: [policy.yaml]\nresources: [" + resource + "]\nresults:\n" + results,
	})
}

func TestRowsThatCannotFailAreFailures(t *testing.T) {
	for name, c := range map[string]struct {
		resource, results, says string
	}{
		"of a kind that there is none of": {"pod.yaml", "- {policy: p, rule: r, kind: Service, resources: [], result: pass}", "matches no object"},
		"of no name":                      {"pod.yaml", "- {policy: p, rule: r, kind: Pod, resources: [''], result: pass}", "is empty"},
		"of no name in a specification":   {"pod.yaml", "- {policy: p, rule: r, resourceSpecs: [{kind: Pod}], result: pass}", "is empty"},
		"of another group":                {"pod.yaml", "- {policy: p, rule: r, resourceSpecs: [{group: other.example, kind: Pod, name: a}], result: fail}", "no object"},
		"of a device without end":         {"../../../../../../../../dev/zero", "- {policy: p, rule: r, kind: Pod, resources: [a], result: fail}", "regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			report := hostile(t, c.resource, c.results)
			var text strings.Builder
			if err := result.Write(&text, report, "", result.TextOptions{}); err != nil {
				t.Fatal(err)
			}
			if report.Failed != 1 || report.Passed != 0 || !strings.Contains(text.String(), c.says) {
				t.Errorf("%s: want one failure with %q", text.String(), c.says)
			}
		})
	}
	for _, results := range []string{"- {policy: p, rule: r, kind: Pod, resources: [a], result: fail}", "- {policy: p, rule: r, resourceSpecs: [{kind: Pod, name: a}], result: fail}\n---\n# nothing\n"} {
		if report := hostile(t, "pod.yaml", results); report.Passed != 1 || report.Failed != 0 {
			t.Errorf("%s: %+v", results, report)
		}
	}
}

func TestForeignTextIsEscaped(t *testing.T) {
	report := hostile(t, "pod.yaml", "- {policy: p, rule: r, kind: Pod, resources: [a], result: pass}")
	for _, format := range []string{"", "markdown"} {
		var text strings.Builder
		if err := result.Write(&text, report, format, result.TextOptions{Detailed: true}); err != nil {
			t.Fatal(err)
		}
		if got := text.String(); strings.ContainsAny(got, "\x1b\a\r\u202e") || !strings.Contains(got, "x1b") || format == "markdown" && !strings.Contains(got, `\[l]`) {
			t.Errorf("%q: %q", format, got)
		}
	}
}
