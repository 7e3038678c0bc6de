package admission

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// The only supported version of the protocol.
const (
	reviewVersion = "admission.k8s.io/v1"
	reviewKind    = "AdmissionReview"
)

// admissionReview is a review with unparsed objects.
type admissionReview struct {
	apiVersion, kind string
	hasRequest       bool
	request          request
}

// request is the request of a review. Its texts are copies; the objects are slices of the body.
type request struct {
	uid, name, namespace   string
	operation, subresource string
	requestKind
	requestResource
	requestUser
	dryRun            bool
	object, oldObject []byte // nil for null
	// text is the request without its objects, as slices of the body.
	text [][]byte
}

// requestKind is the kind of the objects.
type requestKind struct{ group, version, kind string }

// requestResource is the resource of the URL, without its subresource.
type requestResource struct{ resourceGroup, resourceVersion, resource string }

// requestUser is the authenticated user.
type requestUser struct {
	user, userUID string
	extra         []byte // nil for null
	groups        []string
}

// copied returns the text of the request without its objects. The copy is valid after the body is
// released.
func (r *request) copied() []byte { return bytes.Join(r.text, []byte("null")) }

// decode parses a review in one pass. Unknown members are skipped.
func decode(body []byte) (*admissionReview, error) {
	d := &decoder{body: body, json: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))}
	e := &admissionReview{}
	if err := readObject(d, "", e, reviewFields); err != nil {
		return nil, err
	}
	if _, err := d.json.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the review")
	}
	return e, nil
}

// decodeHead parses the beginning of a review that is incomplete or invalid.
func decodeHead(front []byte) request {
	d := &decoder{body: front, json: jsontext.NewDecoder(bytes.NewBuffer(front), jsontext.AllowDuplicateNames(true))}
	e := &admissionReview{}
	_ = readObject(d, "", e, reviewFields) // the error does not matter
	return e.request
}

// field is a member that is read into a T.
type field[T any] struct {
	name string
	read func(*decoder, *T) error
}

var reviewFields = []field[admissionReview]{
	{"kind", func(d *decoder, e *admissionReview) error { return d.text(&e.kind) }},
	{"apiVersion", func(d *decoder, e *admissionReview) error { return d.text(&e.apiVersion) }},
	{"request", func(d *decoder, e *admissionReview) error {
		if d.json.PeekKind() == jsontext.KindNull {
			return d.json.SkipValue()
		}
		e.hasRequest = true
		start := d.json.InputOffset()
		if err := readObject(d, "request", &e.request, requestFields); err != nil {
			return err
		}
		e.request.text = d.without(start)
		return nil
	}},
}

var requestFields = []field[request]{
	{"uid", func(d *decoder, r *request) error { return d.text(&r.uid) }},
	{"kind", func(d *decoder, r *request) error { return readObject(d, "request.kind", &r.requestKind, kindFields) }},
	{"resource", func(d *decoder, r *request) error {
		return readObject(d, "request.resource", &r.requestResource, resourceFields)
	}},
	{"subResource", func(d *decoder, r *request) error { return d.text(&r.subresource) }},
	{"name", func(d *decoder, r *request) error { return d.text(&r.name) }},
	{"namespace", func(d *decoder, r *request) error { return d.text(&r.namespace) }},
	{"operation", func(d *decoder, r *request) error { return d.text(&r.operation) }},
	{"userInfo", func(d *decoder, r *request) error {
		return readObject(d, "request.userInfo", &r.requestUser, userFields)
	}},
	{"object", func(d *decoder, r *request) error { return d.object(&r.object) }},
	{"oldObject", func(d *decoder, r *request) error { return d.object(&r.oldObject) }},
	{"dryRun", func(d *decoder, r *request) error { return d.bool(&r.dryRun) }},
	// Only expressions use these members. They are listed to reject duplicates.
	{"requestKind", skip}, {"requestResource", skip}, {"requestSubResource", skip}, {"options", skip},
}

func skip(d *decoder, _ *request) error { return d.json.SkipValue() }

var kindFields = []field[requestKind]{
	{"group", func(d *decoder, r *requestKind) error { return d.text(&r.group) }},
	{"version", func(d *decoder, r *requestKind) error { return d.text(&r.version) }},
	{"kind", func(d *decoder, r *requestKind) error { return d.text(&r.kind) }},
}

var resourceFields = []field[requestResource]{
	{"group", func(d *decoder, r *requestResource) error { return d.text(&r.resourceGroup) }},
	{"version", func(d *decoder, r *requestResource) error { return d.text(&r.resourceVersion) }},
	{"resource", func(d *decoder, r *requestResource) error { return d.text(&r.resource) }},
}

