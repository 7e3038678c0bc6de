package attacks

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// ear answers every call of policies, so that only the product can keep one from being
// made, and remembers them.
type ear struct {
	mu    sync.Mutex
	calls []string
}

// API implements rulecontext.Caller.
func (e *ear) API(_ context.Context, call rulecontext.APICall) (any, error) {
	return e.hear(call.Path), nil
}

// Service implements rulecontext.Caller.
func (e *ear) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	return e.hear(call.URL), nil
}

// Global and Get know an entry of every name.
func (e *ear) Global(_ context.Context, name string) (any, error) { return e.hear(name), nil }
func (e *ear) Get(_ context.Context, name, _ string) (any, error) { return e.hear(name), nil }

func (e *ear) hear(what string) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, what)
	return map[string]any{"count": int64(0)}
}

// heard returns the calls, and forgets them.
func (e *ear) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

// calling is a Policy of the scene's namespace, or a ClusterPolicy, that looks something
// up before it judges pods.
func calling(kind, entry string) string {
	metadata := "{name: calls, namespace: " + namespace + "}"
	if kind == "ClusterPolicy" {
		metadata = "{name: calls}"
	}
	return "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: " + metadata + "\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
		"  - name: calls\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    context: [{name: found, " + entry + "}]\n" +
		"    validate: {message: found, deny: {conditions: {any: [{key: '{{ found.count }}', operator: NotEquals, value: 0}]}}}\n"
}

// annotated is a pod with an annotation.
func annotated(text string) object {
	return with(pod("nginx"), "metadata", object{"annotations": object{"team": text}})
}

// led has the author of a pod lead a policy's call elsewhere: none but those within are
// made.
func led(kind, urlPath, good string, bad ...string) func(*scene) {
	return func(s *scene) {
		heard := &ear{}
		s.caller = heard
		s.policies(calling(kind, "apiCall: {urlPath: '"+urlPath+"'}"))
		s.admitted(annotated(good))
		within := fmt.Sprint(heard.heard())
		if !strings.Contains(within, "/namespaces/"+good+"/") {
			s.t.Errorf("the calls %s of the admitted object are no control", within)
		}
		for _, text := range bad {
			s.refused(annotated(text))
			if calls := heard.heard(); len(calls) > 0 {
				s.t.Errorf("%q leads to %q", text, calls)
			}
		}
	}
}

// confined replaces a policy that may look something up by one that may not.
func confined(good, bad string) func(*scene) {
	return func(s *scene) {
		heard := &ear{}
		s.caller, s.globals = heard, heard
		s.policies(good)
		s.admitted(annotated("shop"))
		heard.heard()
		s.again(ample)
		s.broken = true
		s.policies(bad)
		s.refused(annotated("shop"))
		if calls := heard.heard(); len(calls) > 0 {
			s.t.Errorf("it is looked up: %q", calls)
		}
	}
}

// speaking is a ValidatingPolicy that asks for an entry of the global context.
func speaking(kind, metadata string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: calls" + metadata + "}\nspec:\n  validationActions: [Deny]\n" +
		"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}\n" +
		"  validations: [{expression: 'globalContext.Get(\"deployments\", \"\").count == 0'}]\n"
}

func callAttacks() []attack {
	const (
		team      = "{{ request.object.metadata.annotations.team }}"
		ofTeam    = "/api/v1/namespaces/" + team + "/configmaps"
		confusion = "CVE-2026-22039, GHSA-8p9x-46gm-qfx2"
		encoded   = "CVE-2026-100706, CVE-2026-100707"
		globals   = "CVE-2026-100703"
	)
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, remembering(), play}
	}
	entry := "globalReference: {name: deployments}"
	return []attack{
		row("call-of-another-namespace", "A Policy of a namespace puts data of a pod into the path of a call, and the pod names another namespace. No call is made, and it is denied.", confusion,
			led("Policy", ofTeam, namespace, "kube-system", "", "*")),
		row("call-that-climbs", "The pod has a path that leaves the namespace. No call is made, and it is denied.", confusion,
			led("Policy", ofTeam, namespace, "shop/../kube-system", "shop/configmaps/../../kube-system", "./kube-system")),
		row("call-by-an-encoded-path", "The same in characters that are encoded, so that the checker and the server see different paths. No call is made, and it is denied.", encoded,
			led("Policy", ofTeam, namespace, "shop%2F..%2Fkube-system", "%2e%2e/kube-system", "shop%252F..%252Fkube-system")),
		row("call-with-a-query-of-its-own", "Data of the pod makes a query of the rest of the path, or adds to one. No call is made, and it is denied; this holds for a ClusterPolicy, too.", confusion,
			led("ClusterPolicy", ofTeam, namespace, "kube-system/secrets?x=", "kube-system/configmaps?watch=true&x=", "kube-system/secrets#")),
		row("call-through-the-api-server", "A Policy calls the API server's proxy to a pod, or a node, of its choice. It is refused as a whole, and denies.", "CVE-2026-100705: SSRF", confined(
			calling("Policy", "apiCall: {urlPath: /api/v1/namespaces/"+namespace+"/pods}"), calling("Policy", "apiCall: {urlPath: /api/v1/namespaces/"+namespace+"/pods/web:80/proxy/latest/meta-data}"))),
		row("secrets-of-another-namespace", "A Policy of a namespace names another one's Secrets in so many words. It is refused as a whole, and denies.", confusion, confined(
			calling("Policy", "apiCall: {urlPath: /api/v1/namespaces/"+namespace+"/configmaps}"), calling("Policy", "apiCall: {urlPath: /api/v1/namespaces/kube-system/secrets}"))),
		row("global-entry-for-a-tenant", "A Policy of a namespace reads an entry that is kept of all namespaces. It is refused as a whole, and denies; a ClusterPolicy may.", globals,
			confined(calling("ClusterPolicy", entry), calling("Policy", entry))),
		row("global-entry-in-an-expression", "The same in CEL. It is refused as a whole, and denies.", globals,
			confined(speaking("ValidatingPolicy", ""), speaking("NamespacedValidatingPolicy", ", namespace: "+namespace))),
	}
}
