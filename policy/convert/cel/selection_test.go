package cel_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

// requests are subjects that differ in what matches select: kinds, names, namespaces, labels, annotations, users,
// operations and subresources.
func requests(t testing.TB) []*policy.Subject {
	t.Helper()
	kinds := []string{"v1 Pod", "apps/v1 Deployment", "batch/v1 CronJob", "v1 Namespace", "rbac.authorization.k8s.io/v1 ClusterRole", "v1 ConfigMap", "velero.io/v1 Schedule"}
	metas := []string{
		"name: a", "name: b, labels: {app: web, '': x}", "name: web-1, labels: {app: api, tier/x: front}", "generateName: web-, labels: {app: ''}", "name: a, annotations: {team: shop, note: \"a\\nb\"}",
		"name: b, labels: {app: web, tier/x: back}, annotations: {team: ''}", "name: default, labels: {tier/x: ''}",
	}
	users := []policy.User{
		{Name: "ann", Groups: []string{"dev", "system:authenticated"}}, {Name: "bob", Groups: []string{"ops-1"}}, {Name: "carl"},
		{Name: "system:serviceaccount:ci:bot", Groups: []string{"system:serviceaccounts"}},
	}
	namespaces := []struct {
		name   string
		labels map[string]string
	}{{"shop", map[string]string{"env": "prod", "team": "x"}}, {"kube-system", map[string]string{}}, {"infra-a", map[string]string{"env": "test"}}}
	var all []*policy.Subject
	for i, kind := range kinds {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		for j, meta := range metas {
			for k, namespace := range namespaces {
				cluster := kind == "Namespace" || kind == "ClusterRole"
				meta := strings.Replace(meta, ", '': x", "", 1)
				if !cluster {
					meta += ", namespace: " + namespace.name
				} else if k > 0 {
					meta = strings.Replace(meta, "name: a", "name: "+namespace.name, 1)
				}
				object := policytest.Object(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {%s}}", apiVersion, kind, meta))
				for n, operation := range []string{"CREATE", "UPDATE", "DELETE"} {
					s := creation(object)
					s.Operation, s.User = operation, users[(i+j+k+n)%len(users)]
					s.User.RolesKnown, s.User.Whole = true, true
					if !cluster {
						s.NamespaceLabels = map[string]string{"kubernetes.io/metadata.name": namespace.name}
						maps.Copy(s.NamespaceLabels, namespace.labels)
					}
					if kind == "Namespace" {
						s.Namespace = s.Name
					}
					switch {
					case operation == "CREATE":
					case s.Name == "":
						continue // it has one by now
					case operation == "UPDATE":
						old := policytest.Object(t, fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {%s, labels: {app: old}}}", apiVersion, kind, strings.Split(meta, ", labels")[0]))
						s.OldObject = policy.ContentOf(old)
					default:
						s.OldObject, s.Object = s.Object, policy.Content{}
					}
					s.Request = requestOf(t, s)
					all = append(all, s)
					if operation == "UPDATE" && (kind == "Pod" || kind == "Deployment") {
						sub := *s
						sub.Subresource = map[string]string{"Pod": "ephemeralcontainers", "Deployment": "status"}[kind]
						sub.Request = requestOf(t, &sub)
						all = append(all, &sub)
					}
				}
			}
		}
	}
	return all
}

func requestOf(t testing.TB, s *policy.Subject) policy.Request {
	t.Helper()
	resource := strings.ToLower(s.Kind) + "s"
	user := map[string]any{"username": s.User.Name}
	if s.User.Groups != nil {
		user["groups"] = s.User.Groups
	}
	text, err := json.Marshal(map[string]any{
		"uid": "1", "operation": s.Operation, "name": s.Name, "namespace": s.Namespace, "userInfo": user, "subResource": s.Subresource,
		"kind":     map[string]any{"group": s.Group, "version": s.Version, "kind": s.Kind},
		"resource": map[string]any{"group": s.Group, "version": s.Version, "resource": resource},
	})
	if err != nil {
		t.Fatal(err)
	}
	return policy.RequestFrom(text)
}

