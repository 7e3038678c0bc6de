package attacks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/workload"
)

// opened asks registries with one client, for everybody.
type opened struct{ client *registry.Client }

// Open implements gate.Registries.
func (o opened) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return engine.NewSession(o.client, ""), nil
}

// answer is an endpoint's answer, with the images that would run.
type answer struct {
	allowed bool
	said    string
	images  []string
}

// request is an object with the fields that an API server adds.
type request struct {
	operation   string // CREATE if empty
	now, old    object
	subresource string
	resource    object // without a subresource the endpoints need none
	user        string
	dryRun      bool
	options     object
	// raw takes the place of now, and of what Mutate made of it.
	raw string
	// unmutated skips the mutating endpoint, as when its webhook was down or taken away.
	unmutated bool
	// change is done between the endpoints.
	change func()
}

// ask asks about an image, an object or a request.
func (s *scene) ask(asked any) answer {
	s.t.Helper()
	var q request
	switch asked := asked.(type) {
	case string:
		q.now = pod(asked)
	case object:
		q.now = asked
	case request:
		q = asked
	default:
		s.t.Fatalf("no endpoint takes a %T", asked)
	}
	switch s.endpoint {
	case library:
		return s.askLibrary(q)
	case commandLine:
		return s.askProgram(q)
	default:
		return s.askAdmission(q)
	}
}

func (s *scene) askLibrary(q request) answer {
	s.t.Helper()
	parsed, err := workload.Parse(q.text(s))
	if err != nil {
		return answer{said: err.Error()}
	}
	asked := gate.Request{Object: parsed, Subject: policy.Subject{Operation: "CREATE", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: s.noLabels == nil}}}
	if s.noLabels == nil {
		asked.Subject.NamespaceLabels = s.labels
	}
	o := s.wire().gate.Decide(s.t.Context(), asked)
	s.last = o
	a := answer{allowed: o.Result.Admits(), said: string(testkit.Must(json.Marshal([]any{o.Result, o.Reasons, reasons(o)}))(s.t))}
	if a.allowed {
		patch := []byte("[]")
		if len(o.Patch) > 0 {
			patch = testkit.Must(json.Marshal(o.Patch))(s.t)
		}
		a.images = imagesOf(s, apply(s, q.text(s), patch))
	}
	return a
}

func reasons(o gate.Outcome) (all []policy.Reason) {
	for _, v := range o.Verdicts {
		all = append(append(all, v.Reasons...), v.Warnings...)
	}
	return all
}

func (q request) text(s *scene) []byte {
	if q.raw != "" {
		return []byte(q.raw)
	}
	return testkit.Must(json.Marshal(q.now))(s.t)
}

// apply patches an object as an API server does.
func apply(s *scene, text, patch []byte) []byte {
	s.t.Helper()
	operations := testkit.Must(jsonpatch.DecodePatch(patch))(s.t)
	return testkit.Must(operations.Apply(text))(s.t)
}

// imagesOf lists the images of an object.
func imagesOf(s *scene, text []byte) (all []string) {
	s.t.Helper()
	for _, use := range testkit.Must(workload.Extract(testkit.Must(workload.Parse(text))(s.t)))(s.t) {
		all = append(all, use.Image)
	}
	return all
}

// The exit status of the program when something is denied, and when an image could not be verified.
const (
	exitDenied  = 1
	exitError   = 3
	exitMisused = 2
)

func (s *scene) askProgram(q request) answer {
	s.t.Helper()
	folder := s.t.TempDir()
	program := *s.program()
	if s.checkout != "" {
		program.Folder = s.checkout
	}
	program.Env = slices.Concat(program.Env, s.environment)
	said, err := program.Run(s.t.Context(), append(s.arguments(folder, q), s.more...)...)
	said = strings.Join(strings.Fields(said), " ")
	var exit *exec.ExitError
	switch {
	case err == nil:
		record := testkit.Must(os.ReadFile(filepath.Join(folder, "verdict.json")))(s.t)
		return answer{allowed: true, said: said, images: pinned(s, record)}
	case errors.As(err, &exit) && slices.Contains([]int{exitDenied, exitMisused, exitError}, exit.ExitCode()) && !strings.Contains(said, "goroutine "):
		return answer{said: said}
	}
	s.t.Errorf("the program gives no answer: %v", err)
	return answer{said: said}
}

// arguments have the program verify an object, with files in a folder.
func (s *scene) arguments(folder string, q request) []string {
	s.t.Helper()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		s.check(os.WriteFile(path, content, 0o600))
		return path
	}
	args := []string{
		"verify", "-f", write("object.yaml", q.text(s)), "-n", namespace, "--timeout", s.patience.String(),
		"--trusted-root", write("trusted_root.json", s.trusted), "-o", "text", "-o", "json=" + filepath.Join(folder, "verdict.json"),
	}
	for i, text := range s.documents {
		args = append(args, "--policy", write(fmt.Sprintf("policy%d.yaml", i), []byte(text)))
	}
	for i, text := range s.mirrors {
		args = append(args, "--mirrors", write(fmt.Sprintf("mirror%d.yaml", i), []byte(s.fill(text))))
	}
	args = append(args, s.requiring()...)
	if s.noLabels == nil {
		metadata := object{"name": namespace, "labels": s.labels}
		args = append(args, "--resource", write("namespace.yaml", testkit.Must(json.Marshal(object{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))(s.t)))
	}
	return args
}

