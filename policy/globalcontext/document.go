package globalcontext

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

const (
	// DefaultInterval is the interval of calls without a setting.
	DefaultInterval = 10 * time.Minute
	// minInterval limits the load on the called service; maxInterval ensures that an entry is
	// refreshed at all.
	minInterval = time.Second
	maxInterval = 7 * 24 * time.Hour
	// defaultRetries is the number of attempts of a call in one turn, and maxRetries its
	// maximum: more attempts rarely help.
	defaultRetries = 3
	maxRetries     = 10
	// maxProjections bounds the projections of an entry: each is evaluated whenever
	// the value changes.
	maxProjections = 100
	// maxHeaders bounds the headers of a call.
	maxHeaders = 50
)

// The methods of calls.
const methodGet, methodPost = "GET", "POST"

// FieldError reports an invalid field of a document with its path.
type FieldError = field.Error

// Recognises reports whether a document of this apiVersion and kind is one.
func Recognises(apiVersion, kind string) bool {
	return kind == "GlobalContextEntry" && slices.Contains([]string{"kyverno.io/v2", "kyverno.io/v2beta1", "kyverno.io/v2alpha1"}, apiVersion)
}

// Entry is a compiled GlobalContextEntry. It is immutable.
type Entry struct {
	Name string
	// Hash changes with everything that the entry asks for.
	Hash string
	// Resource or Call is set: the source of the value.
	Resource *Resource
	Call     *Call

	projections []projection
}

// Resource are all objects of a resource.
type Resource struct {
	// Group is empty for the core group; Namespace for all namespaces, or a resource
	// that has none. Resource is the plural.
	Group, Version, Resource, Namespace string
}

// Call is a call of an API.
type Call struct {
	// Path is one of the API server, with its query; empty if URL is set.
	Path string
	// URL is that of a service.
	URL     string
	Headers []Header
	// CABundle is PEM of the authorities that the service is trusted by; empty means
	// the system's.
	CABundle string
	// Method is GET or POST; Body is JSON, nil with GET.
	Method string
	Body   []byte
	// Interval is between two turns; Retries are the calls in one, at least 1.
	Interval time.Duration
	Retries  int
}

// Header is one of a call to a service.
type Header struct{ Name, Value string }

type projection struct {
	name  string
	query *jmespath.Query
}

type entryDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       struct {
		KubernetesResource *resourceDocument    `json:"kubernetesResource"`
		APICall            *callDocument        `json:"apiCall"`
		Projections        []projectionDocument `json:"projections"`
	} `json:"spec"`
	Status json.RawMessage `json:"status,omitempty"`
}

type resourceDocument struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
}

type callDocument struct {
	URLPath         string           `json:"urlPath"`
	Method          string           `json:"method"`
	Data            []dataDocument   `json:"data"`
	Service         *serviceDocument `json:"service"`
	RefreshInterval string           `json:"refreshInterval"`
	RetryLimit      *int             `json:"retryLimit"`
}

type dataDocument struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

type serviceDocument struct {
	URL          string           `json:"url"`
	Headers      []headerDocument `json:"headers"`
	CABundle     string           `json:"caBundle"`
	CABundleFrom json.RawMessage  `json:"caBundleFrom"`
}

type headerDocument struct {
	Key       string          `json:"key"`
	Value     string          `json:"value"`
	ValueFrom json.RawMessage `json:"valueFrom"`
}

type projectionDocument struct {
	Name     string `json:"name"`
	JMESPath string `json:"jmesPath"`
}

// Compiler compiles entries. Make one with NewCompiler.
type Compiler struct{ engine *jmespath.Engine }

// NewCompiler makes a Compiler that evaluates projections with engine; it refuses nil.
func NewCompiler(engine *jmespath.Engine) (*Compiler, error) {
	if engine == nil {
		return nil, errors.New("global context: an engine of expressions is required")
	}
	return &Compiler{engine: engine}, nil
}

