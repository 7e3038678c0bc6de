package attacks

import (
	"context"
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/source"
)

// anySecret is a cluster that has every Secret and ConfigMap, which the gateway may read.
type anySecret struct{ kind string }

// Source implements source.Objects.
func (a anySecret) Source(_ context.Context, of source.Ref) (map[string]any, error) {
	kind := of.Kind
	if of.Resource != "" {
		kind = map[string]string{"secrets": "Secret", "configmaps": "ConfigMap"}[of.Resource]
	}
	return map[string]any{"apiVersion": "v1", "kind": kind, "type": a.kind, "metadata": map[string]any{"name": of.Name, "namespace": of.Namespace}}, nil
}

// EachSource implements source.Objects.
func (a anySecret) EachSource(ctx context.Context, of source.Ref, do func(map[string]any) error) error {
	of.Name = "any"
	object, err := a.Source(ctx, of)
	if err != nil {
		return err
	}
	return do(object)
}

// copies returns the copies that a policy makes for a trigger.
func (s *scene) copies(document, trigger string, from source.Objects) []policy.Downstream {
	s.t.Helper()
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	s.check(err)
	var object map[string]any
	s.check(yaml.Unmarshal([]byte(trigger), &object))
	metadata, _ := object["metadata"].(map[string]any)
	subject := policy.Subject{Version: "v1", Operation: "CREATE", Object: policy.ContentOf(object)}
	subject.Kind, _ = object["kind"].(string)
	subject.Name, _ = metadata["name"].(string)
	subject.Namespace, _ = metadata["namespace"].(string)
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	text, err := yaml.YAMLToJSON([]byte(document))
	s.check(err, json.Unmarshal(text, &head))
	for _, dialect := range compilers.Dialects() {
		if dialect.Recognises(head.APIVersion, head.Kind) {
			p, err := dialect.Compile([]byte(document), "policy.yaml")
			s.check(err)
			var made []policy.Downstream
			for _, g := range p.Generations {
				made = append(made, g.Generate(s.t.Context(), policy.Case{Subject: &subject, Sources: from}).Objects...)
			}
			return made
		}
	}
	s.t.Fatalf("no dialect of %s", head.Kind)
	return nil
}

// copied wants a copy, and uncopied none.
func (s *scene) copied(document, trigger string, from source.Objects) {
	s.t.Helper()
	s.admissions++
	if len(s.copies(document, trigger, from)) == 0 {
		s.t.Errorf("there is no copy")
	}
}

func (s *scene) uncopied(document, trigger string, from source.Objects) {
	s.t.Helper()
	s.refusals++
	if made := s.copies(document, trigger, from); len(made) > 0 {
		s.t.Errorf("copies: %v", made)
	}
}

const (
	choosing = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: team}, data: {name: admin, namespace: kube-system, label: admin}}"
	cloning  = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: copies}
spec:
  rules:
  - name: copy
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    generate: {apiVersion: v1, kind: Secret, name: copied, namespace: team, clone: {name: NAME, namespace: FROM}}
`
	applying = `apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: copies}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  generate:
  - expression: >-
      generator.Apply("team", [EXPRESSION])
`
)

// from writes a clone.
func from(namespace, name string) string {
	return strings.NewReplacer("NAME", name, "FROM", namespace).Replace(cloning)
}

// copyAttacks are attacks by the authors of triggers of generate rules, who want the Secrets of others.
func copyAttacks() []attack {
	const name, namespace = `"{{request.object.data.name}}"`, `"{{request.object.data.namespace}}"`
	row := func(name, what string, play func(s *scene)) attack {
		return attack{name, what, "kyverno: clone reads with the rights of the controller", only(library), play}
	}
	return []attack{
		row("copy-of-a-secret-by-name", "The author of a trigger chooses the name of the Secret that a rule copies into their namespace. It is not copied; one that the policy names is.", func(s *scene) {
			s.uncopied(from("platform", name), choosing, anySecret{})
			s.copied(from("platform", "regcred"), choosing, anySecret{})
		}),
		row("copy-of-a-secret-by-namespace", "The author of a trigger chooses the namespace of the Secret. It is not copied.", func(s *scene) {
			s.uncopied(from(namespace, "regcred"), choosing, anySecret{})
			s.copied(strings.Replace(from(namespace, "settings"), "kind: Secret", "kind: ConfigMap", 1), choosing, anySecret{})
		}),
		row("copy-of-a-token", "A rule copies the token of a service account, with which its reader could act as the account. It is not copied; a Secret of another type is.", func(s *scene) {
			for _, kind := range []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"} {
				s.uncopied(from("platform", "regcred"), choosing, anySecret{kind})
			}
			s.copied(from("platform", "regcred"), choosing, anySecret{"Opaque"})
		}),
		row("copy-beyond-a-namespace", "A Policy names another namespace by a variable, to read there. Nothing is copied; within its namespace it is.", func(s *scene) {
			own := func(text string) string {
				return strings.NewReplacer("kind: ClusterPolicy", "kind: Policy", "{name: copies}", "{name: copies, namespace: team}", "kind: Secret", "kind: ConfigMap").Replace(text)
			}
			s.uncopied(own(from(namespace, "settings")), choosing, anySecret{})
			s.copied(own(from("team", "settings")), choosing, anySecret{})
		}),
		row("copy-in-an-expression", "The author of a trigger chooses the name, the namespace or the labels of the Secrets that a GeneratingPolicy reads. None is copied.", func(s *scene) {
			for _, expression := range []string{
				`resource.Get("v1", "secrets", "platform", object.data.name)`, `resource.Get("v1", "secrets", object.data.namespace, "regcred")`,
				`resource.List("v1", "secrets", "platform", {"app": object.data.label})`, `resource.List("v1", "secrets", "")`,
			} {
				s.uncopied(strings.Replace(applying, "EXPRESSION", expression, 1), choosing, anySecret{})
			}
			s.copied(strings.Replace(applying, "EXPRESSION", `resource.Get("v1", "secrets", "platform", "regcred")`, 1), choosing, anySecret{})
		}),
	}
}
