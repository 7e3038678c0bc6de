package api

import (
	"bytes"
	"cmp"
	"context"
	jsonv1 "encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Query is the body of a request with images.
type Query struct {
	// Images are references, as in a Pod; at least 1 and at most MaxImages.
	Images []string `json:"images"`
	// Namespace is the namespace of the workload; "default" unless given.
	Namespace string `json:"namespace,omitzero"`
}

const (
	yamlType = "application/yaml"
	// manifestName is the name of the body in messages and in the record.
	manifestName = "body"
)

// read parses the request. The caller calls free after the evaluation.
func (p *pending) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (requests []gate.Request, free func(), err error) {
	kind := review.MediaType(r)
	if kind != review.JSON && kind != yamlType {
		return nil, nil, problemf(WrongMediaType, "the body must be of type %s with images, or %s with manifests", review.JSON, yamlType)
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, nil, problemf(WrongMediaType, "the body must not be compressed")
	}
	body, err := p.readBody(ctx, w, r)
	if err != nil {
		return nil, nil, err
	}
	free, err = p.handler.queue.reserve(ctx, costOf(body))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	done, err := p.handler.queue.parse(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if kind == review.JSON {
		requests, err = p.readQuery(body, r.URL.RawQuery)
	} else {
		requests, err = p.readManifests(body, r.URL.RawQuery)
	}
	return requests, free, err
}

// readBody reads the whole body within bodyTimeout.
func (p *pending) readBody(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, bodyTimeout)
	defer cancel()
	body, err := p.handler.bodies.Read(ctx, w, r)
	if refused, ok := errors.AsType[*review.Error](err); ok && refused.Status == http.StatusRequestEntityTooLarge {
		return nil, problemf(TooLarge, "%v; split it", err)
	}
	if err != nil {
		return nil, &problem{cause: Malformed, message: "the body could not be read to its end", err: err}
	}
	return body.Bytes, nil
}

// costOf estimates the memory of a parsed body. A map begins with a brace in flow style and JSON,
// and with a line in block style. It allocates eight members at once, and every value is an
// interface. YAML has five line terminators. Within a line, each "- " begins a list and each "? " a
// key.
func costOf(body []byte) int64 {
	const ofMap, ofNode, ofValue = 352, 184, 48
	count := func(texts ...string) (n int64) {
		for _, text := range texts {
			n += int64(bytes.Count(body, []byte(text)))
		}
		return n
	}
	lines := count("\n", "\r", "\u0085", "\u2028", "\u2029") - count("\r\n")
	return int64(len(body)) + ofMap*(count("{")+lines) + ofNode*count("- ", "? ") + ofValue*count(",", "[", ":")
}

// readQuery reads a body with images.
func (p *pending) readQuery(body []byte, rawQuery string) ([]gate.Request, error) {
	if rawQuery != "" {
		return nil, problemf(Malformed, "the URL has a query; the namespace of images is a member of the body")
	}
	var q Query
	if err := json.Unmarshal(body, &q, json.RejectUnknownMembers(true)); err != nil {
		return nil, problemf(Malformed, `want a body such as {"images": ["registry.example/app:v1"], "namespace": "shop"}: %v`, strictjson.Readable(err))
	}
	if err := p.setNamespace(q.Namespace); err != nil {
		return nil, err
	}
	if len(q.Images) == 0 {
		return nil, problemf(Malformed, "images must not be empty")
	}
	if len(q.Images) > MaxImages {
		return nil, tooMany("images", len(q.Images), MaxImages)
	}
	requests := make([]gate.Request, 0, len(q.Images))
	for i, written := range q.Images {
		if _, err := image.Parse(written); err != nil {
			return nil, problemf(Malformed, "images[%d]: %v", i, err)
		}
		request, err := gate.ForImage(written, p.call.Namespace)
		if err != nil {
			return nil, problemf(Malformed, "images[%d]: %v", i, err)
		}
		request.Anonymous = true
		// A workload that is only named has no labels and no requesting user.
		request.Subject.Bare, request.Subject.Namespace = true, p.call.Namespace
		requests = append(requests, request)
	}
	return requests, nil
}

// readManifests reads a body with objects. The query's namespace applies to objects without their
// own.
func (p *pending) readManifests(body []byte, rawQuery string) ([]gate.Request, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil || len(values) > 1 || len(values) == 1 && len(values["namespace"]) != 1 {
		return nil, problemf(Malformed, "the URL's query must be empty or namespace=NAME")
	}
	if err := p.setNamespace(values.Get("namespace")); err != nil {
		return nil, err
	}
	if err := refuseAliases(body); err != nil {
		return nil, err
	}
	objects, err := workload.Read(bytes.NewReader(body), manifestName)
	if err != nil {
		return nil, problemf(Malformed, "%v", err)
	}
	if len(objects) == 0 {
		return nil, problemf(Malformed, "the body contains no object")
	}
	if len(objects) > MaxObjects {
		return nil, tooMany("objects", len(objects), MaxObjects)
	}
	images := 0
	requests := make([]gate.Request, 0, len(objects))
	for _, object := range objects {
		namespace := cmp.Or(object.Namespace(), p.call.Namespace)
		if !isNamespace(namespace) {
			return nil, problemf(Malformed, "%s: metadata.namespace %q is not a valid name of a namespace", object.Source(), namespace)
		}
		if constraint.IsClusterScoped(object.Group(), object.Kind()) {
			object = stored.In(object, "")
		} else {
			object = stored.In(object, namespace)
		}
		request := gate.Request{Object: object, Anonymous: true}
		request.Subject.Namespace = namespace
		if uses, err := workload.Extract(object); err == nil { // else the gate reports the error
			images += len(uses)
		}
		requests = append(requests, request)
	}
	if images > MaxImages {
		return nil, tooMany("images", images, MaxImages)
	}
	return requests, nil
}

func tooMany(what string, n, most int) error {
	return problemf(TooLarge, "%d %s, more than %d; split them", n, what, most)
}

// setNamespace sets the namespace of the request.
func (p *pending) setNamespace(name string) error {
	if name == "" {
		name = "default"
	}
	if !isNamespace(name) {
		return problemf(Malformed, "namespace: %q is not a valid name of a namespace", name)
	}
	p.call.Namespace = name
	return nil
}

func isNamespace(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// refuseAliases rejects YAML aliases, which can expand a few lines to megabytes.
func refuseAliases(body []byte) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n\ufeff"); len(trimmed) > 0 && trimmed[0] == '{' && isJSON(trimmed) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(body))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return problemf(Malformed, "YAML: %v", err)
		}
		if hasAlias(&document) {
			return problemf(Malformed, "YAML aliases (*name) are not supported; expand them, or send JSON")
		}
	}
}

// isJSON distinguishes JSON from YAML's flow style by the first value, as package workload does.
func isJSON(b []byte) bool {
	var raw jsonv1.RawMessage
	return jsonv1.NewDecoder(bytes.NewReader(b)).Decode(&raw) == nil
}

func hasAlias(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode {
		return true
	}
	for _, child := range n.Content {
		if hasAlias(child) {
			return true
		}
	}
	return false
}