var userFields = []field[requestUser]{
	{"username", func(d *decoder, r *requestUser) error { return d.text(&r.user) }},
	{"uid", func(d *decoder, r *requestUser) error { return d.text(&r.userUID) }},
	{"groups", func(d *decoder, r *requestUser) error { return d.texts(&r.groups) }},
	{"extra", func(d *decoder, r *requestUser) error { return d.raw(&r.extra) }},
}

// decoder reads values from a body.
type decoder struct {
	json *jsontext.Decoder
	body []byte
	// objects are the positions of the request's objects in the body, in order.
	objects [][2]int64
}

// readObject reads the members in fields. A duplicate is an error, because parsers differ in which
// one they use.
func readObject[T any](d *decoder, path string, into *T, fields []field[T]) error {
	if kind := d.json.PeekKind(); kind != jsontext.KindBeginObject {
		return d.unexpected(path, "an object")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	var seen uint64
	for d.json.PeekKind() == jsontext.KindString {
		name, err := d.name()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == string(name) })
		if i < 0 {
			if err := d.json.SkipValue(); err != nil {
				return err
			}
			continue
		}
		known := fields[i]
		if seen&(1<<i) != 0 {
			return fmt.Errorf("%s is a duplicate", join(path, known.name))
		}
		seen |= 1 << i
		if err := known.read(d, into); err != nil {
			return within(join(path, known.name), err)
		}
	}
	_, err := d.json.ReadToken()
	return err
}

// wrongType is the error for a member of another type. The caller adds the path.
type wrongType struct{ path, want string }

func (e *wrongType) Error() string {
	if e.path == "" {
		return "the body must be " + e.want
	}
	return e.path + ": must be " + e.want
}

func within(path string, err error) error {
	if wrong, ok := errors.AsType[*wrongType](err); ok && wrong.path == "" {
		return &wrongType{path: path, want: wrong.want}
	}
	return err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// unexpected returns the error for a value of another type.
func (d *decoder) unexpected(path, want string) error {
	switch _, err := d.json.ReadValue(); {
	case errors.Is(err, io.EOF):
		return errors.New("unexpected end of input")
	case err != nil:
		return err
	}
	return &wrongType{path: path, want: want}
}

// name reads the name of a member. It is valid until the next read.
func (d *decoder) name() ([]byte, error) {
	quoted, err := d.json.ReadValue()
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	return jsontext.AppendUnquote(nil, quoted)
}

// text reads a copy of a text; null is empty.
func (d *decoder) text(into *string) error {
	switch d.json.PeekKind() {
	case jsontext.KindNull:
		return d.json.SkipValue()
	case jsontext.KindString:
	default:
		return d.unexpected("", "text")
	}
	quoted, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		*into = string(quoted[1 : len(quoted)-1])
		return nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, quoted)
	*into = string(unquoted)
	return err
}

func (d *decoder) texts(into *[]string) error {
	switch d.json.PeekKind() {
	case jsontext.KindNull:
		return d.json.SkipValue()
	case jsontext.KindBeginArray:
	default:
		return d.unexpected("", "a list of texts")
	}
	if _, err := d.json.ReadToken(); err != nil {
		return err
	}
	for d.json.PeekKind() != jsontext.KindEndArray {
		var text string
		if err := d.text(&text); err != nil {
			return err
		}
		*into = append(*into, text)
	}
	_, err := d.json.ReadToken()
	return err
}

func (d *decoder) bool(into *bool) error {
	switch d.json.PeekKind() {
	case jsontext.KindNull, jsontext.KindFalse:
		return d.json.SkipValue()
	case jsontext.KindTrue:
		*into = true
		return d.json.SkipValue()
	}
	return d.unexpected("", "true or false")
}

// raw returns an object as a slice of the body.
func (d *decoder) raw(into *[]byte) error {
	switch d.json.PeekKind() {
	case jsontext.KindNull:
		return d.json.SkipValue()
	case jsontext.KindBeginObject:
	default:
		return d.unexpected("", "an object")
	}
	value, err := d.json.ReadValue()
	if err != nil {
		return err
	}
	end := d.json.InputOffset()
	*into = d.body[end-int64(len(value)) : end]
	return nil
}

// object is raw, and records the object's position.
func (d *decoder) object(into *[]byte) error {
	if err := d.raw(into); err != nil || *into == nil {
		return err
	}
	end := d.json.InputOffset()
	d.objects = append(d.objects, [2]int64{end - int64(len(*into)), end})
	return nil
}

// without returns the parts of the current value around the objects in it. Between start and the
// value there are only a colon and spaces.
func (d *decoder) without(start int64) [][]byte {
	start += int64(bytes.IndexByte(d.body[start:], '{'))
	var parts [][]byte
	for _, object := range d.objects {
		parts = append(parts, d.body[start:object[0]])
		start = object[1]
	}
	return append(parts, d.body[start:d.json.InputOffset()])
}
