package rulecontext

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxPairs bounds the data and the headers of a call.
const maxPairs = 200

// apiCall is an entry that holds an answer of the API server or of a service.
type apiCall struct {
	method         string
	urlPath        *variable.Template // nil for a service
	url, bundle    *variable.Template // of a service
	headers        *variable.Template // an object
	body, fallback *variable.Template // nil for none
	expression     *variable.Expression
	namespace      string // of a Policy
	caller         Caller
}

func (c compiler) apiCall(doc *apiCallDocument, path string) (loader, error) {
	a := &apiCall{method: doc.Method, namespace: c.Namespace, caller: c.Caller}
	var errs []error
	if doc.Method == "" {
		a.method = "GET"
	}
	if !slices.Contains([]string{"GET", "POST"}, a.method) {
		errs = append(errs, field.Fail(path+".method", "unknown method %q: want GET or POST", doc.Method))
	}
	if (doc.URLPath == "") == (doc.Service == nil) {
		return nil, errors.Join(append(errs, field.Fail(path, "want one of urlPath and service"))...)
	}
	var err error
	if doc.Service != nil {
		errs = append(errs, a.service(c, doc.Service, path+".service"))
	} else {
		a.urlPath, err = c.template(doc.URLPath, path+".urlPath")
		errs = append(errs, err)
		if err == nil && a.urlPath.Plain() {
			errs = append(errs, field.Below(path+".urlPath", CheckPath(doc.URLPath, c.Namespace)))
		}
	}
	errs = append(errs, a.data(c, doc.Data, path+".data"))
	a.expression, err = c.expression(doc.JMESPath, path+".jmesPath")
	errs = append(errs, err)
	if doc.Default != nil {
		a.fallback, err = c.template(doc.Default, path+".default")
		errs = append(errs, err)
	}
	return a, errors.Join(errs...)
}

// service reads where a service is.
func (a *apiCall) service(c compiler, doc *serviceDocument, path string) error {
	var errs []error
	var err error
	a.url, err = c.template(doc.URL, path+".url")
	errs = append(errs, err)
	if err == nil && a.url.Plain() {
		errs = append(errs, field.URL(doc.URL, path+".url"))
	}
	a.bundle, err = c.template(doc.CABundle, path+".caBundle")
	errs = append(errs, err)
	if err == nil && a.bundle.Plain() && doc.CABundle != "" {
		_, err := field.PEM(doc.CABundle, path+".caBundle", field.Certificate)
		errs = append(errs, err)
	}
	if len(doc.Headers) > maxPairs {
		errs = append(errs, field.Fail(path+".headers", "the number of headers %w of %d", jmespath.ErrTooLarge, maxPairs))
	}
	headers := map[string]any{}
	for i, h := range doc.Headers {
		if _, twice := headers[h.Key]; h.Key == "" || twice {
			errs = append(errs, field.Fail(path+".headers["+strconv.Itoa(i)+"].key", "%q is empty, or there twice", h.Key))
		}
		headers[h.Key] = h.Value
	}
	a.headers, err = c.template(headers, path+".headers")
	return errors.Join(append(errs, err)...)
}

// data reads the body of a POST.
func (a *apiCall) data(c compiler, list []requestData, path string) error {
	if a.method != "POST" {
		if len(list) > 0 {
			return field.Fail(path, "is sent with POST, and the method is GET")
		}
		return nil
	}
	if len(list) > maxPairs {
		return field.Fail(path, "the number of members %w of %d", jmespath.ErrTooLarge, maxPairs)
	}
	body := map[string]any{}
	var errs []error
	for i, d := range list {
		if _, twice := body[d.Key]; d.Key == "" || twice {
			errs = append(errs, field.Fail(path+"["+strconv.Itoa(i)+"].key", "%q is empty, or there twice", d.Key))
		}
		body[d.Key] = d.Value
	}
	var err error
	a.body, err = c.template(body, path)
	return errors.Join(append(errs, err)...)
}