// pinned lists the images of a record that would run.
func pinned(s *scene, record []byte) (all []string) {
	s.t.Helper()
	var list struct {
		Items []struct {
			Images []struct{ Written, Pinned string }
		}
	}
	s.check(json.Unmarshal(record, &list))
	for _, item := range list.Items {
		for _, image := range item.Images {
			all = append(all, cmp.Or(image.Pinned, image.Written))
		}
	}
	return all
}

// labelled are the labels of the one namespace.
type labelled struct{ *scene }

// Labels implements admission.Namespaces.
func (l labelled) Labels(context.Context, string) (map[string]string, error) {
	return l.labels, l.noLabels
}

// FailOpen implements admission.Failure as the gateway does.
func (w *wired) FailOpen(subject *policy.Subject) bool {
	now, err := w.state.Snapshot(context.Background())
	return err == nil && now.FailOpen(subject)
}

// MayMutate, MayValidate and MayPin implement admission.ObjectRules as the gateway does.
func (w *wired) MayMutate(subject *policy.Subject) bool {
	return w.may(subject, (*set.Set).MayMutate)
}

func (w *wired) MayValidate(subject *policy.Subject) bool {
	return w.may(subject, (*set.Set).MayValidate)
}

func (w *wired) MayPin(subject *policy.Subject) bool { return w.may(subject, (*set.Set).MayPin) }

func (w *wired) may(subject *policy.Subject, ask func(*set.Set, *policy.Subject) bool) bool {
	now, err := w.state.Snapshot(context.Background())
	return err != nil || now.Policies == nil || ask(now.Policies, subject)
}

// KindOf implements admission.Kinds: the definition of widgets is known.
func (*wired) KindOf(group, version, resource string) (kind string, known bool) {
	return "Widget", group == "example.com" && version == "v1" && resource == "widgets"
}

// Record implements admission.Recorder: the answers are enough.
func (*wired) Record(context.Context, admission.Review) {}

// open opens both endpoints.
func (w *wired) open(s *scene) string {
	if w.server == nil {
		mux := http.NewServeMux()
		queue := testkit.Must(admission.NewQueue(admission.QueueBounds{}))(s.t)
		for _, d := range []admission.Endpoint{admission.Mutate, admission.Validate} {
			mux.Handle("/"+string(d), testkit.Must(admission.New(admission.Config{
				Endpoint: d, Decider: w.gate, Namespaces: labelled{s}, Failure: w, Queue: queue, Recorder: w, Rules: w, Kinds: w,
			}))(s.t))
		}
		w.server = httptest.NewServer(mux)
		s.t.Cleanup(w.server.Close)
	}
	return w.server.URL
}

// post sends a body to an endpoint and reads what an API server would.
func (s *scene) post(d admission.Endpoint, body []byte) (a answer, patch []byte) {
	s.t.Helper()
	url := fmt.Sprintf("%s/%s?timeout=%s", s.wire().open(s), d, s.patience)
	response := testkit.Must(http.Post(url, "application/json", bytes.NewReader(body)))(s.t)
	defer func() { _ = response.Body.Close() }()
	text := testkit.Must(io.ReadAll(response.Body))(s.t)
	var review struct {
		Response struct {
			Allowed  bool
			Patch    []byte
			Status   struct{ Message string }
			Warnings []string
		}
	}
	if response.StatusCode != http.StatusOK || json.Unmarshal(text, &review) != nil {
		return answer{said: string(text)}, nil
	}
	return answer{allowed: review.Response.Allowed, said: review.Response.Status.Message + strings.Join(review.Response.Warnings, "; ")}, review.Response.Patch
}

func (s *scene) askAdmission(q request) answer {
	s.t.Helper()
	text := q.text(s)
	if !q.unmutated {
		a, patch := s.post(admission.Mutate, s.review(q, text))
		if !a.allowed {
			return a
		}
		if len(patch) > 0 {
			text = apply(s, text, patch)
		}
	}
	if q.change != nil {
		q.change()
	}
	a, _ := s.post(admission.Validate, s.review(q, text))
	if a.allowed {
		a.images = imagesOf(s, text)
	}
	return a
}

// review is a request as an API server sends it.
func (s *scene) review(q request, text []byte) []byte {
	s.t.Helper()
	about := q.now
	if about == nil {
		about = q.old
	}
	if about == nil {
		about = pod()
	}
	group, version, isGrouped := strings.Cut(about["apiVersion"].(string), "/")
	if !isGrouped {
		group, version = "", group
	}
	metadata, _ := about["metadata"].(object)
	if q.operation == "" {
		q.operation = "CREATE"
	}
	if q.user == "" {
		q.user = "jane"
	}
	kind := object{"group": group, "version": version, "kind": about["kind"]}
	resource := q.resource
	if resource == nil {
		resource = object{} // an API server sends an object
	}
	return testkit.Must(json.Marshal(object{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": object{
		"uid": "4d1c9a55", "operation": q.operation, "namespace": namespace, "name": metadata["name"], "kind": kind, "subResource": q.subresource, "resource": resource,
		"userInfo": object{"username": q.user, "groups": []any{"system:authenticated"}}, "object": json.RawMessage(text), "oldObject": q.old, "dryRun": q.dryRun, "options": q.options,
	}}))(s.t)
}
