package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
	"github.com/quaymaster/quaymaster/workload"
)

// object is JSON in the making.
type object = map[string]any

// answer is a review as an API server reads it.
type answer struct {
	APIVersion, Kind string
	Response         struct {
		UID       string
		Allowed   bool
		Patch     []byte
		PatchType *string
		Warnings  []string
		Status    struct {
			Message, Reason string
			Code            int
		}
		AuditAnnotations map[string]string
	}
}

// pinner is a gate with policies that only require every image to be pinned. The image
// "evil" is denied; an image in the old object is left alone.
type pinner struct {
	mu       sync.Mutex
	requests []gate.Request
	answer   func(ctx context.Context, request gate.Request) gate.Outcome
}

func (p *pinner) Decide(ctx context.Context, request gate.Request) gate.Outcome {
	p.mu.Lock()
	p.requests = append(p.requests, request)
	p.mu.Unlock()
	if p.answer != nil {
		return p.answer(ctx, request)
	}
	return pin(request)
}

func (p *pinner) asked() []gate.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

func pin(request gate.Request) gate.Outcome {
	out := gate.Outcome{Result: gate.Allow}
	uses, err := workload.Extract(request.Object)
	if err != nil {
		return gate.Outcome{Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Malformed, Message: err.Error()}}}
	}
	before, _ := workload.Extract(request.Old)
	for _, use := range uses {
		ref, err := image.Parse(use.Image)
		if err != nil {
			return gate.Outcome{Result: gate.Deny, Reasons: []policy.Reason{{Code: policy.Malformed, Path: use.Pointer, Message: err.Error()}}}
		}
		v := gate.Verdict{Result: gate.Allow, Image: policy.Image{Container: use.Container, Role: string(use.Role), Pointer: use.Pointer, Ref: ref}}
		v.Image.Unchanged = slices.ContainsFunc(before, func(u workload.Use) bool {
			return u.Container == use.Container && u.Role == use.Role && u.Text == use.Text
		})
		switch {
		case v.Image.Unchanged:
		case strings.Contains(use.Text, "evil"):
			v.Result, out.Result = gate.Deny, gate.Deny
			v.Reasons = []policy.Reason{{Code: policy.Unsigned, Message: "no signature found"}}
		case request.Pinning == gate.PinHere && ref.Digest().IsZero():
			operations, _ := workload.Pin(use, use.Text+"@"+image.DigestOf([]byte(use.Text)).String())
			out.Patch = append(out.Patch, operations...)
		}
		out.Verdicts = append(out.Verdicts, v)
	}
	return out
}

type namespaces = endpointtest.Namespaces

// failure is the setting of every policy.
type failure bool

func (f failure) FailOpen(*policy.Subject) bool { return bool(f) }

type recorder = endpointtest.Recorder[admission.Review]

// shop is the namespace of the tests.
var shop = namespaces{"shop": {"team": "a"}}

func endpoint(t testing.TB, which admission.Endpoint, decider admission.Decider, with ...setting) http.Handler {
	t.Helper()
	return endpointWith(t, admission.Config{Endpoint: which, Decider: decider, Namespaces: shop, Failure: failure(false)}, with...)
}

