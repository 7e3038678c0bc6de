package suite

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/suite/result"
)

// warningsOf are all warnings of a report.
func warningsOf(r result.Report) string {
	var all []string
	for _, s := range r.Suites {
		all = append(all, s.Warnings...)
	}
	return strings.Join(all, "\n")
}

// TestMissingRules: as in Kyverno, a row about a rule that its policy does not have checks nothing; it is
// skipped, and a warning names it. An object that is not there fails in any case.
func TestMissingRules(t *testing.T) {
	t.Parallel()
	const head = "policies: [policy.yaml]\nresources: [pods.yaml]\nresults:\n"
	for _, c := range []struct {
		reason, row string
		want        [3]int
		warning     string
	}{
		{"the rule is there", "{policy: p, rule: labelled, kind: Pod, resources: [good], result: pass}", [3]int{1}, ""},
		{"derived for controllers", "{policy: p, rule: autogen-labelled, kind: Pod, resources: [good], result: skip}", [3]int{0, 0, 1}, ""},
		{"another spelling", "{policy: p, rule: labeled, kind: Pod, resources: [good], result: pass}", [3]int{0, 0, 1}, `policy p, rule "labeled", result pass: the policy has no rule of this name (it has labelled)`},
		{"which is to fail", "{policy: p, rule: labeled, kind: Pod, resources: [good, bad], result: fail}", [3]int{0, 0, 2}, `rule "labeled", result fail`},
		{"of all objects", "{policy: p, rule: labeled, kind: Pod, result: pass}", [3]int{0, 0, 1}, `rule "labeled"`},
		{"no name", "{policy: p, kind: Pod, resources: [good], result: pass}", [3]int{0, 0, 1}, `rule ""`},
		{"a part of the name", "{policy: p, rule: label, kind: Pod, resources: [good], result: pass}", [3]int{0, 0, 1}, `rule "label"`},
		{"nor the object", "{policy: p, rule: labeled, kind: Pod, resources: [better], result: pass}", [3]int{0, 1}, `rule "labeled"`},
		{"nor one of the objects", "{policy: p, rule: labeled, kind: Pod, resources: [good, better], result: fail}", [3]int{0, 1, 1}, `rule "labeled"`},
		{"of a policy that is not there", "{policy: q, rule: labelled, kind: Pod, resources: [good], result: pass}", [3]int{0, 1}, ""},
		{"of an object that is not there", "{policy: p, rule: labelled, kind: Pod, resources: [better], result: pass}", [3]int{0, 1}, ""},
		{"which holds otherwise", "{policy: p, rule: labelled, kind: Pod, resources: [bad], result: pass}", [3]int{0, 1}, ""},
	} {
		report := labels(t, head+"- "+c.row+"\n", nil)
		if got, warning := counts(report), warningsOf(report); got != c.want || (c.warning == "") != (warning == "") || !strings.Contains(warning, c.warning) {
			t.Errorf("%s: passed, failed and skipped are %v, want %v; the warnings are %q, want %q", c.reason, got, c.want, warning, c.warning)
		}
	}
	report := labels(t, head+"- {policy: v, rule: any, kind: Pod, resources: [good], isValidatingPolicy: true, result: pass}\n",
		map[string]string{"policy.yaml": strings.ReplaceAll(validatingPolicy, "NAME", "v")})
	if got := counts(report); got != [3]int{1} || warningsOf(report) != "" {
		t.Errorf("of a kind without rules: %v, %q", got, warningsOf(report))
	}
}

const (
	ownerPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owner}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {owner: shop}}}}
`
	ownedPod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {owner: shop}}\nspec: {containers: [{name: c, image: i}]}\n"
	quotaPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quota}
spec:
  rules:
  - name: quota
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: ResourceQuota, name: quota, namespace: "{{ request.object.metadata.name }}", data: {spec: {hard: {pods: "10"}}}}
`
	clonePolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pull}
spec:
  rules:
  - name: pull
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: Secret, name: regcred, namespace: "{{ request.object.metadata.name }}", clone: {name: regcred, namespace: platform}}
  - name: list
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {namespace: "{{ request.object.metadata.name }}", cloneList: {kinds: [v1/Secret], namespace: platform, selector: {matchExpressions: [{key: copied, operator: In, values: ["yes", "true"]}]}}}
`
	generatingPolicy = `apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: pull-cel}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}]}
  generate: [{expression: 'generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "platform", "regcred")])'}]
