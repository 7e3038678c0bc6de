package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	admission "k8s.io/api/admission/v1"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// The release's namespace, and the gateway's objects in it.
const releaseNamespace, certificateSecret, ownName = "quaymaster", "quaymaster-certificate", "quaymaster"

// endpointTimeout bounds one call of an endpoint, and maxAnswer its answer, in bytes.
const endpointTimeout, maxAnswer = 35 * time.Second, 1 << 20

// caller calls a gateway's endpoints as an API server does, with a test's own reviews.
type caller struct {
	client *http.Client
	base   string
}

// caller returns one that knows the gateway by the authority in its Secret.
func (s *scene) caller(t *testing.T, g *gateway.Gateway) caller {
	t.Helper()
	secret := s.secret(t)
	return newCaller(t, g, secret.Data["ca.crt"], nil)
}

// secret is the Secret with the gateway's certificate.
func (s *scene) secret(t *testing.T) *core.Secret {
	t.Helper()
	secret, err := s.client.CoreV1().Secrets(releaseNamespace).Get(t.Context(), certificateSecret, meta.GetOptions{})
	must(t, err)
	return secret
}

// newCaller trusts the authorities and may change how TLS is spoken.
func newCaller(t *testing.T, g *gateway.Gateway, authorities []byte, change func(*tls.Config)) caller {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authorities) {
		t.Fatal("there is no authority")
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if change != nil {
		change(config)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return caller{client: &http.Client{Transport: transport, Timeout: endpointTimeout}, base: "https://" + g.Configuration.Listen.Address}
}

// post sends a body as it is.
func (c caller) post(ctx context.Context, path, contentType string, body io.Reader) (status int, protocol string, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, body)
	if err != nil {
		return 0, "", nil, err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := c.client.Do(request)
	if err != nil {
		return 0, "", nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return response.StatusCode, response.Proto, answer, err
}

// ask sends a review and returns the response, which must be to that request.
func (c caller) ask(ctx context.Context, path string, review *admission.AdmissionReview) (*admission.AdmissionResponse, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	status, _, answer, err := c.post(ctx, path, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	var said admission.AdmissionReview
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d: %q", path, status, answer)
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return nil, fmt.Errorf("%s answers %q: %w", path, answer, err)
	}
	if said.Response == nil || said.Response.UID != review.Request.UID {
		return nil, fmt.Errorf("%s answers another request: %s", path, answer)
	}
	return said.Response, nil
}

// reviewOf is the review of a pod that a user creates.
func (s *scene) reviewOf(p *core.Pod, user string, groups ...string) *admission.AdmissionReview {
	named := p.DeepCopy()
	named.TypeMeta, named.Namespace = meta.TypeMeta{APIVersion: "v1", Kind: "Pod"}, s.namespace
	object, err := json.Marshal(named)
	if err != nil {
		panic(err) // a Pod can be written
	}
	pods := meta.GroupVersionResource{Version: "v1", Resource: "pods"}
	kind := meta.GroupVersionKind{Version: "v1", Kind: "Pod"}
	return &admission.AdmissionReview{
		TypeMeta: meta.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admission.AdmissionRequest{
			UID: types.UID("review-of-" + p.Name), Kind: kind, RequestKind: &kind, Resource: pods, RequestResource: &pods,
			Name: p.Name, Namespace: s.namespace, Operation: admission.Create,
			UserInfo: authentication.UserInfo{Username: user, Groups: groups},
			Object:   runtime.RawExtension{Raw: object},
		},
	}
}

// replacement is the part of a JSON Patch that replaces a container's image.
type replacement struct {
	Op, Path string
	Value    any
}

// pinned applies a patch to a pod's first image.
func pinned(p *core.Pod, patch []byte) (*core.Pod, error) {
	var operations []replacement
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, fmt.Errorf("the patch %s: %w", base64.StdEncoding.EncodeToString(patch), err)
	}
	after := p.DeepCopy()
	i := slices.IndexFunc(operations, func(o replacement) bool { return o.Op == "replace" && o.Path == "/spec/containers/0/image" })
	if i < 0 {
		return nil, fmt.Errorf("the patch %s replaces no image", patch)
	}
	after.Spec.Containers[0].Image, _ = operations[i].Value.(string)
	return after, nil
}

// vacate removes the Leases of replicas that were killed, so that the next one
// need not wait until they expire.
func (s *scene) vacate(t *testing.T) {
	t.Helper()
	must(t, s.client.CoordinationV1().Leases(releaseNamespace).DeleteCollection(t.Context(), meta.DeleteOptions{}, meta.ListOptions{}))
}

// freshStart is start after vacate.
func (s *scene) freshStart(t *testing.T, c gateway.Configuration) *gateway.Gateway {
	t.Helper()
	s.vacate(t)
	return s.start(t, c)
}

// gone makes an error of an object that is there.
func gone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New("it is still there")
	}
	return err
}