func (a *apiCall) reads(r *reads) {
	for _, t := range []*variable.Template{a.urlPath, a.url, a.bundle, a.headers, a.body, a.fallback} {
		r.template(t)
	}
	r.expression(a.expression, true)
}

// load makes the call. The default replaces a failed answer, and neither an empty result of the
// jmesPath nor an answer that is too large or comes too late for the request: the author of objects
// could choose the default by their number.
func (a *apiCall) load(ctx context.Context, data variable.Context) (any, error) {
	ask, err := a.prepare(data)
	if err != nil {
		return nil, err
	}
	answer, err := ask(ctx)
	if err != nil {
		_, exceeds := errors.AsType[*limit.ExceededError](err)
		if a.fallback != nil && !exceeds && ctx.Err() == nil {
			return a.fallback.Execute(data)
		}
		return nil, err
	}
	return selected(a.expression, answer, data)
}

// prepare fills in the variables of the call.
func (a *apiCall) prepare(data variable.Context) (func(context.Context) (any, error), error) {
	var body any
	if a.body != nil {
		var err error
		body, err = a.body.Execute(data)
		if err != nil {
			return nil, err
		}
	}
	if a.urlPath == nil {
		return a.prepareService(data, body)
	}
	pieces, err := a.urlPath.Pieces(data)
	if err != nil {
		return nil, err
	}
	path, err := ownPath(pieces)
	if err != nil {
		return nil, err
	}
	if err := CheckPath(path, a.namespace); err != nil {
		return nil, err
	}
	if a.caller == nil {
		return nil, fmt.Errorf("%s %s: there is no cluster to ask", a.method, path)
	}
	return func(ctx context.Context) (any, error) {
		defer waittime.Begin(ctx)()
		answer, err := a.caller.API(ctx, APICall{Method: a.method, Path: path, Body: body})
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", a.method, path, err)
		}
		return answer, nil
	}, nil
}

// ownPath refuses a path with a variable value that spans more than one segment or one parameter:
// the author of the object could otherwise redirect the call. A path that begins with a variable
// belongs entirely to that variable. An API's group and version, as in an apiVersion, are one
// segment.
func ownPath(pieces []variable.Piece) (string, error) {
	var path strings.Builder
	for _, piece := range pieces {
		at := path.String()
		path.WriteString(piece.Text)
		if !piece.FromVariable || strings.Trim(at, "/") == "" {
			continue
		}
		marks := "?&/"
		switch {
		case strings.Contains(at, "?"):
			marks = "?&"
		case at == "/apis/" && strings.Count(piece.Text, "/") == 1:
			marks = "?&"
		}
		if found := strings.IndexAny(piece.Text, marks); found >= 0 {
			return "", fmt.Errorf("the path %q has a %s in it that a variable brought", at+piece.Text, piece.Text[found:found+1])
		}
	}
	return path.String(), nil
}

func (a *apiCall) prepareService(data variable.Context, body any) (func(context.Context) (any, error), error) {
	call := ServiceCall{Method: a.method, Headers: map[string]string{}, Body: body}
	var err error
	call.URL, err = text(a.url, data)
	if err != nil {
		return nil, err
	}
	call.CABundle, err = text(a.bundle, data)
	if err != nil {
		return nil, err
	}
	if err := field.URL(call.URL, "url"); err != nil {
		return nil, err
	}
	headers, err := a.headers.Execute(data)
	if err != nil {
		return nil, err
	}
	named, _ := headers.(map[string]any)
	for name, value := range named {
		call.Headers[name] = jmespath.Text(value)
	}
	if a.caller == nil {
		return nil, fmt.Errorf("%s %s: no calls are made here", a.method, call.URL)
	}
	return func(ctx context.Context) (any, error) {
		defer waittime.Begin(ctx)()
		answer, err := a.caller.Service(ctx, call)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", a.method, call.URL, err)
		}
		return answer, nil
	}, nil
}
