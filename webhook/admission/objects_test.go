package admission_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// matching sets whether rules about objects may match an object.
type matching bool

func (s matching) MayMutate(*policy.Subject) bool   { return bool(s) }
func (s matching) MayValidate(*policy.Subject) bool { return bool(s) }
func (s matching) MayPin(*policy.Subject) bool      { return false }

// TestStages: the gate's stage at each endpoint. An object without images is evaluated
// only where a rule about objects may match it.
func TestStages(t *testing.T) {
	deployment := object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": "shop"}, "spec": object{}}
	options := object{"apiVersion": "v1", "kind": "PodExecOptions", "command": []any{"sh"}}
	exec := func(request object) {
		request["namespace"], request["name"], request["subResource"] = "shop", "web", "exec"
		request["resource"] = object{"group": "", "version": "v1", "resource": "pods"}
	}
	resized := pod("a")
	resized["spec"].(object)["priority"] = 1.0
	resize := func(request object) { request["subResource"] = "resize" }
	for _, row := range []struct {
		reason    string
		endpoint  admission.Endpoint
		operation string
		now, old  object
		change    func(object)
		rules     bool
		asked     gate.Stage
		silent    bool // no request to the gate
		kind      string
	}{
		{"a pod is changed and proved", admission.Mutate, "CREATE", pod("a"), nil, nil, false, gate.StageMutate, false, "Pod"},
		{"and proved and validated", admission.Validate, "CREATE", pod("a"), nil, nil, false, gate.StageValidate, false, "Pod"},
		{"a deployment is changed where a rule matches it", admission.Mutate, "CREATE", deployment, nil, nil, true, gate.StageMutateObject, false, "Deployment"},
		{"and is not evaluated where none does", admission.Mutate, "CREATE", deployment, nil, nil, false, "", true, ""},
		{"a deletion is validated where a rule matches it", admission.Validate, "DELETE", nil, pod("a"), nil, true, gate.StageValidate, false, "Pod"},
		{"and is not evaluated where none does", admission.Validate, "DELETE", nil, pod("a"), nil, false, "", true, ""},
		{"a deletion changes nothing", admission.Mutate, "DELETE", nil, pod("a"), nil, true, "", true, ""},
		{"exec is about the pod", admission.Validate, "CONNECT", options, nil, exec, true, gate.StageValidate, false, "Pod"},
		{"a resize is validated where a rule matches it", admission.Validate, "UPDATE", pod("a"), resized, resize, true, gate.StageValidate, false, "Pod"},
		{"and changed", admission.Mutate, "UPDATE", pod("a"), resized, resize, true, gate.StageMutate, false, "Pod"},
		{"and is not evaluated where none does", admission.Validate, "UPDATE", pod("a"), resized, resize, false, "", true, ""},
		{"and is not evaluated where no rule matches it", admission.Validate, "CONNECT", options, nil, exec, false, "", true, ""},
	} {
		p := &pinner{}
		send(t, endpoint(t, row.endpoint, p, withRules(matching(row.rules))), review(t, row.operation, row.now, row.old, row.change))
		asked := p.asked()
		if row.silent {
			if len(asked) > 0 {
				t.Errorf("%s: asked %+v", row.reason, asked)
			}
			continue
		}
		if len(asked) != 1 || asked[0].Stage != row.asked || asked[0].Subject.Kind != row.kind || asked[0].Old.IsZero() != (row.old == nil) {
			t.Errorf("%s: asked %+v", row.reason, asked)
		}
	}
}

// TestDeletionsWithoutObjects: the deletion of a collection is asked about object by
// object; one with a name could not be verified without the object.
func TestDeletionsWithoutObjects(t *testing.T) {
	for _, row := range []struct {
		reason, name   string
		old            object
		rules, allowed bool
		asked          int
	}{
		{"an object", "web", pod("a"), true, true, 1},
		{"a collection", "", nil, true, true, 0},
		{"a name without its object", "web", nil, true, false, 0},
		{"which no rule matches", "web", nil, false, true, 0},
	} {
		p := &pinner{}
		a := send(t, endpoint(t, admission.Validate, p, withRules(matching(row.rules))), review(t, "DELETE", nil, row.old, func(request object) {
			request["kind"], request["namespace"], request["name"] = object{"group": "", "version": "v1", "kind": "Pod"}, "shop", row.name
		}))
		if a.Response.Allowed != row.allowed || len(p.asked()) != row.asked {
			t.Errorf("%s: allowed %t, %d asked: %s", row.reason, a.Response.Allowed, len(p.asked()), a.Response.Status.Message)
		}
	}
}

