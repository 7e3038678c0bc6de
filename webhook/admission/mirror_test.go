package admission_test

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// hub is a mirror of Docker Hub, and a gate that redirects there whatever is new.
type hub struct{}

// at returns where the mirror keeps a repository; none that is not Docker Hub's.
func (hub) at(source image.Repository) (image.Repository, bool) {
	target, err := image.ParseRepository("mirror.example/hub/" + source.Path())
	return target, err == nil && source.Registry() == image.MustParse("a").Registry()
}

func (h hub) IsCopy(copied, written image.Ref) bool {
	target, ok := h.at(written.Repository())
	return ok && copied.Repository() == target
}

// copyOf is what becomes of an image.
func (h hub) copyOf(text string) string {
	ref := image.MustParse(text)
	target, ok := h.at(ref.Repository())
	if !ok {
		return text
	}
	copied := ref.At(target).String()
	if ref.Digest().IsZero() {
		copied += "@" + image.DigestOf([]byte(text)).String()
	}
	return copied
}

func (h hub) Decide(_ context.Context, request gate.Request) gate.Outcome {
	out := gate.Outcome{Result: gate.Allow}
	uses, err := workload.Extract(request.Object)
	before, errBefore := workload.Extract(request.Old)
	if err != nil || errBefore != nil {
		return gate.Outcome{Result: gate.Deny}
	}
	if request.Pinning != gate.PinHere {
		return out
	}
	for _, use := range uses {
		if slices.ContainsFunc(before, func(u workload.Use) bool { return u.Container == use.Container && u.Text == use.Text }) {
			continue
		}
		operations, _ := workload.Pin(use, h.copyOf(use.Text))
		out.Patch = append(out.Patch, operations...)
	}
	spec, _ := request.Object.Content()["spec"].(map[string]any)
	secret := map[string]any{"name": "hub-reader"}
	switch has, isThere := spec["imagePullSecrets"].([]any); {
	case !request.Old.IsZero() || len(out.Patch) == 0 || slices.ContainsFunc(has, func(e any) bool { return reflect.DeepEqual(e, any(secret)) }):
	case isThere:
		out.Patch = append(out.Patch, workload.Operation{Op: "test", Path: "/spec/imagePullSecrets", Value: has},
			workload.Operation{Op: "add", Path: "/spec/imagePullSecrets/-", Value: secret})
	default:
		out.Patch = append(out.Patch, workload.Operation{Op: "add", Path: "/spec/imagePullSecrets", Value: []any{secret}})
	}
	return out
}

// redirecting is the mutating endpoint before a gate that redirects.
func redirecting(t testing.TB) http.Handler {
	t.Helper()
	return endpoint(t, admission.Mutate, hub{}, withCopies(hub{}))
}

// mixed runs images of all roles that a new Pod may have.
func mixed(t testing.TB) object {
	t.Helper()
	return with(t, pod("nginx:1.27", "ghcr.io/a/b:1", "redis:7@"+image.DigestOf([]byte("r")).String()), func(o object) {
		spec := o["spec"].(object)
		spec["initContainers"] = []any{object{"name": "init", "image": "docker.io/library/busybox"}}
		spec["volumes"] = []any{object{"name": "init", "image": object{"reference": "llama/three:3"}}}
		spec["imagePullSecrets"] = []any{object{"name": "own"}}
	})
}

func TestRedirectAndRecord(t *testing.T) {
	stored := admit(t, redirecting(t), "CREATE", mixed(t), nil)
	want := with(t, mixed(t), func(o object) {
		spec := o["spec"].(object)
		containers := spec["containers"].([]any)
		containers[0].(object)["image"] = "mirror.example/hub/library/nginx:1.27@" + image.DigestOf([]byte("nginx:1.27")).String()
		containers[2].(object)["image"] = "mirror.example/hub/library/redis:7@" + image.DigestOf([]byte("r")).String()
		spec["initContainers"].([]any)[0].(object)["image"] = hub{}.copyOf("docker.io/library/busybox")
		spec["volumes"].([]any)[0].(object)["image"].(object)["reference"] = hub{}.copyOf("llama/three:3")
		spec["imagePullSecrets"] = []any{object{"name": "own"}, object{"name": "hub-reader"}}
		forge(o, `{"c0":"nginx:1.27","c2":"redis:7@`+image.DigestOf([]byte("r")).String()+`","init":"docker.io/library/busybox","volume/init":"llama/three:3"}`)
	})
	if !reflect.DeepEqual(stored, want) {
		t.Errorf("got %s\nwant %s", encode(t, stored), encode(t, want))
	}
	if a := send(t, endpoint(t, admission.Validate, hub{}, withCopies(hub{})), review(t, "CREATE", stored, nil, nil)); !a.Response.Allowed {
		t.Errorf("%+v", a.Response)
	}
}