// endpointWith makes an endpoint, by default with a queue and a recorder of its own.
func endpointWith(t testing.TB, config admission.Config, with ...setting) http.Handler {
	t.Helper()
	handler, err := admission.New(completed(t, config, with...))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// setting changes a Config.
type setting func(*admission.Config)

// completed applies settings, and adds a queue and a recorder if there are none.
func completed(t testing.TB, config admission.Config, with ...setting) admission.Config {
	t.Helper()
	for _, set := range with {
		set(&config)
	}
	if config.Queue == nil {
		config.Queue = newQueue(t)
	}
	if config.Recorder == nil {
		config.Recorder = &recorder{}
	}
	return config
}

func newQueue(t testing.TB) *admission.Queue {
	t.Helper()
	queue, err := admission.NewQueue(admission.QueueBounds{})
	if err != nil {
		t.Fatal(err)
	}
	return queue
}

// newPolicies makes an endpoint for policies with a queue and a recorder of its own.
func newPolicies(checker admission.Checker, with ...func(*admission.PolicyConfig)) (*admission.PolicyHandler, error) {
	queue, err := admission.NewQueue(admission.QueueBounds{})
	if err != nil {
		return nil, err
	}
	config := admission.PolicyConfig{Checker: checker, Queue: queue, Recorder: &recorder{}}
	for _, set := range with {
		set(&config)
	}
	return admission.NewPolicies(config)
}

func withRecorder(r admission.Recorder) setting { return func(c *admission.Config) { c.Recorder = r } }

func withQueue(q *admission.Queue) setting { return func(c *admission.Config) { c.Queue = q } }

func withRoles(r admission.Roles) setting { return func(c *admission.Config) { c.Roles = r } }

func withCopies(r admission.Copies) setting { return func(c *admission.Config) { c.Copies = r } }

func withRules(r admission.ObjectRules) setting { return func(c *admission.Config) { c.Rules = r } }

func withKinds(k admission.Kinds) setting { return func(c *admission.Config) { c.Kinds = k } }

func withRequesters(r admission.Requesters) setting {
	return func(c *admission.Config) { c.Requesters = r }
}

func withReproduce(r admission.Reproduce) setting {
	return func(c *admission.Config) { c.Reproduce = r }
}

func withControllers(kinds ...admission.Kind) setting {
	return func(c *admission.Config) { c.Controllers = kinds }
}

func withOnlyPods(c *admission.Config) { c.OnlyPods = true }

// review makes a request; change may be nil.
func review(t testing.TB, operation string, now, old object, change func(request object)) []byte {
	t.Helper()
	subject := now
	if subject == nil {
		subject = old
	}
	version, _ := subject["apiVersion"].(string)
	group, version, isGrouped := strings.Cut(version, "/")
	if !isGrouped {
		group, version = "", group
	}
	metadata, _ := subject["metadata"].(object)
	request := object{
		"uid": "u-1", "operation": operation, "namespace": metadata["namespace"], "name": metadata["name"],
		"kind":     object{"group": group, "version": version, "kind": subject["kind"]},
		"userInfo": object{"username": "jane", "groups": []any{"system:authenticated"}},
		"object":   now, "oldObject": old, "dryRun": false,
	}
	if change != nil {
		change(request)
	}
	return encode(t, object{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	b, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pod runs images in containers c0, c1 and so on.
func pod(images ...string) object {
	containers := []any{}
	for i, image := range images {
		containers = append(containers, object{"name": fmt.Sprintf("c%d", i), "image": image})
	}
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web", "namespace": "shop"},
		"spec": object{"containers": containers},
	}
}

// with returns a changed copy.
func with(t testing.TB, o object, change func(object)) object {
	t.Helper()
	var copied object
	if err := json.Unmarshal(encode(t, o), &copied); err != nil {
		t.Fatal(err)
	}
	change(copied)
	return copied
}

func post(handler http.Handler, target string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// send asks an endpoint and reads its answer.
func send(t testing.TB, handler http.Handler, body []byte) answer {
	t.Helper()
	return read(t, post(handler, "/?timeout=10s", body))
}

func read(t testing.TB, w *httptest.ResponseRecorder) answer {
	t.Helper()
	if w.Code != http.StatusOK {
		t.Fatalf("HTTP %d: %s", w.Code, w.Body)
	}
	var a answer
	raw := w.Body.Bytes()
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if a.APIVersion != "admission.k8s.io/v1" || a.Kind != "AdmissionReview" || a.Response.UID == "" {
		t.Fatalf("no answer: %s", raw)
	}
	if (len(a.Response.Patch) > 0) != (a.Response.PatchType != nil) {
		t.Fatalf("patch and patchType must come together: %s", raw)
	}
	return a
}

// patched applies an answer's patch as RFC 6902 has it.
func patched(t testing.TB, o object, a answer) object {
	t.Helper()
	out := with(t, o, func(object) {})
	if len(a.Response.Patch) == 0 {
		return out
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(a.Response.Patch, &operations); err != nil {
		t.Fatalf("%v in %s", err, a.Response.Patch)
	}
	for _, op := range operations {
		var value any
		if len(op.Value) > 0 {
			if err := json.Unmarshal(op.Value, &value); err != nil {
				t.Fatal(err)
			}
		} else if op.Op != "remove" {
			t.Fatalf("%s %s has no value", op.Op, op.Path)
		}
		if err := change(out, op.Op, op.Path, value); err != nil {
			t.Fatalf("%s %s: %v in %s", op.Op, op.Path, err, a.Response.Patch)
		}
	}
	return out
}

func change(at any, op, path string, value any) error {
	if list, isEnd := strings.CutSuffix(path, "/-"); isEnd && op == "add" {
		found, err := follow(at, list)
		if err != nil {
			return err
		}
		entries, _ := found.([]any)
		return change(at, "replace", list, append(slices.Clone(entries), value))
	}
	tokens := strings.Split(path, "/")[1:]
	for i, token := range tokens {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		last := i == len(tokens)-1
		switch parent := at.(type) {
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n >= len(parent) {
				return fmt.Errorf("no element %q", token)
			}
			if !last {
				at = parent[n]
				continue
			}
			switch {
			case op == "test" && reflect.DeepEqual(parent[n], value):
				return nil
			case op == "replace":
				parent[n] = value
				return nil
			}
			return errors.New("not supported here, or another value")
		case object:
			current, ok := parent[token]
			if !last {
				if !ok {
					return fmt.Errorf("no member %q", token)
				}
				at = current
				continue
			}
			switch {
			case op == "add":
				parent[token] = value
			case !ok:
				return fmt.Errorf("no member %q", token)
			case op == "replace":
				parent[token] = value
			case op == "remove":
				delete(parent, token)
			case op != "test" || !reflect.DeepEqual(current, value):
				return fmt.Errorf("want %v, got %v", value, current)
			}
			return nil
		default:
			return errors.New("leads through a value")
		}
	}
	return errors.New("the whole object")
}

// follow returns the member of an object of objects.
func follow(at any, path string) (any, error) {
	for token := range strings.SplitSeq(path[1:], "/") {
		parent, _ := at.(object)
		value, ok := parent[token]
		if !ok {
			return nil, fmt.Errorf("no member %q", token)
		}
		at = value
	}
	return at, nil
}

// texts returns the images of an object by container.
func texts(t testing.TB, o object) map[string]string {
	t.Helper()
	parsed, err := workload.Parse(encode(t, o))
	if err != nil {
		t.Fatal(err)
	}
	uses, err := workload.Extract(parsed)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, use := range uses {
		found[use.Container] = use.Text
	}
	return found
}

// pinned is what pin makes of an image.
func pinned(text string) string { return text + "@" + image.DigestOf([]byte(text)).String() }

// written returns the annotation.
func written(o object) string {
	metadata, _ := o["metadata"].(object)
	annotations, _ := metadata["annotations"].(object)
	text, _ := annotations[admission.WrittenAnnotation].(string)
	return text
}

// annotate sets annotations.
func annotate(o object, pairs map[string]string) {
	metadata := o["metadata"].(object)
	annotations, ok := metadata["annotations"].(object)
	if !ok {
		annotations = object{}
		metadata["annotations"] = annotations
	}
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		annotations[name] = pairs[name]
	}
}

// forgetful is a pinner that keeps no requests, for what asks it a million times.
type forgetful struct{}

func (*forgetful) Decide(_ context.Context, request gate.Request) gate.Outcome { return pin(request) }