`
	pullSecret = "apiVersion: v1\nkind: Secret\nmetadata: {name: regcred, namespace: platform, labels: {copied: \"yes\"}}\ndata: {a: Yg==}\n"
	quota      = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: quota, namespace: shop}\nspec: {hard: {pods: \"10\"}}\n"
)

// TestExpectedDifferences: as in Kyverno, a row that expects fail and names a file holds where a rule that
// passes makes something else than the file has.
func TestExpectedDifferences(t *testing.T) {
	t.Parallel()
	network := strings.ReplaceAll(mutatingPolicy, "NAME", "network")
	other := strings.ReplaceAll(ownedPod, "owner: shop", "owner: blog")
	ofShop := strings.ReplaceAll(pullSecret, "platform", "shop")
	for _, c := range []struct {
		reason, row, file string
		want              [3]int
		warning           string
	}{
		{"the same, as expected", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, result: pass}", ownedPod, [3]int{1}, ""},
		{"another, and pass is expected", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, result: pass}", other, [3]int{0, 1}, ""},
		{"another, and fail is expected", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, result: fail}", other, [3]int{1}, ""},
		{"the same, and fail is expected", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, result: fail}", ownedPod, [3]int{0, 1}, ""},
		{"fail is expected, without a file", "{policy: owner, rule: owner, kind: Pod, resources: [a], result: fail}", "", [3]int{0, 1}, ""},
		{"another, and skip is expected", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, result: skip}", other, [3]int{0, 1}, ""},
		{"the file does not have the object", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, result: fail}", strings.ReplaceAll(other, "name: a", "name: b"), [3]int{0, 0, 1}, "file.yaml does not have Pod/default/a, and the row checks nothing"},
		{"which it must have", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, failOnMissingResources: true, result: fail}", strings.ReplaceAll(other, "name: a", "name: b"), [3]int{0, 1}, ""},
		{"which it need not have", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: file.yaml, failOnMissingResources: false, result: fail}", strings.ReplaceAll(other, "name: a", "name: b"), [3]int{0, 0, 1}, ""},
		{"the file is not there", "{policy: owner, rule: owner, kind: Pod, resources: [a], patchedResources: none.yaml, result: fail}", other, [3]int{0, 1}, ""},
		{"of a MutatingPolicy, another", "{policy: network, kind: Pod, resources: [a], isMutatingPolicy: true, patchedResources: file.yaml, result: fail}", ownedPod, [3]int{1}, ""},
		{"of a MutatingPolicy, the same", "{policy: network, kind: Pod, resources: [a], isMutatingPolicy: true, patchedResources: file.yaml, result: fail}",
			strings.ReplaceAll(plainPod, "spec: {", "spec: {hostNetwork: true, "), [3]int{0, 1}, ""},
		{"generated, the same", "{policy: quota, rule: quota, kind: Namespace, resources: [shop], generatedResource: file.yaml, result: pass}", quota, [3]int{1}, ""},
		{"generated, another, and pass is expected", "{policy: quota, rule: quota, kind: Namespace, resources: [shop], generatedResource: file.yaml, result: pass}", strings.ReplaceAll(quota, "10", "11"), [3]int{0, 1}, ""},
		{"generated, another, and fail is expected", "{policy: quota, rule: quota, kind: Namespace, resources: [shop], generatedResource: file.yaml, result: fail}", strings.ReplaceAll(quota, "10", "11"), [3]int{1}, ""},
		{"generated, the same, and fail is expected", "{policy: quota, rule: quota, kind: Namespace, resources: [shop], generatedResource: file.yaml, result: fail}", quota, [3]int{0, 1}, ""},
		{"copied, the same", "{policy: pull, rule: pull, kind: Namespace, resources: [shop], cloneSourceResource: source.yaml, generatedResource: file.yaml, result: pass}", ofShop, [3]int{1}, ""},
		{"copied, another", "{policy: pull, rule: pull, kind: Namespace, resources: [shop], cloneSourceResource: source.yaml, generatedResource: file.yaml, result: pass}", strings.ReplaceAll(ofShop, "Yg==", "Yw=="), [3]int{0, 1}, ""},
		{"copied, and there is no source", "{policy: pull, rule: pull, kind: Namespace, resources: [shop], generatedResource: file.yaml, result: pass}", ofShop, [3]int{0, 1}, ""},
		{"no source, as expected", "{policy: pull, rule: pull, kind: Namespace, resources: [shop], result: error}", "", [3]int{1}, ""},
		{"of a GeneratingPolicy, the same", "{policy: pull-cel, isGeneratingPolicy: true, kind: Namespace, resources: [shop], cloneSourceResource: source.yaml, generatedResource: file.yaml, result: pass}", ofShop, [3]int{1}, ""},
		{"of a GeneratingPolicy, another", "{policy: pull-cel, isGeneratingPolicy: true, kind: Namespace, resources: [shop], cloneSourceResource: source.yaml, generatedResource: file.yaml, result: pass}", strings.ReplaceAll(ofShop, "Yg==", "Yw=="), [3]int{0, 1}, ""},
		{"of a GeneratingPolicy, and there is no source", "{policy: pull-cel, isGeneratingPolicy: true, kind: Namespace, resources: [shop], result: error}", "", [3]int{1}, ""},
		{"a list, the same", "{policy: pull, rule: list, kind: Namespace, resources: [shop], cloneSourceResource: source.yaml, generatedResource: file.yaml, result: pass}", ofShop, [3]int{1}, ""},
		{"a list without it", "{policy: pull, rule: list, kind: Namespace, resources: [shop], generatedResource: file.yaml, result: pass}", ofShop, [3]int{0, 1}, ""},
	} {
		policies := "[owner.yaml]"
		if strings.Contains(c.row, "pull") {
			policies = "[clone.yaml, generating.yaml]"
		}
		if strings.Contains(c.row, "network") {
			policies = "[network.yaml]"
		}
		if strings.Contains(c.row, "quota") {
			policies = "[quota.yaml]"
		}
		report := ran(t, map[string]string{
			"owner.yaml": ownerPolicy, "network.yaml": network, "quota.yaml": quotaPolicy, "clone.yaml": clonePolicy, "generating.yaml": generatingPolicy, "source.yaml": pullSecret, "file.yaml": c.file,
			"objects.yaml": plainPod + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
			FileName:       "policies: " + policies + "\nresources: [objects.yaml]\nresults:\n- " + c.row + "\n",
		})
		if got, warning := counts(report), warningsOf(report); got != c.want || (c.warning == "") != (warning == "") || !strings.Contains(warning, c.warning) {
			t.Errorf("%s: passed, failed and skipped are %v, want %v; the warnings are %q, want %q: %+v", c.reason, got, c.want, warning, c.warning, report)
		}
	}
}

// exempting are a policy of each kind, and the exceptions that exempt pods called spared.
const exempting = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: old}
spec:
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: want a label, pattern: {metadata: {labels: {app: "?*"}}}}
  - name: owner
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {owner: shop}}}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: old, namespace: default}
spec:
  exceptions: [{policyName: old, ruleNames: [labelled, owner]}]
  match: {any: [{resources: {kinds: [Pod], names: [spared]}}]}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: new}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.metadata.?labels.app.hasValue()", message: want a label}]
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedValidatingPolicy
metadata: {name: own, namespace: default}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.metadata.?labels.app.hasValue()", message: want a label}]
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: network}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{hostNetwork: true}}"}}]
---
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: images}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  matchImageReferences: [{glob: "*"}]
  attestors: [{name: a, cosign: {keyless: {identities: [{issuer: "https://issuer.example", subject: a}]}}}]
  validations: [{expression: "images.containers.map(image, verifyImageSignatures(image, [attestors.a])).all(e, e > 0)", message: not signed}]
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: new, namespace: default}
spec:
  policyRefs: [{name: new, kind: ValidatingPolicy}, {name: own, kind: NamespacedValidatingPolicy}, {name: network, kind: MutatingPolicy}, {name: images, kind: ImageValidatingPolicy}]
  matchConditions: [{name: spared, expression: "object.metadata.name == 'spared'"}]
`