// Compile compiles one document, YAML or JSON. Errors are about fields, with paths
// from its root.
func (c *Compiler) Compile(text []byte) (*Entry, error) {
	var d entryDocument
	if _, err := field.Read(text, &d); err != nil {
		return nil, err
	}
	if !Recognises(d.APIVersion, d.Kind) {
		return nil, field.Fail("kind", "%s %s is no GlobalContextEntry of kyverno.io/v2, v2beta1 or v2alpha1", d.APIVersion, d.Kind)
	}
	name, err := field.ReadName(d.Metadata)
	if err != nil {
		return nil, err
	}
	e := &Entry{Name: name}
	switch resource, call := d.Spec.KubernetesResource, d.Spec.APICall; {
	case (resource == nil) == (call == nil):
		return nil, field.Fail("spec", "want either kubernetesResource or apiCall")
	case resource != nil:
		e.Resource, err = resource.compile("spec.kubernetesResource")
	default:
		e.Call, err = call.compile("spec.apiCall")
	}
	if err != nil {
		return nil, err
	}
	e.projections, err = c.projections(d.Spec.Projections, name)
	if err != nil {
		return nil, err
	}
	spec, err := json.Marshal(d.Spec)
	if err != nil {
		return nil, field.Fail("spec", "%w", err)
	}
	sum := sha256.Sum256(spec)
	e.Hash = hex.EncodeToString(sum[:])
	return e, nil
}

func (c *Compiler) projections(list []projectionDocument, entry string) ([]projection, error) {
	if len(list) > maxProjections {
		return nil, field.Fail("spec.projections", "%d of them are more than %d", len(list), maxProjections)
	}
	var compiled []projection
	for i, p := range list {
		at := "spec.projections[" + strconv.Itoa(i) + "]"
		switch {
		case p.Name == "":
			return nil, field.Fail(at+".name", "is empty")
		case p.Name == entry:
			return nil, field.Fail(at+".name", "is the name of the entry: a projection wants one of its own")
		case strings.Contains(p.Name, "."):
			return nil, field.Fail(at+".name", "%q has a dot, which parts the names of entry and projection", p.Name)
		case slices.ContainsFunc(compiled, func(have projection) bool { return have.name == p.Name }):
			return nil, field.Fail(at+".name", "%q is there twice", p.Name)
		case p.JMESPath == "":
			return nil, field.Fail(at+".jmesPath", "is empty")
		}
		query, err := c.engine.Compile(p.JMESPath)
		if err != nil {
			return nil, field.Below(at+".jmesPath", err)
		}
		compiled = append(compiled, projection{p.Name, query})
	}
	return compiled, nil
}

func (r resourceDocument) compile(at string) (*Resource, error) {
	for _, part := range []struct{ path, text string }{{"version", r.Version}, {"resource", r.Resource}} {
		if problems := validation.IsDNS1123Label(part.text); len(problems) > 0 {
			return nil, field.Fail(at+"."+part.path, "%q: want a name in lower case, as in v1 or deployments", part.text)
		}
	}
	switch {
	case r.Group == "" && r.Version != "v1":
		return nil, field.Fail(at+".group", "is empty, and the core group has only v1")
	case r.Group != "" && len(validation.IsDNS1123Subdomain(r.Group)) > 0:
		return nil, field.Fail(at+".group", "%q is no API group", r.Group)
	case r.Namespace != "" && len(validation.IsDNS1123Label(r.Namespace)) > 0:
		return nil, field.Fail(at+".namespace", "%q is no name of a namespace", r.Namespace)
	case r.Group == "" && r.Resource == "secrets":
		return nil, field.Fail(at+".resource", "Secrets are not shown to policies")
	}
	return &Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: r.Namespace}, nil
}

func (d callDocument) compile(at string) (*Call, error) {
	c := &Call{Method: d.Method, Interval: DefaultInterval, Retries: defaultRetries}
	if d.Method == "" {
		c.Method = methodGet
	}
	if c.Method != methodGet && c.Method != methodPost {
		return nil, field.Fail(at+".method", "%q: want GET or POST", d.Method)
	}
	if d.RetryLimit != nil {
		c.Retries = *d.RetryLimit
	}
	if c.Retries < 1 || c.Retries > maxRetries {
		return nil, field.Fail(at+".retryLimit", "%d: want 1 to %d", c.Retries, maxRetries)
	}
	if d.RefreshInterval != "" {
		interval, err := time.ParseDuration(d.RefreshInterval)
		if err != nil || interval < minInterval || interval > maxInterval {
			return nil, field.Fail(at+".refreshInterval", "%q: want %s to %s, as in 10m", d.RefreshInterval, minInterval, maxInterval)
		}
		c.Interval = interval
	}
	var err error
	switch {
	case (d.Service == nil) == (d.URLPath == ""):
		return nil, field.Fail(at, "want either urlPath or service")
	case d.Service != nil:
		err = d.Service.compile(c, at+".service")
	default:
		err = c.serverPath(d.URLPath, at+".urlPath")
	}
	if err != nil {
		return nil, err
	}
	c.Body, err = d.body(c.Method, at)
	return c, err
}