// TestSelections: source and result apply to the same requests. Each condition selects some and not all.
func TestSelections(t *testing.T) {
	all := requests(t)
	for _, c := range []struct{ reason, match, exclude, written string }{
		{"a kind", "any: [{resources: {kinds: [Pod]}}]", "", ""},
		{"all kinds", "any: [{resources: {kinds: ['*'], namespaces: [shop]}}]", "", "'Namespace' ?"},
		{"a kind of a group", "any: [{resources: {kinds: [velero.io/v1/Schedule]}}]", "", "- schedules"},
		{"a kind of any group", "any: [{resources: {kinds: [Schedule, ConfigMap]}}]", "", "- schedules"},
		{"a subresource", "any: [{resources: {kinds: [Deployment/status]}}]", "", "deployments/status"},
		{"an operation", "any: [{resources: {kinds: [Pod, ConfigMap], operations: [CREATE, DELETE]}}]", "", ""},
		{"operations of kinds", "any: [{resources: {kinds: [Deployment], operations: [CREATE]}}, {resources: {kinds: [ConfigMap], operations: [DELETE]}}]", "", ""},
		{"a name", "any: [{resources: {kinds: [ConfigMap], name: a}}]", "", "object != null ? object : oldObject"},
		{"names", "any: [{resources: {kinds: [Deployment], names: [a, 'web*']}}]", "", "generateName"},
		{"every name", "any: [{resources: {kinds: [ConfigMap], names: ['*']}}]", "", ""},
		{"namespaces", "any: [{resources: {kinds: [Deployment], namespaces: [shop, 'infra-*']}}]", "", "request.namespace == 'shop' || request.namespace.startsWith('infra-')"},
		{"Namespaces", "any: [{resources: {kinds: [Namespace], namespaces: ['infra-*']}}]", "", ""},
		{"Namespaces and others", "any: [{resources: {kinds: [Namespace, ConfigMap], namespaces: [kube-system]}}]", "", ""},
		{"every namespace", "any: [{resources: {kinds: [ClusterRole, Deployment], namespaces: ['*']}}]", "", ""},
		{"kinds of the cluster in a namespace", "any: [{resources: {kinds: [ClusterRole, Deployment], namespaces: [shop]}}]", "", ""},
		{"labels", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {app: web}}}}]", "", ".?labels.?app.orValue('') == 'web'"},
		{"an empty label", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {app: ''}}}}]", "", "orValue(null) == ''"},
		{"any label", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {tier/x: '*'}}}}]", "", "[?'tier/x'].hasValue()"},
		{"some label", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {tier/x: '?*'}}}}]", "", ""},
		{"a label with a start", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {app: 'w*'}}}}]", "", ""},
		{"labels with a start", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {'tier/*': '*o*'}}}}]", "", ".exists(key, value, "},
		{"no label", "any: [{resources: {kinds: [ConfigMap], selector: {matchExpressions: [{key: app, operator: DoesNotExist}]}}}]", "", ""},
		{"a label that is there", "any: [{resources: {kinds: [ConfigMap], selector: {matchExpressions: [{key: app, operator: Exists}, {key: app, operator: NotIn, values: ['']}]}}}]", "", ""},
		{"a label of some", "any: [{resources: {kinds: [ConfigMap], selector: {matchExpressions: [{key: app, operator: In, values: ['', web]}]}}}]", "", ""},
		{"a label of none", "any: [{resources: {kinds: [ConfigMap], selector: {matchExpressions: [{key: tier/x, operator: NotIn, values: ['', back]}]}}}]", "", ""},
		{"annotations", "any: [{resources: {kinds: [ConfigMap], annotations: {team: shop, 'no*': 'a*b'}}}]", "", ""},
		{"an annotation", "any: [{resources: {kinds: [ConfigMap], annotations: {team: '*'}}}]", "", ""},
		{"labels of namespaces", "any: [{resources: {kinds: [Deployment], namespaceSelector: {matchLabels: {env: prod}}}}]", "", ""},
		{"labels of namespaces, for a kind of the cluster", "any: [{resources: {kinds: [ClusterRole, ConfigMap], namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod, test]}]}}}]", "", ""},
		{"labels of namespaces, for a kind that may be of the cluster", "any: [{resources: {kinds: [Schedule], namespaceSelector: {matchLabels: {'te*': '*'}}}}]", "", ""},
		{"labels of namespaces, of Namespaces", "any: [{resources: {kinds: [Namespace], namespaceSelector: {matchLabels: {env: prod}}}}]", "", ""},
		{"a user", "any: [{resources: {kinds: [ConfigMap]}, subjects: [{kind: User, name: ann}]}]", "", "request.userInfo.username == 'ann'"},
		{"a group", "any: [{resources: {kinds: [ConfigMap]}, subjects: [{kind: Group, name: dev}, {kind: Group, name: 'ops-*'}]}]", "", "'dev' in request.userInfo.?groups.orValue([])"},
		{"an account", "any: [{resources: {kinds: [ConfigMap]}, subjects: [{kind: ServiceAccount, name: bot, namespace: '*'}, {kind: User, name: carl}]}]", "", ""},
		{"a filter for each kind", "any: [{resources: {kinds: [ConfigMap], namespaces: [shop]}}, {resources: {kinds: [ClusterRole], selector: {matchLabels: {app: web}}}}]", "", "request.kind.kind == 'ConfigMap'"},
		{"two filters of a kind", "any: [{resources: {kinds: [ConfigMap], namespaces: [shop]}}, {resources: {kinds: [ConfigMap], names: [b], operations: [UPDATE]}}]", "", ""},
		{"a filter with everything of a kind", "any: [{resources: {kinds: [ConfigMap], namespaces: [shop]}}, {resources: {kinds: [ConfigMap]}}]", "", ""},
		{"kinds of two filters", "any: [{resources: {kinds: [ConfigMap, Deployment], namespaces: [shop]}}, {resources: {kinds: [ConfigMap, Schedule]}, subjects: [{kind: User, name: ann}]}]", "", ""},
		{"pods, and others", "any: [{resources: {kinds: [Pod], namespaces: [shop]}}, {resources: {kinds: [ConfigMap], namespaces: [infra-a]}}]", "", "autogen"},
		{"all filters", "all: [{resources: {kinds: [ConfigMap]}}, {resources: {selector: {matchLabels: {app: web}}}}, {resources: {namespaces: [shop]}}]", "", ""},
		{"the old form", "{resources: {kinds: [ConfigMap], namespaces: [shop]}}", "", ""},
		{"without namespaces", "any: [{resources: {kinds: [Pod]}}]", "any: [{resources: {namespaces: [shop, 'infra-*']}}]", ""},
		{"without a kind in a namespace", "any: [{resources: {kinds: [Deployment, ConfigMap]}}]", "any: [{resources: {kinds: [ConfigMap], namespaces: [shop]}}]", "!(request.kind.kind == 'ConfigMap' && request.namespace == 'shop')"},
		{"without its kind in a namespace", "any: [{resources: {kinds: [Pod]}}]", "any: [{resources: {kinds: [Pod], namespaces: [shop]}}]", "!(request.namespace == 'shop')"},
		{"without controllers of pods", "any: [{resources: {kinds: [Pod]}}]", "any: [{resources: {kinds: [Pod], namespaces: [shop]}}, {resources: {kinds: [Deployment], namespaces: [infra-a]}}]", ""},
		{"without another kind", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {kinds: [Secret]}}]", ""},
		{"without all kinds of a name", "any: [{resources: {kinds: [ConfigMap, ClusterRole]}}]", "any: [{resources: {kinds: ['*'], names: [a]}}]", ""},
		{"without names", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {names: [a, 'web-*']}}]", ""},
		{"without names of which one is to be generated", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {names: ['web-*']}}]", "generateName"},
		{"without labels", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {selector: {matchLabels: {app: 'w*'}}}}, {resources: {selector: {matchExpressions: [{key: tier/x, operator: Exists}]}}}]", ""},
		{"without labels in a namespace", "any: [{resources: {kinds: [ConfigMap]}}]", "all: [{resources: {selector: {matchLabels: {app: web}}}}, {resources: {namespaces: [shop]}}]", ""},
		{"without labels of namespaces", "any: [{resources: {kinds: [Schedule, ClusterRole]}}]", "any: [{resources: {namespaceSelector: {matchLabels: {env: prod}}}}]", ""},
		{"without users", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{subjects: [{kind: User, name: ann}, {kind: Group, name: 'ops*'}]}, {subjects: [{kind: ServiceAccount, namespace: ci, name: bot}], resources: {namespaces: [shop]}}]", ""},
		{"without an operation", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {operations: [DELETE, UPDATE]}}]", ""},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, background: false, rules: [
  {name: r, match: {%s}, %s validate: {message: not so, cel: {expressions: [{expression: "false"}]}}}]}}`, strings.Trim(c.match, "{}"), excludeOf(c.exclude))
		if strings.HasPrefix(c.match, "{") {
			text = strings.Replace(text, "match: {"+strings.Trim(c.match, "{}")+"}", "match: "+c.match, 1)
		}
		result := convertText(t, text, cel.Options{})
		if len(result.Problems) > 0 {
			t.Errorf("%s: %v", c.reason, result.Problems)
			continue
		}
		source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
		written, err := cel.YAML(result.Policies)
		if err != nil || !strings.Contains(flat(written), flat([]byte(c.written))) {
			t.Errorf("%s: %v\n%s\nlacks %s", c.reason, err, written, c.written)
		}
		selected := 0
		for _, s := range all {
			want, why := admits(t, s, source)
			got, instead := admits(t, s, made...)
			if got != want || !want && strings.HasPrefix(why, "indet") != strings.HasPrefix(instead, "indet") {
				t.Errorf("%s: %s %s/%s %s %s in %q by %s: admitted %t (%s), was %t (%s)\n%s", c.reason, s.Operation, s.Kind, s.Subresource, s.Name, s.Object.Map()["metadata"],
					s.Namespace, s.User.Name, got, instead, want, why, written)
				break
			}
			if !want {
				selected++
			}
		}
		if selected == 0 || selected == len(all) {
			t.Errorf("%s: %d of %d requests are selected", c.reason, selected, len(all))
		}
	}
}

func excludeOf(text string) string {
	if text == "" {
		return ""
	}
	return "exclude: {" + text + "},"
}

// TestExcusedSelections: an update is excused if the rule applied to the old object as well, and that violated it.
func TestExcusedSelections(t *testing.T) {
	states := []string{
		"labels: {ok: yes}", "labels: {app: web}", "labels: {app: web, ok: yes}", "annotations: {a: b}", "labels: {app: api}, annotations: {a: b}", "annotations: {c: d}",
		"labels: {app: web}, annotations: {x: y}", "labels: {app: api}",
	}
	for _, c := range []struct{ reason, match, exclude, before string }{
		{"a kind", "any: [{resources: {kinds: [ConfigMap]}}]", "", "object != oldObject && !("},
		{"labels", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {app: web}}}}]", "", "oldObject.metadata.?labels.?app.orValue('') == 'web'"},
		{"labels and namespaces", "any: [{resources: {kinds: [ConfigMap], namespaces: [shop], selector: {matchLabels: {app: '*'}}}}]", "", "oldObject.metadata"},
		{"without labels", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {selector: {matchLabels: {app: web}}}}]", "oldObject.metadata"},
		{"annotations", "any: [{resources: {kinds: [ConfigMap], annotations: {a: b}}}]", "", "oldObject.metadata.?annotations"},
		{"two filters", "any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {app: web}}}}, {resources: {kinds: [ConfigMap], annotations: {a: '*'}}}]", "", "oldObject.metadata"},
		{"updates alone", "any: [{resources: {kinds: [ConfigMap], operations: [UPDATE]}}]", "", ""},
		{"updates of some", "any: [{resources: {kinds: [ConfigMap], operations: [UPDATE]}}, {resources: {kinds: [ConfigMap], operations: [CREATE], annotations: {a: b}}}]", "", "oldObject.metadata"},
		{"creations of another kind", "any: [{resources: {kinds: [ConfigMap], operations: [UPDATE]}}, {resources: {kinds: [Secret], operations: [CREATE, UPDATE]}}]", "", "request.kind.kind == 'Secret'"},
		{"without updates", "any: [{resources: {kinds: [ConfigMap]}}]", "all: [{resources: {annotations: {a: b}}}, {resources: {operations: [UPDATE]}}]", "oldObject.metadata"},
		{"without updates of some", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{resources: {operations: [CREATE], annotations: {a: b}}}]", "oldObject.metadata"},
		{"a user", "any: [{resources: {kinds: [ConfigMap]}, subjects: [{kind: User, name: ann}]}]", "", ""},
		{"without a user", "any: [{resources: {kinds: [ConfigMap]}}]", "any: [{subjects: [{kind: User, name: bob}]}]", ""},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {validationFailureAction: Enforce, background: false, rules: [
  {name: r, match: {%s}, %s validate: {message: not so, anyPattern: [{metadata: {labels: {ok: "yes"}}}, {metadata: {annotations: {c: d}}}]}}]}}`, c.match, excludeOf(c.exclude))
		result := convertText(t, text, cel.Options{})
		written, err := cel.YAML(result.Policies)
		if err != nil || len(result.Problems) > 0 {
			t.Fatalf("%s: %v %v", c.reason, err, result.Problems)
		}
		if has := strings.Contains(string(written), "violatedBefore"); has != (c.before != "") || !strings.Contains(flat(written), c.before) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.before)
		}
		source, made := sourcePolicy(t, []byte(text)), compiledResults(t, result.Policies)
		excused := 0
		for _, now := range states {
			for _, before := range states {
				object := func(state string) map[string]any {
					return policytest.Object(t, strings.ReplaceAll("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop, "+state+"}}", "yes", "'yes'"))
				}
				s := creation(object(now))
				s.Operation, s.OldObject, s.User = "UPDATE", policy.ContentOf(object(before)), policy.User{Name: "ann", Groups: []string{}, RolesKnown: true, Whole: true}
				s.Request = requestOf(t, s)
				same(t, c.reason+": update of "+before+" to "+now, s, source, made)
				violates, _ := admits(t, creation(object(now)), source)
				if got, _ := admits(t, s, made...); got && !violates {
					excused++
				}
			}
		}
		if (excused > 0) != (c.before != "") && c.reason != "creations of another kind" {
			t.Errorf("%s: %d updates are excused", c.reason, excused)
		}
	}
}