// TestRedirectingTwice holds for whatever is redirected: created anew, updated in
// something else or applied again, the second time changes nothing, byte for byte.
func TestRedirectingTwice(t *testing.T) {
	handler := redirecting(t)
	images := []string{"nginx", "docker.io/library/redis:7", "registry-1.docker.io/a/b:1@" + image.DigestOf([]byte("b")).String(), hub{}.copyOf("nginx:2"), "quay.io/a/b:1"}
	notes := []string{"", `{"c0":"nginx"}`, `{"c0":"nginx:2","c1":"nginx:2"}`, `{"c1":"evil"}`, `x`}
	for i, a := range images {
		for j, b := range images {
			manifest := with(t, mixed(t), func(o object) {
				o["spec"].(object)["containers"] = pod(a, b)["spec"].(object)["containers"]
				if note := notes[(i*len(images)+j)%len(notes)]; note != "" {
					forge(o, note)
				}
			})
			once := admit(t, handler, "CREATE", manifest, nil)
			labelled := admit(t, handler, "UPDATE", with(t, once, func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} }), once)
			delete(labelled["metadata"].(object), "labels")
			for how, again := range map[string]object{
				"created anew": admit(t, handler, "CREATE", once, nil),
				"labelled":     labelled,
				"applied again": admit(t, handler, "UPDATE", with(t, once, func(o object) {
					secrets := o["spec"].(object)["imagePullSecrets"]
					o["spec"] = with(t, manifest, func(object) {})["spec"]
					o["spec"].(object)["imagePullSecrets"] = secrets
				}), once),
				"replaced": admit(t, handler, "UPDATE", with(t, once, func(o object) { delete(o["metadata"].(object), "annotations") }), once),
			} {
				if x, y := string(encode(t, once)), string(encode(t, again)); x != y && (how != "replaced" || written(once) != "") {
					t.Errorf("%s %s, %s: first %s\nthen %s", a, b, how, x, y)
				}
			}
		}
	}
}

func TestCopies(t *testing.T) {
	const text = "nginx:1"
	digest, other := "@"+image.DigestOf([]byte("a")).String(), "@"+image.DigestOf([]byte("b")).String()
	for name, row := range map[string]struct {
		reason           string
		running, written string
		without          bool // no mirrors are configured
		restored         bool
	}{
		"a copy":            {"the twin of all", "mirror.example/hub/library/nginx:1" + digest, text, false, true},
		"by digest":         {"the same that was written", "mirror.example/hub/library/nginx:1" + digest, text + digest, false, true},
		"by digest alone":   {"neither has a tag", "mirror.example/hub/library/nginx" + digest, "nginx" + digest, false, true},
		"a pin":             {"no mirror is needed", text + digest, text, true, true},
		"another digest":    {"it was written by another one", "mirror.example/hub/library/nginx:1" + other, text + digest, false, false},
		"another tag":       {"it was written by another one", "mirror.example/hub/library/nginx:2" + digest, text, false, false},
		"no tag":            {"one was written", "mirror.example/hub/library/nginx" + digest, text, false, false},
		"no digest":         {"it is not verified", "mirror.example/hub/library/nginx:1", text, false, false},
		"another name":      {"the mirror has nginx elsewhere", "mirror.example/hub/library/redis:1" + digest, text, false, false},
		"another registry":  {"it is no mirror", "evil.example/hub/library/nginx:1" + digest, text, false, false},
		"no mirrors":        {"there are no mirrors", "mirror.example/hub/library/nginx:1" + digest, text, true, false},
		"not of Docker Hub": {"the mirror does not serve it", "mirror.example/hub/library/nginx:1" + digest, "quay.io/library/nginx:1", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome { return gate.Outcome{Result: gate.Allow} }}
			var options []setting
			if !row.without {
				options = append(options, withCopies(hub{}))
			}
			old := pod(row.running)
			forge(old, `{"c0":"`+row.written+`"}`)
			now := with(t, old, func(o object) { o["spec"] = pod(row.written)["spec"] })
			stored := admit(t, endpoint(t, admission.Mutate, decider, options...), "UPDATE", now, old)
			want := row.written
			if row.restored {
				want = row.running
			}
			if got := texts(t, stored)["c0"]; got != want {
				t.Errorf("%s: %s runs, want %s", row.reason, got, want)
			}
		})
	}
}