// body is the JSON object of the request's body.
func (d callDocument) body(method, at string) ([]byte, error) {
	if method == methodGet {
		if len(d.Data) > 0 {
			return nil, field.Fail(at+".data", "is sent with POST only")
		}
		return nil, nil
	}
	data := make(map[string]json.RawMessage, len(d.Data))
	for i, part := range d.Data {
		below := at + ".data[" + strconv.Itoa(i) + "]"
		if _, twice := data[part.Key]; twice || part.Key == "" {
			return nil, field.Fail(below+".key", "%q is empty or there twice", part.Key)
		}
		if len(part.Value) == 0 {
			return nil, field.Fail(below+".value", "is missing")
		}
		data[part.Key] = part.Value
	}
	body, err := json.Marshal(data)
	if err != nil {
		return nil, field.Fail(at+".data", "%w", err)
	}
	return body, nil
}

func (s serviceDocument) compile(c *Call, at string) error {
	if err := field.URL(s.URL, at+".url"); err != nil {
		return err
	}
	if len(s.CABundleFrom) > 0 {
		return field.Fail(at+".caBundleFrom", "is not supported in this version: write the bundle into caBundle")
	}
	if s.CABundle != "" {
		if _, err := field.PEM(s.CABundle, at+".caBundle", field.Certificate); err != nil {
			return err
		}
	}
	if len(s.Headers) > maxHeaders {
		return field.Fail(at+".headers", "%d of them are more than %d", len(s.Headers), maxHeaders)
	}
	c.URL, c.CABundle = s.URL, s.CABundle
	for i, h := range s.Headers {
		below := at + ".headers[" + strconv.Itoa(i) + "]"
		switch {
		case len(h.ValueFrom) > 0:
			return field.Fail(below+".valueFrom", "is not supported in this version: write the value into value")
		case len(validation.IsHTTPHeaderName(h.Key)) > 0:
			return field.Fail(below+".key", "%q is no name of a header", h.Key)
		case strings.ContainsAny(h.Value, "\r\n\x00"):
			return field.Fail(below+".value", "has a line break")
		}
		c.Headers = append(c.Headers, Header{h.Key, h.Value})
	}
	return nil
}

// serverPath accepts only canonical paths of the API server: without other encodings of a
// path, no request can be diverted. A POST is restricted to the reviews, which change
// nothing.
func (c *Call) serverPath(text, at string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Fragment != "" || !strings.HasPrefix(text, "/api") ||
		u.RawPath != "" || u.EscapedPath() != u.Path || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") || strings.Contains(u.Path, "%") {
		return field.Fail(at, "%q: want a plain path of the API server, as in /apis/apps/v1/deployments?labelSelector=a%%3Db", text)
	}
	segments := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case segments[0] != "api" && segments[0] != "apis":
		return field.Fail(at, "%q: want a path below /api or /apis", text)
	case segments[0] == "api" && slices.Contains(segments, "secrets"):
		return field.Fail(at, "Secrets are not shown to policies")
	case slices.Contains([]string{"proxy", "exec", "attach", "portforward", "log"}, segments[len(segments)-1]) || slices.Contains(segments, "proxy"):
		return field.Fail(at, "%q leads to what runs in the cluster, and not to an object: use service", text)
	case u.Query().Has("watch"):
		return field.Fail(at, "%q requires a watch: use kubernetesResource", text)
	case c.Method == methodPost && (segments[0] != "apis" || len(segments) < 2 || segments[1] != "authorization.k8s.io" ||
		!strings.HasSuffix(segments[len(segments)-1], "reviews")):
		return field.Fail(at, "%q: only reviews of authorization.k8s.io are posted for policies: an entry must change nothing in the cluster", text)
	}
	c.Path = text
	return nil
}
