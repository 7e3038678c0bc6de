package cel_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
)

// TestComments: a comment of the source stands before what its part has become, and changes nothing.
func TestComments(t *testing.T) {
	const head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n"
	for _, c := range []struct {
		reason, source, before string
		partial                bool
	}{
		{"a mutation", head + `  rules:
  - name: a
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate:
      # REMARK
      patchStrategicMerge: {metadata: {labels: {+(team): none}}}
`, "- patchType: ApplyConfiguration", false},
		{"a context entry", head + `  rules:
  - name: a
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - name: limit # REMARK
      apiCall: {urlPath: /api/v1/namespaces/a/configmaps, jmesPath: "items[].metadata.name"}
    validate: {message: m, deny: {conditions: {any: [{key: a, operator: In, value: "{{ limit }}"}]}}}
`, "variables:", false},
		{"a rule that generates", head + `  rules:
  # REMARK
  - name: a
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      synchronize: true
      apiVersion: v1
      kind: ConfigMap
      name: a
      namespace: "{{ request.object.metadata.name }}"
      data: {data: {a: b}}
`, "- template:", false},
		{"a signer", head + `  rules:
  - name: a
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["registry.example/*"]
      failureAction: Enforce
      attestors:
      # REMARK
      - entries:
        - keyless: {subject: a@example.com, issuer: "https://issuer.example", rekor: {url: "https://rekor.example"}}
`, "attestors:", false},
		{"a schedule", `apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: a}
spec:
  schedule: "0 3 * * *" # REMARK
  match: {any: [{resources: {kinds: [ConfigMap]}}]}
`, "schedule: 0 3 * * *", false},
		{"a rule that stays", head + `  rules:
  - name: a
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: m, pattern: {metadata: {labels: {a: b}}}}
  - name: b
    match: {any: [{resources: {kinds: [ConfigMap]}, clusterRoles: [admin]}]}
    validate:
      # REMARK
      message: m
      pattern: {metadata: {labels: {a: b}}}
`, "message: m", true},
	} {
		written := func(source string) string {
			result := convertText(t, source, cel.Options{Partial: c.partial})
			text, err := cel.YAML(append(result.Policies, result.Rest...))
			if err != nil || len(result.Policies) == 0 {
				t.Fatalf("%s: %v %v", c.reason, err, result.Problems)
			}
			return string(text)
		}
		var before string
		var others []string
		lines := strings.Split(written(c.source), "\n")
		for i, line := range lines {
			if strings.TrimSpace(line) == "# REMARK" {
				before = strings.TrimSpace(lines[i+1])
				continue
			}
			others = append(others, line)
		}
		if before != c.before {
			t.Errorf("%s: the comment is before %q, want %q:\n%s", c.reason, before, c.before, strings.Join(lines, "\n"))
		}
		if without := written(strings.ReplaceAll(c.source, "# REMARK", "")); without != strings.Join(others, "\n") {
			t.Errorf("%s: the comment changed the result:\n%s", c.reason, without)
		}
	}
}