// TestExempted: an exception of each kind makes a row skip, for the objects that it exempts alone.
func TestExempted(t *testing.T) {
	t.Parallel()
	pod := func(name string) string { return "---\n" + strings.ReplaceAll(plainPod, "name: a", "name: "+name) }
	for _, c := range []struct{ row, other string }{
		{"policy: old, rule: labelled", "fail"},
		{"policy: old, rule: owner", "pass"},
		{"policy: new, isValidatingPolicy: true", "fail"},
		{"policy: default/own, isValidatingPolicy: true", "fail"},
		{"policy: network, isMutatingPolicy: true", "pass"},
		{"policy: images, isImageValidatingPolicy: true", "error"},
	} {
		for _, expected := range []string{"skip", "pass", "fail", "error"} {
			report := ran(t, map[string]string{
				"policies.yaml": exempting, "pods.yaml": pod("spared") + pod("other"),
				FileName: "policies: [policies.yaml]\nresources: [pods.yaml]\nresults:\n" +
					"- {" + c.row + ", kind: Pod, resources: [spared], result: " + expected + "}\n" +
					"- {" + c.row + ", kind: Pod, resources: [other], result: " + c.other + "}\n",
			})
			want := [3]int{1, 1}
			if expected == "skip" {
				want = [3]int{1, 0, 1}
			}
			if got := counts(report); got != want {
				t.Errorf("%s of an exempted object, where %s is expected: passed, failed and skipped are %v, want %v: %+v", c.row, expected, got, want, report)
			}
		}
	}
}

