// Package lifetime answers the admission webhook for the label with the lifetime of an object
// (cleanup.kyverno.io/ttl, package policy/ttl).
//
// The cleanup controller deletes an object with the label when its time is over, with the
// controller's permissions. So a user that sets or changes the label needs the permission to delete
// the object: the handler asks the API server (SubjectAccessReview of authorization.k8s.io/v1), and
// refuses others. Into an object of a user that has it, it writes a grant, an annotation with a code
// under the replicas' key. The controller deletes nothing without it, so that a label that passed by
// the webhook has no effect. The protocol is AdmissionReview of admission.k8s.io/v1.
package lifetime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/ttl"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

const (
	// maxBody bounds a review: the API server's limit of 3 MiB for an object, twice, and the rest.
	maxBody = 7 << 20
	// keptBuffer is the largest buffer that is reused: that of a usual object.
	keptBuffer = 256 << 10
	// timeout bounds a review. The webhook has 5 s.
	timeout = 4 * time.Second
	// maxMessage bounds the message of a response, in bytes.
	maxMessage = 1024
)

// Deletion is a request that a user may make, or may not.
type Deletion struct {
	Group, Version, Resource string
	// Namespace is empty for cluster-scoped objects. An empty Name means any: the name of a new
	// object may not exist yet.
	Namespace, Name string
}

// Authorizer asks the API server.
type Authorizer interface {
	// MayDelete reports whether a user may delete an object. An error means that this is unknown.
	MayDelete(ctx context.Context, user policy.User, what Deletion) (bool, error)
}

// Grants writes the grant of a lifetime.
type Grants interface {
	// Lifetime returns the value of the annotation for an object in its current form.
	Lifetime(object map[string]any, by string, now time.Time) (string, error)
}

// Config holds the dependencies of a Handler; all but Queue are required.
type Config struct {
	Authorizer Authorizer
	Grants     Grants
	// Annotation is the name of the annotation with the grant.
	Annotation string
	// Queue bounds the memory of bodies; nil means no bound but that of each.
	Queue review.Queue
	Log   *slog.Logger
	Now   func() time.Time
}

// Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	bodies *review.Bodies
}

// New makes the endpoint, and returns an error for a missing dependency.
func New(c Config) (*Handler, error) {
	if c.Authorizer == nil || c.Grants == nil || c.Annotation == "" || c.Log == nil || c.Now == nil {
		return nil, errors.New("lifetime: Authorizer, Grants, Annotation, Log and Now are required")
	}
	return &Handler{config: c, bodies: &review.Bodies{Queue: c.Queue, Max: maxBody, Keep: keptBuffer}}, nil
}

// admissionReview is an AdmissionReview, as far as it is read or written.
type admissionReview struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID       string `json:"uid"`
	Operation string `json:"operation"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Resource  struct {
		Group    string `json:"group"`
		Version  string `json:"version"`
		Resource string `json:"resource"`
	} `json:"resource"`
	SubResource string `json:"subResource"`
	UserInfo    struct {
		Username string         `json:"username"`
		UID      string         `json:"uid"`
		Groups   []string       `json:"groups"`
		Extra    jsontext.Value `json:"extra"`
	} `json:"userInfo"`
	Object    object `json:"object"`
	OldObject object `json:"oldObject"`
}

// object is an object without all but its identity and the metadata that is read.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		GenerateName      string            `json:"generateName"`
		UID               string            `json:"uid"`
		CreationTimestamp string            `json:"creationTimestamp"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
}