// TestTheRecordIsGuarded: what an update makes of the record, and that the
// validating endpoint refuses the same where the mutating one did not run.
func TestTheRecordIsGuarded(t *testing.T) {
	first := admit(t, redirecting(t), "CREATE", pod("nginx:1", "redis:2", "ghcr.io/a/b:1"), nil)
	const message = `{"c0":"nginx:1","c1":"redis:2"}`
	if written(first) != message {
		t.Fatalf("written %s", written(first))
	}
	noting := func(note string) object { return with(t, first, func(o object) { forge(o, note) }) }
	running := func(c0, note string) object {
		return with(t, noting(note), func(o object) { o["spec"].(object)["containers"].([]any)[0].(object)["image"] = c0 })
	}
	none := func(o object) { delete(o["metadata"].(object), "annotations") }
	deleting := func(o object) { o["metadata"].(object)["deletionTimestamp"] = "2026-11-21T03:30:01Z" }
	for name, row := range map[string]struct {
		reason   string
		now, old object
		after    string // what Mutate leaves there
		refused  string // the message of Validate, "" if none
	}{
		"as it was":         {"the twin of all", with(t, first, func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} }), first, message, ""},
		"changed":           {"it differs from the written value", noting(`{"c0":"evil","c1":"redis:2"}`), first, message, `the entry of "c0" was "nginx:1"`},
		"changed, agreeing": {"a copy of it all the same", noting(`{"c0":"docker.io/library/nginx:1","c1":"redis:2"}`), first, message, `the entry of "c0" was "nginx:1"`},
		"one gone":          {"its image is there", noting(`{"c0":"nginx:1"}`), first, message, `the entry of "c1" was "redis:2"`},
		"all gone":          {"a replacement that knows nothing of it", with(t, first, none), first, message, `the entry of "c0" was "nginx:1"`},
		"unreadable":        {"it is no record", noting(`x`), first, message, "must be a JSON object"},
		"one more":          {"it agrees with nothing", noting(`{"c0":"nginx:1","c1":"redis:2","c2":"nginx:1"}`), first, message, `the entry "nginx:1" of "c2" does not agree`},
		"no container":      {"there is no such container", noting(`{"c0":"nginx:1","c1":"redis:2","c9":"nginx:1"}`), first, message, `the entry "nginx:1" of "c9" does not agree`},
		"one that agrees":   {"it had none, and this is right", noting(message), noting(`{"c0":"nginx:1"}`), message, ""},
		"one that does not": {"it had none, and this is not", noting(`{"c0":"nginx:1","c1":"evil"}`), noting(`{"c0":"nginx:1"}`), `{"c0":"nginx:1"}`, `the entry "evil" of "c1" does not agree`},
		"image changed":     {"the entry goes with it", running("quay.io/a/b:2", `{"c1":"redis:2"}`), first, `{"c1":"redis:2"}`, ""},
		"stale":             {"the image changed, and the entry stayed", running("quay.io/a/b:2", message), first, `{"c1":"redis:2"}`, ""},
		"rewritten":         {"as the mutating endpoint does", running(hub{}.copyOf("nginx:3"), `{"c0":"nginx:3","c1":"redis:2"}`), first, `{"c0":"nginx:3","c1":"redis:2"}`, ""},
		"rewritten wrongly": {"the image is no copy of that", running("quay.io/a/b:2", `{"c0":"nginx:3","c1":"redis:2"}`), first, `{"c1":"redis:2"}`, `the entry "nginx:3" of "c0" does not agree`},
		"old nonsense":      {"it is unchanged", with(t, noting(`x`), func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} }), noting(`x`), `x`, ""},
		"deleting":          {"what goes may go", with(t, with(t, first, none), deleting), first, message, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := review(t, "UPDATE", row.now, row.old, nil)
			stored := patched(t, row.now, send(t, redirecting(t), body))
			if written(stored) != row.after {
				t.Errorf("%s: written %q, want %q", row.reason, written(stored), row.after)
			}
			seen := &recorder{}
			validate := endpoint(t, admission.Validate, hub{}, withCopies(hub{}), withRecorder(seen))
			a := send(t, validate, body)
			message := a.Response.Status.Message
			if a.Response.Allowed != (row.refused == "") || !strings.Contains(message, row.refused) || !a.Response.Allowed && !strings.Contains(message, "gateway's record") {
				t.Errorf("%s: allowed %v, %q, want %q", row.reason, a.Response.Allowed, message, row.refused)
			}
			if review := seen.Last(t); !a.Response.Allowed && (review.Cause != admission.Malformed || review.Err == nil) {
				t.Errorf("recorded %+v", review)
			}
			if a := send(t, validate, review(t, "UPDATE", stored, row.old, nil)); !a.Response.Allowed {
				t.Errorf("%s: the object of the mutating endpoint is refused: %s", row.reason, a.Response.Status.Message)
			}
		})
	}
}