// TestImagesOfAContext: what the file of context says of images is what every kind of policy reads, and
// nothing is known of another image.
func TestImagesOfAContext(t *testing.T) {
	t.Parallel()
	const policies = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: old}
spec:
  rules:
  - name: user
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: data, imageRegistry: {reference: "{{ request.object.spec.containers[0].image }}"}}]
    validate: {message: runs as root, deny: {conditions: {any: [{key: "{{ data.configData.config.User || '' }}", operator: Equals, value: ""}]}}}
  - name: size
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: size, imageRegistry: {reference: "{{ request.object.spec.containers[0].image }}", jmesPath: "sum(manifest.layers[*].size)"}}]
    validate: {message: too large, deny: {conditions: {any: [{key: "{{ size }}", operator: GreaterThan, value: 100}]}}}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: new}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  variables: [{name: data, expression: "image.GetMetadata(object.spec.containers[0].image)"}]
  validations: [{expression: "variables.data.config.config.User != '' && variables.data.manifest.layers.all(l, l.size <= 100) && variables.data.imageIndex.manifests.size() == 1"}]
`
	const images = `apiVersion: cli.kyverno.io/v1alpha1
kind: Context
metadata: {name: c}
spec:
  images:
  - {image: "good:1", resolvedImage: "index.docker.io/library/good:1", registry: index.docker.io, repository: library/good, tag: "1", config: {config: {User: "7"}}, manifest: {layers: [{size: 60}, {size: 40}]}, imageIndex: {manifests: [{}]}}
  - {image: "bad:1", resolvedImage: "index.docker.io/library/bad:1", registry: index.docker.io, repository: library/bad, digest: "sha256:1111111111111111111111111111111111111111111111111111111111111111", config: {config: {User: ""}}, manifest: {layers: [{size: 101}]}, imageIndex: {manifests: [{}]}}
`
	pod := func(name string) string {
		return "---\n" + strings.NewReplacer("name: a", "name: "+name, "image: i", `image: "`+name+`:1"`).Replace(plainPod)
	}
	for _, row := range []string{"policy: old, rule: user", "policy: old, rule: size", "policy: new, isValidatingPolicy: true"} {
		for object, want := range map[string]string{"good": "pass", "bad": "fail", "other": "error"} {
			for _, expected := range []string{"pass", "fail", "error"} {
				report := ran(t, map[string]string{
					"policies.yaml": policies, "pods.yaml": pod("good") + pod("bad") + pod("other"), "context.yaml": images,
					FileName: "policies: [policies.yaml]\nresources: [pods.yaml]\ncontext: context.yaml\nresults: [{" + row + ", kind: Pod, resources: [" + object + "], result: " + expected + "}]\n",
				})
				if holds := counts(report) == [3]int{1}; holds != (expected == want) || report.Passed+report.Failed != 1 {
					t.Errorf("%s of %s, where %s is expected: %+v, want %s", row, object, expected, report, want)
				}
			}
		}
	}
}

// TestClonedFilesThatDiffer: a suite has one cluster, in which an object has one content.
func TestClonedFilesThatDiffer(t *testing.T) {
	t.Parallel()
	const row = "- {policy: pull, rule: pull, kind: Namespace, resources: [shop], result: pass, cloneSourceResource: "
	files := map[string]string{
		"clone.yaml": clonePolicy, "objects.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", "one.yaml": pullSecret, "same.yaml": pullSecret,
		"other.yaml": strings.ReplaceAll(pullSecret, "Yg==", "Yw=="),
	}
	for second, fails := range map[string]bool{"same.yaml": false, "other.yaml": true, "none.yaml": true} {
		files[FileName] = "policies: [clone.yaml]\nresources: [objects.yaml]\nresults:\n" + row + "one.yaml}\n" + row + second + "}\n"
		report := ran(t, files)
		if failed := counts(report) != [3]int{2}; failed != fails {
			t.Errorf("%s: %+v", second, report)
		}
	}
}