// kindsOf are kinds by "group/version/resource".
type kindsOf map[string]string

func (k kindsOf) KindOf(group, version, resource string) (string, bool) {
	kind, known := k[group+"/"+version+"/"+resource]
	return kind, known
}

// TestKindOfSubresources: rules see the kind of the object that has the subresource, and
// the resource of the request before they are asked.
func TestKindOfSubresources(t *testing.T) {
	scale := object{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": object{"name": "web", "namespace": "shop"}, "spec": object{"replicas": 3}}
	kinds := kindsOf{"example.com/v1/foos": "Foo", "example.com/v1/bars": "Bar"}
	for _, row := range []struct {
		reason, group, version, resource string
		kinds                            admission.Kinds
		want                             string
	}{
		{"a custom resource", "example.com", "v1", "foos", kinds, "example.com/v1/Foo"},
		{"another one", "example.com", "v1", "bars", kinds, "example.com/v1/Bar"},
		{"of a version that is not known", "example.com", "v2", "foos", kinds, "autoscaling/v1/Scale"},
		{"of a group that is not known", "example.net", "v1", "foos", kinds, "autoscaling/v1/Scale"},
		{"without kinds", "example.com", "v1", "foos", nil, "autoscaling/v1/Scale"},
		{"a resource of Kubernetes", "apps", "v1", "deployments", nil, "apps/v1/Deployment"},
		{"which no definition renames", "apps", "v1", "deployments", kindsOf{"apps/v1/deployments": "Foo"}, "apps/v1/Deployment"},
	} {
		p, rules := &pinner{}, &remembering{}
		with := []setting{withRules(rules)}
		if row.kinds != nil {
			with = append(with, withKinds(row.kinds))
		}
		send(t, endpoint(t, admission.Validate, p, with...), review(t, "UPDATE", scale, with0(scale), func(request object) {
			request["subResource"], request["resource"] = "scale", object{"group": row.group, "version": row.version, "resource": row.resource}
		}))
		asked := p.asked()
		if len(asked) != 1 {
			t.Fatalf("%s: %d requests", row.reason, len(asked))
		}
		for _, s := range []policy.Subject{asked[0].Subject, rules.last} {
			if got := s.Group + "/" + s.Version + "/" + s.Kind; got != row.want {
				t.Errorf("%s: %s, want %s", row.reason, got, row.want)
			}
			if of, known := s.Resource(); !known || of != (policy.APIResource{Group: row.group, Version: row.version, Name: row.resource}) {
				t.Errorf("%s: the resource is %+v, %t", row.reason, of, known)
			}
		}
	}
}

// with0 is a Scale to zero.
func with0(scale object) object {
	changed := maps.Clone(scale)
	changed["spec"] = object{"replicas": 0}
	return changed
}

// remembering keeps the subject that it is asked about.
type remembering struct{ last policy.Subject }

func (r *remembering) MayMutate(s *policy.Subject) bool   { r.last = *s; return true }
func (r *remembering) MayValidate(s *policy.Subject) bool { r.last = *s; return true }
func (r *remembering) MayPin(*policy.Subject) bool        { return false }

// objecting is a gate with one rule about objects, which has changed the pod or refuses
// it.
type objecting struct{ refuses bool }

func (o objecting) Decide(_ context.Context, request gate.Request) gate.Outcome {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "labels"}
	rule := policy.RuleResult{Policy: p, Rule: "team", Kind: policy.ValidateRule}
	if o.refuses {
		reason := policy.Reason{Code: policy.Violated, Path: p.ID() + "/team", Message: "the label team is missing"}
		rule.Ruling = policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{reason}}
		return gate.Outcome{Result: gate.Deny, Rules: []policy.RuleResult{rule}, Reasons: []policy.Reason{reason}}
	}
	content := request.Object.Content()
	annotated := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": content["spec"], "metadata": map[string]any{
		"name": "web", "namespace": "shop", "annotations": map[string]any{"team": "a"},
	}}
	changed, err := request.Object.With(annotated)
	if err != nil {
		panic(err)
	}
	out := pin(gate.Request{Object: changed, Pinning: request.Pinning})
	var operations []workload.Operation
	for _, op := range patch.Diff(content, annotated) {
		operations = append(operations, workload.Operation(op))
	}
	out.Patch, out.Mutations, out.Changed = append(operations, out.Patch...), len(operations), changed
	return out
}