type response struct {
	UID       string   `json:"uid"`
	Allowed   bool     `json:"allowed"`
	Warnings  []string `json:"warnings,omitempty"`
	Status    *status  `json:"status,omitempty"`
	PatchType string   `json:"patchType,omitempty"`
	Patch     []byte   `json:"patch,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// operation is one of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// ServeHTTP handles one review.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	body, err := h.bodies.ReadJSON(ctx, w, r)
	defer body.Release()
	if err != nil {
		code := http.StatusBadRequest
		if read, ok := errors.AsType[*review.Error](err); ok {
			code = read.Status
		}
		http.Error(w, review.Plain(err.Error(), review.MaxField), code)
		return
	}
	var asked admissionReview
	if err := json.Unmarshal(body.Bytes, &asked); err != nil || asked.APIVersion != "admission.k8s.io/v1" || asked.Request == nil || asked.Request.UID == "" {
		http.Error(w, "the body must be an AdmissionReview of admission.k8s.io/v1 with a request and its uid", http.StatusBadRequest)
		return
	}
	answer := h.decide(ctx, asked.Request)
	answer.UID = asked.Request.UID
	text, err := json.Marshal(admissionReview{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview", Response: &answer})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	review.WriteJSON(w, http.StatusOK, text)
}

// decide decides a request. An object without the label, or with an unreadable one, has no grant.
func (h *Handler) decide(ctx context.Context, q *request) response {
	value, has := q.Object.Metadata.Labels[ttl.Label]
	before, had := q.OldObject.Metadata.Labels[ttl.Label]
	if !has {
		return h.annotated(q, "")
	}
	if q.Operation == "UPDATE" && had && value == before {
		return h.annotated(q, q.OldObject.Metadata.Annotations[h.config.Annotation])
	}
	if _, err := ttl.Deadline(value, h.config.Now()); err != nil {
		answer := h.annotated(q, "")
		answer.Warnings = []string{review.Plain("the label has no effect: "+err.Error(), maxMessage)}
		return answer
	}
	may, err := h.config.Authorizer.MayDelete(ctx, q.user(), q.deletion())
	switch {
	case err != nil:
		h.config.Log.Warn("a lifetime could not be verified", h.about(q, slog.String("error", err.Error()))...)
		return denied("label " + ttl.Label + ": could not be verified: whether the user may delete the object\n  " + review.Next)
	case !may:
		h.config.Log.Warn("a lifetime was refused", h.about(q)...)
		return denied(fmt.Sprintf("label %s: denied: user %s may not delete %s, and the label would have it deleted\n"+
			"  next: remove the label, or have a user set it that may delete the object", ttl.Label, q.UserInfo.Username, q.title()))
	}
	grant, err := h.config.Grants.Lifetime(q.content(), q.UserInfo.Username, h.config.Now())
	if err != nil {
		return denied("label " + ttl.Label + ": could not be verified: " + err.Error())
	}
	h.config.Log.Info("a lifetime was granted", h.about(q, slog.String("ttl", value))...)
	return h.annotated(q, grant)
}

func (h *Handler) about(q *request, more ...any) []any {
	return append([]any{
		slog.String("operation", q.Operation), slog.String("user", q.UserInfo.Username), slog.String("resource", q.Resource.Resource),
		slog.String("namespace", q.Namespace), slog.String("name", q.Name),
	}, more...)
}

// annotated admits an object with a grant in its annotation, or without the annotation.
func (h *Handler) annotated(q *request, grant string) response {
	written, is := q.Object.Metadata.Annotations[h.config.Annotation]
	at := "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(h.config.Annotation)
	var patch []operation
	switch {
	case grant == written && is == (grant != ""):
		return response{Allowed: true}
	case grant == "":
		patch = []operation{{Op: "remove", Path: at}}
	case q.Object.Metadata.Annotations == nil:
		patch = []operation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{h.config.Annotation: grant}}}
	default:
		patch = []operation{{Op: "add", Path: at, Value: grant}}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return denied("label " + ttl.Label + ": could not be verified: " + err.Error())
	}
	return response{Allowed: true, PatchType: "JSONPatch", Patch: text}
}

// denied refuses a request.
func denied(message string) response {
	lines := strings.Split(message, "\n")
	for i := range lines {
		lines[i] = review.Plain(lines[i], maxMessage)
	}
	return response{Status: &status{Code: http.StatusForbidden, Message: strings.Join(lines, "\n")}}
}

func (q *request) user() policy.User {
	user := policy.User{Name: q.UserInfo.Username, UID: q.UserInfo.UID, Groups: q.UserInfo.Groups}
	if q.UserInfo.Extra.Kind() == jsontext.KindBeginObject {
		user.Extra = []byte(q.UserInfo.Extra)
	}
	return user
}

// deletion is the deletion of the object, and not of the subresource of the request.
func (q *request) deletion() Deletion {
	return Deletion{Group: q.Resource.Group, Version: q.Resource.Version, Resource: q.Resource.Resource, Namespace: q.Namespace, Name: q.name()}
}

func (q *request) name() string {
	if q.Object.Metadata.Name != "" {
		return q.Object.Metadata.Name
	}
	return q.Name
}

func (q *request) title() string {
	name := q.name()
	if name == "" {
		name = q.Object.Metadata.GenerateName + "*"
	}
	if q.Namespace != "" {
		name = q.Namespace + "/" + name
	}
	return q.Resource.Resource + " " + strconv.Quote(name)
}

// content is the object as far as a grant is bound to it.
func (q *request) content() map[string]any {
	of := q.Object.Metadata
	namespace := of.Namespace
	if namespace == "" && q.Resource.Resource != "namespaces" {
		namespace = q.Namespace
	}
	metadata := map[string]any{
		"namespace": namespace, "name": q.name(), "generateName": of.GenerateName,
		"labels": map[string]any{ttl.Label: of.Labels[ttl.Label]},
	}
	if q.Operation == "UPDATE" {
		metadata["uid"] = q.OldObject.Metadata.UID
	}
	return map[string]any{"apiVersion": q.Object.APIVersion, "kind": q.Object.Kind, "metadata": metadata}
}