// TestEphemeralContainers: one that is added is redirected. It has no entry, since
// the API server takes no annotation along with it.
func TestEphemeralContainers(t *testing.T) {
	first := admit(t, redirecting(t), "CREATE", pod("nginx:1"), nil)
	now := with(t, first, func(o object) {
		o["spec"].(object)["ephemeralContainers"] = []any{object{"name": "debug", "image": "busybox:1"}}
	})
	toSub := func(r object) { r["subResource"] = "ephemeralcontainers" }
	a := send(t, redirecting(t), review(t, "UPDATE", now, first, toSub))
	stored := patched(t, now, a)
	if got := texts(t, stored); got["debug"] != (hub{}).copyOf("busybox:1") || got["c0"] != (hub{}).copyOf("nginx:1") {
		t.Errorf("%v", got)
	}
	if strings.Contains(string(a.Response.Patch), "annotations") {
		t.Errorf("%s", a.Response.Patch)
	}
	validate := endpoint(t, admission.Validate, hub{}, withCopies(hub{}))
	if a := send(t, validate, review(t, "UPDATE", stored, first, toSub)); !a.Response.Allowed {
		t.Errorf("%+v", a.Response)
	}
	if a := send(t, validate, review(t, "UPDATE", with(t, stored, func(o object) { forge(o, `{"c0":"evil"}`) }), first, toSub)); a.Response.Allowed {
		t.Error("it was changed on the way")
	}
}

func TestMirrorMessages(t *testing.T) {
	copied := image.MustParse("mirror.example/hub/library/web:1@" + image.DigestOf([]byte("web")).String())
	underSource := decision(signedPolicy, policy.Enforce, policy.Fail, unsigned)
	underSource.Check.Image = policy.Image{Ref: image.MustParse("docker.io/library/web:1"), Copy: copied}
	evaluated := verdict("web", gate.Deny, decision(signedPolicy, policy.Enforce, policy.Pass), underSource)
	evaluated.Image.Ref = copied
	noMirror := verdict("web", gate.Deny)
	noMirror.Reasons = []policy.Reason{{
		Code: policy.NoMirror, Path: "RegistryMirror/hub[0]",
		Message: "no mirror qualifies, and the mapping does not leave it at docker.io: mirror.example/hub/library/web does not have it",
	}}
	for name, v := range map[string]gate.Verdict{"copy": evaluated, "no-mirror": noMirror} {
		decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome {
			return gate.Outcome{Result: gate.Deny, Verdicts: []gate.Verdict{v}}
		}}
		a := send(t, endpoint(t, admission.Validate, decider), review(t, "CREATE", pod("nginx"), nil, nil))
		golden(t, name, a.Response.Status.Message)
	}
	admitted := verdict("web", gate.Allow)
	admitted.Reasons = []policy.Reason{{Code: policy.Mirrored, Message: "redirected to mirror.example/web:1"}}
	admitted.Warnings = []policy.Reason{
		{Code: policy.MirrorDiffers, Path: "RegistryMirror/hub[0]", Message: "the tag 1 resolves to another digest at the target", Expected: image.DigestOf([]byte("a")).String(), Found: image.DigestOf([]byte("b")).String()},
		{Code: policy.NotMirrored, Message: "it stays at docker.io: mirror.example/web did not answer"},
		{Code: policy.NoPullSecret, Message: "the mirror wants the pull secret hub, which is not in the namespace shop"},
	}
	underSource.Check.Action = policy.Warn
	warned := verdict("web", gate.Allow, underSource)
	warned.Image.Ref = copied
	decider := &pinner{answer: func(context.Context, gate.Request) gate.Outcome {
		return gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{admitted, warned}}
	}}
	a := send(t, endpoint(t, admission.Validate, decider), review(t, "CREATE", pod("nginx"), nil, nil))
	golden(t, "mirror-warnings", strings.Join(a.Response.Warnings, "\n"))
	if !a.Response.Allowed {
		t.Errorf("%+v", a.Response)
	}
}