// TestMutatedAndPinned: the record of written images joins the annotations that a
// mutation rule added.
func TestMutatedAndPinned(t *testing.T) {
	got := send(t, endpoint(t, admission.Mutate, objecting{}), review(t, "CREATE", pod("shop/app:v1"), nil, nil))
	if !got.Response.Allowed {
		t.Fatalf("%+v", got)
	}
	final := patched(t, pod("shop/app:v1"), got)
	annotations, _ := final["metadata"].(object)["annotations"].(object)
	if annotations["team"] != "a" || annotations[admission.WrittenAnnotation] != `{"c0":"shop/app:v1"}` {
		t.Errorf("annotations %v", annotations)
	}
}

// TestViolation: a denial by a rule about objects names policy, rule, reason and
// what next.
func TestViolation(t *testing.T) {
	got := send(t, endpoint(t, admission.Validate, objecting{refuses: true}), review(t, "CREATE", pod("shop/app:v1"), nil, nil))
	if got.Response.Allowed {
		t.Fatal("allowed")
	}
	for _, word := range []string{"Pod shop/web: denied", "ClusterPolicy/labels, rule team: denied", "the label team is missing [violated]", "next:"} {
		if !strings.Contains(got.Response.Status.Message, word) {
			t.Errorf("the denial does not say %q:\n%s", word, got.Response.Status.Message)
		}
	}
}

// TestTerminatingObjectsAreEvaluated: a user with a finalizer of their own on an object
// cannot change anything that a rule forbids (CVE-2023-34091), neither when rules deny nor
// when they cannot be evaluated. Its finalizers can be removed all the same.
func TestTerminatingObjectsAreEvaluated(t *testing.T) {
	panics := &pinner{answer: func(context.Context, gate.Request) gate.Outcome { panic("whatever") }}
	going := func(kind string, spec object, change func(metadata object)) object {
		metadata := object{
			"name": "web", "namespace": "shop", "deletionTimestamp": "2026-11-21T03:30:01Z", "deletionGracePeriodSeconds": 0,
			"finalizers": []any{"example.com/keep"}, "labels": object{"team": "a"}, "resourceVersion": "1",
		}
		if change != nil {
			change(metadata)
		}
		return object{"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, "status": object{"phase": "Terminating"}}
	}
	free := func(metadata object) {
		delete(metadata, "finalizers")
		metadata["resourceVersion"], metadata["managedFields"] = "2", []any{object{"manager": "x"}}
	}
	plain, exposed := object{"type": "ClusterIP"}, object{"type": "NodePort"}
	label := func(metadata object) { metadata["labels"] = object{"team": "b"} }
	note := func(metadata object) {
		metadata["annotations"] = object{"nginx.ingress.kubernetes.io/server-snippet": "x"}
	}
	held, none := object{"finalizers": []any{"kubernetes"}}, object{}
	evil := pod("evil")["spec"].(object)
	for _, row := range []struct {
		reason   string
		now, old object
		allowed  bool
	}{
		{"a finalizer goes", going("Service", plain, free), going("Service", plain, nil), true},
		{"that of a Namespace", going("Namespace", none, nil), going("Namespace", held, nil), true},
		{"of a Pod with an image that is forbidden now", going("Pod", evil, free), going("Pod", evil, nil), true},
		{"the type of a Service that works on", going("Service", exposed, nil), going("Service", plain, nil), false},
		{"with a finalizer that goes", going("Service", exposed, free), going("Service", plain, nil), false},
		{"a label", going("Service", plain, label), going("Service", plain, nil), false},
		{"an annotation", going("Service", plain, note), going("Service", plain, nil), false},
		{"a label of a Pod with unchanged images", going("Pod", evil, label), going("Pod", evil, nil), false},
		{"the spec of another kind than Namespace", going("Service", none, nil), going("Service", held, nil), false},
		{"a member beside spec", with(t, going("Service", plain, nil), func(o object) { o["data"] = object{"a": "b"} }), going("Service", plain, nil), false},
	} {
		for name, decider := range map[string]admission.Decider{"refused": objecting{refuses: true}, "not asked": panics} {
			for _, which := range []admission.Endpoint{admission.Mutate, admission.Validate} {
				got := send(t, endpoint(t, which, decider, withRules(matching(true))), review(t, "UPDATE", row.now, row.old, nil))
				if got.Response.Allowed != row.allowed {
					t.Errorf("%s, %s at %s: %+v", row.reason, name, which, got.Response)
				}
			}
		}
	}
}

// labelling is a Decider whose rules add a label.
type labelling struct{}

func (labelling) Decide(context.Context, gate.Request) gate.Outcome {
	return gate.Outcome{Result: gate.Allow, Patch: []workload.Operation{{Op: "add", Path: "/metadata/labels/owner", Value: "shop"}}, Mutations: 1}
}

// TestTerminatingObjectsAreNotMutated: where only finalizers go, a change by a rule would be more than
// those, and a policy that the object violates would keep it from ever being deleted.
func TestTerminatingObjectsAreNotMutated(t *testing.T) {
	going := func(finalizers []any, team string) object {
		return object{"apiVersion": "v1", "kind": "Service", "metadata": object{
			"name": "web", "namespace": "shop", "deletionTimestamp": "2026-11-21T03:30:01Z", "finalizers": finalizers, "labels": object{"team": team},
		}}
	}
	for _, row := range []struct {
		reason  string
		now     object
		patched bool
	}{
		{"a finalizer goes", going([]any{"a"}, "shop"), false},
		{"a label changes as well", going([]any{"a"}, "other"), true},
	} {
		got := send(t, endpoint(t, admission.Mutate, labelling{}, withRules(matching(true))), review(t, "UPDATE", row.now, going([]any{"a", "b"}, "shop"), nil))
		if !got.Response.Allowed || (len(got.Response.Patch) > 0) != row.patched {
			t.Errorf("%s: %+v", row.reason, got.Response)
		}
	}
}

// TestUnreadableOldObject: an unreadable old object must not bypass rules that compare
// with it. Without such rules all images are evaluated.
func TestUnreadableOldObject(t *testing.T) {
	deep := func(n int) object {
		value := any("x")
		for range n {
			value = object{"a": value}
		}
		return object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": object{"name": "web", "namespace": "shop"}, "spec": object{"size": 1, "more": value}}
	}
	now := object{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": object{"name": "web", "namespace": "shop"}, "spec": object{"size": 2}}
	for _, row := range []struct {
		reason  string
		old     object
		rules   bool
		allowed bool
		old0    bool // the gate gets no old object
	}{
		{"one that can be read", deep(10), true, true, false},
		{"one that is too deep", deep(300), true, false, false},
		{"one that no rule asks for", deep(300), false, true, true},
	} {
		p := &pinner{}
		got := send(t, endpoint(t, admission.Validate, p, withRules(matching(row.rules))), review(t, "UPDATE", now, row.old, nil))
		asked := p.asked()
		if got.Response.Allowed != row.allowed || (len(asked) == 1) != row.allowed || row.allowed && asked[0].Old.IsZero() != row.old0 {
			t.Errorf("%s: %+v, asked %d times", row.reason, got.Response, len(asked))
		}
		if !row.allowed && !strings.Contains(got.Response.Status.Message, "the old object, which rules may need") {
			t.Errorf("%s: %s", row.reason, got.Response.Status.Message)
		}
	}
}

// keeping records the creator of deployments.
type keeping struct{ err error }

func (k keeping) Requester(subject *policy.Subject, _ map[string]any) (name, value string, err error) {
	if subject.Kind != "Deployment" {
		return "", "", nil
	}
	return "example.com/requester", subject.User.Name, k.err
}

func (keeping) Annotation(subject *policy.Subject) string {
	if subject.Kind != "Deployment" {
		return ""
	}
	return "example.com/requester"
}

// TestRequester: the creator of an object is written into it at its creation, in place of
// a value from the user, and nowhere else.
func TestRequester(t *testing.T) {
	named := func(annotations object) object {
		metadata := object{"name": "web", "namespace": "shop"}
		if annotations != nil {
			metadata["annotations"] = annotations
		}
		return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": object{}}
	}
	for _, row := range []struct {
		reason    string
		endpoint  admission.Endpoint
		operation string
		now, old  object
		want      any // of the annotation
		kept      any // of another one
	}{
		{"no annotation yet", admission.Mutate, "CREATE", named(nil), nil, "jane", nil},
		{"another annotation stays", admission.Mutate, "CREATE", named(object{"team": "a"}), nil, "jane", "a"},
		{"a forged one goes", admission.Mutate, "CREATE", named(object{"example.com/requester": "root"}), nil, "jane", nil},
		{"an update brings none", admission.Mutate, "UPDATE", named(object{"team": "a"}), named(nil), nil, "a"},
		{"an update keeps it", admission.Mutate, "UPDATE", named(object{"team": "a", "example.com/requester": "joe"}), named(object{"example.com/requester": "joe"}), "joe", "a"},
		{"an update that changes it is put right", admission.Mutate, "UPDATE", named(object{"team": "a", "example.com/requester": "ann"}), named(object{"example.com/requester": "joe"}), "joe", "a"},
		{"and one that takes it away", admission.Mutate, "UPDATE", named(nil), named(object{"example.com/requester": "joe"}), "joe", nil},
		{"and one that writes it", admission.Mutate, "UPDATE", named(object{"example.com/requester": "ann"}), named(nil), nil, nil},
		{"nor does the validating endpoint", admission.Validate, "CREATE", named(nil), nil, nil, nil},
	} {
		handler := endpoint(t, row.endpoint, &pinner{}, withRules(matching(true)), withRequesters(keeping{}))
		got := send(t, handler, review(t, row.operation, row.now, row.old, nil))
		annotations, _ := patched(t, row.now, got)["metadata"].(object)["annotations"].(object)
		if !got.Response.Allowed || annotations["example.com/requester"] != row.want || annotations["team"] != row.kept {
			t.Errorf("%s: %t, annotations %v", row.reason, got.Response.Allowed, annotations)
		}
	}
	handler := endpoint(t, admission.Mutate, &pinner{}, withRules(matching(true)), withRequesters(keeping{errors.New("too much")}))
	if got := send(t, handler, review(t, "CREATE", named(nil), nil, nil)); !got.Response.Allowed || len(got.Response.Patch) > 0 || len(got.Response.Warnings) != 1 {
		t.Errorf("one that cannot be written: %+v", got.Response)
	}
	forged := named(object{"team": "a", "example.com/requester": "root"})
	got := send(t, handler, review(t, "CREATE", forged, nil, nil))
	annotations, _ := patched(t, forged, got)["metadata"].(object)["annotations"].(object)
	if _, is := annotations["example.com/requester"]; !got.Response.Allowed || is || annotations["team"] != "a" {
		t.Errorf("one that cannot be written, in the place of a forged one: %v", annotations)
	}
}

// ofImages denies by what a rule about images holds against the object as a whole.
type ofImages struct{ images bool }

func (j ofImages) Decide(_ context.Context, request gate.Request) gate.Outcome {
	reason := policy.Reason{Code: policy.Denied, Path: "spec.validations[0]", Message: "architecture arm64"}
	rule := policy.RuleResult{
		Policy: &policy.Policy{Kind: "ImageValidatingPolicy", Name: "amd64-only"}, Rule: "amd64-only",
		Ruling: policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{reason}},
	}
	out := gate.Outcome{Result: gate.Deny, Rules: []policy.RuleResult{rule}}
	if !j.images {
		out.Reasons = []policy.Reason{reason}
		return out
	}
	out.Verdicts = []gate.Verdict{{Image: policy.Image{Container: "c0", Role: "container", Ref: image.MustParse("registry.test/a:1")}, Result: gate.Deny, Reasons: []policy.Reason{reason}}}
	return out
}

// TestADenialNamesItsPolicy, also where no decision about an image carries the reason.
func TestADenialNamesItsPolicy(t *testing.T) {
	for _, images := range []bool{true, false} {
		got := send(t, endpoint(t, admission.Validate, ofImages{images}), review(t, "CREATE", pod("a"), nil, nil))
		if want := "ImageValidatingPolicy/amd64-only, rule amd64-only, spec.validations[0]: architecture arm64 [denied-by-condition]"; got.Response.Allowed || !strings.Contains(got.Response.Status.Message, want) {
			t.Errorf("images %t: %s, want %q", images, got.Response.Status.Message, want)
		}
	}
}

// TestKyvernoDenials: below the object's line, a denial has what denies in the form of Kyverno's
// warnings, and with the setting in that of its denials, too.
func TestKyvernoDenials(t *testing.T) {
	const line, blocked = "\n  policy labels.team: the label team is missing\n", "resource Pod/shop/web was blocked due to the following policies\n\nlabels:\n  team: 'the label team is missing'\n"
	for _, row := range []struct {
		reason  string
		decider admission.Decider
		set     bool
		line    string
		blocked string
	}{
		{"the default", objecting{refuses: true}, false, line, ""},
		{"the setting", objecting{refuses: true}, true, line, blocked},
		{"of an image", ofImages{true}, true, "\n  policy amd64-only.amd64-only: architecture arm64\n", "blocked due to the following policies\n\namd64-only:\n  amd64-only: 'architecture arm64'\n"},
		{"nothing denies by a rule", &pinner{answer: func(context.Context, gate.Request) gate.Outcome { return gate.Outcome{} }}, true, "", ""},
	} {
		setting := func(c *admission.Config) { c.KyvernoDenials = row.set }
		message := send(t, endpoint(t, admission.Validate, row.decider, setting), review(t, "CREATE", pod("shop/app:v1"), nil, nil)).Response.Status.Message
		first, _, _ := strings.Cut(message, "\n")
		if !strings.HasPrefix(first, "Pod shop/web: ") || !strings.Contains(message, row.line) || strings.Contains(message, "  policy ") != (row.line != "") {
			t.Errorf("%s: %s", row.reason, message)
		}
		if !strings.Contains(message, row.blocked) || strings.Contains(message, "was blocked") != (row.blocked != "") {
			t.Errorf("%s: %s, want %q", row.reason, message, row.blocked)
		}
	}
}

// TestADenialNamesThePlaceOfAnImage: an image of an extractor has the path of its field.
func TestADenialNamesThePlaceOfAnImage(t *testing.T) {
	for role, want := range map[string]string{
		"container": "container step, registry.test/a:1: denied", "custom": "custom step at /spec/steps/0/image, registry.test/a:1: denied",
	} {
		decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome {
			return gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{{
				Image: policy.Image{Container: "step", Role: role, Pointer: "/spec/steps/0/image", Ref: image.MustParse("registry.test/a:1")}, Result: gate.Deny,
				Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature found"}},
			}}}
		}}
		got := send(t, endpoint(t, admission.Validate, decider), review(t, "CREATE", pod("a"), nil, nil)).Response.Status.Message
		if !strings.HasPrefix(got, "Pod shop/web: 1 of 1 image denied: registry.test/a:1\n") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", role, got, want)
		}
	}
}
