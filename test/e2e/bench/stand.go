package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/pair"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// The phases.
const (
	bare     = "no webhook"
	allowing = "no-op pair"
	patching = "patching pair"
	gated    = "gateway"
)

// The kinds of the gateway's policy, which say the same.
const (
	clusterPolicy         = "ClusterPolicy"
	imageValidatingPolicy = "ImageValidatingPolicy"
)

// setupTimeout bounds how long a webhook may take until the API server asks it.
const setupTimeout = time.Minute

// phase is one way to create a pod.
type phase struct {
	name      string
	namespace string
	webhook   *process.Process // nil without
	pinned    bool             // whether the image comes back by digest
}

// stand is all that runs.
type stand struct {
	folder  string
	plane   *controlplane.ControlPlane
	env     *env.Env
	image   gatetest.Image
	body    []byte // of a request
	bad     []byte // of one that the policies refuse
	client  *http.Client
	gateway *gateway.Gateway // nil without
	phases  []phase
	closers []func()
	version string
}

func (s *stand) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// build starts everything. With an error, too, it returns the started parts.
func build(ctx context.Context, folder string, settings settings) (*stand, error) {
	s := &stand{folder: folder}
	var err error
	s.plane, err = controlplane.Start(ctx, controlplane.Options{Folder: folder, Controllers: settings.policy == nativePolicies})
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.plane.Close)
	s.env, err = env.Open(registrytest.Options{})
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.env.Close)
	s.image, err = s.env.Signed("shop/web", "1.0")
	if err != nil {
		return s, err
	}
	s.body, err = encodePod(s.image.Name, func(*core.Pod) {})
	if err != nil {
		return s, err
	}
	if settings.policy == podSecurity || settings.policy == nativePolicies {
		s.bad = s.body
		s.body, err = encodePod(s.image.Name, restrict)
		if err != nil {
			return s, err
		}
	}
	s.client, err = rest.HTTPClientFor(s.plane.Admin())
	if err != nil {
		return s, err
	}
	client, err := kubernetes.NewForConfig(s.plane.Admin())
	if err != nil {
		return s, err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return s, err
	}
	s.version = version.GitVersion
	s.phases = []phase{{name: bare, namespace: "bench-bare"}, {name: allowing, namespace: "bench-pair"}, {name: patching, namespace: "bench-patching", pinned: true}}
	if settings.gateway {
		s.phases = append(s.phases, phase{name: gated, namespace: "bench-gateway", pinned: s.bad == nil})
	}
	if settings.policy == nativePolicies {
		s.phases = append(s.phases, phase{name: native, namespace: "bench-native"}, phase{name: written, namespace: "bench-written"})
	}
	for i := range s.phases {
		if err := s.open(ctx, &s.phases[i], settings.policy); err != nil {
			return s, fmt.Errorf("set up %s: %w", s.phases[i].name, err)
		}
	}
	return s, nil
}

// encodePod returns a pod of usual size.
func encodePod(image string, change func(*core.Pod)) ([]byte, error) {
	pod := core.Pod{
		TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: meta.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web", "team": "shop"}},
		Spec: core.PodSpec{Containers: []core.Container{{
			Name: "web", Image: image, Args: []string{"--listen=:8080"},
			Ports: []core.ContainerPort{{ContainerPort: 8080}},
			Env:   []core.EnvVar{{Name: "STAGE", Value: "production"}},
		}}},
	}
	change(&pod)
	return json.Marshal(pod)
}

// open makes the phase's namespace and webhooks, and returns when the API
// server asks them.
func (s *stand) open(ctx context.Context, p *phase, kind string) error {
	if err := s.plane.Namespace(ctx, p.namespace); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	switch p.name {
	case allowing, patching:
		return s.openPair(ctx, p)
	case gated:
		return s.openGateway(ctx, p, kind)
	case native:
		return s.openNative(ctx, p)
	case written:
		return s.openWritten(ctx, p)
	default:
		return nil
	}
}

func (s *stand) openPair(ctx context.Context, p *phase) error {
	o := pair.Options{Plane: s.plane, Folder: filepath.Join(s.folder, p.namespace), Namespace: p.namespace}
	if err := os.Mkdir(o.Folder, 0o700); err != nil {
		return err
	}
	if p.pinned {
		o.Patch = s.patch()
	}
	running, err := pair.Start(ctx, o)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, running.Kill)
	p.webhook = running.Process
	return running.Asked(ctx, func(ctx context.Context) error { return s.create(ctx, *p) })
}

// patch is the gateway's patch, made beforehand.
func (s *stand) patch() string {
	return fmt.Sprintf(`[{"op":"test","path":"/spec/containers/0/image","value":%[1]q},{"op":"replace","path":"/spec/containers/0/image","value":%[2]q},`+
		`{"op":"add","path":"/metadata/annotations","value":{}},{"op":"add","path":"/metadata/annotations/quaymaster.dev~1written","value":%[3]q}]`,
		s.image.Name, s.image.Name+"@"+s.image.Manifest.Digest, fmt.Sprintf("{\"web\":%q}", s.image.Name))
}

func (s *stand) openGateway(ctx context.Context, p *phase, kind string) error {
	identity, err := s.plane.Install(ctx)
	if err != nil {
		return err
	}
	policy, err := s.policy(kind, p.namespace)
	if err != nil {
		return err
	}
	if err := install(ctx, s.plane, policy); err != nil {
		return err
	}
	folder := filepath.Join(s.folder, "gateway")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	var c gateway.Configuration
	c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, identity); err != nil {
		return err
	}
	c.PlainHTTP(s.env.Registry.Host())
	excluded := []string{"kube-system"}
	for _, other := range s.phases {
		if other.name != gated && other.name != native {
			excluded = append(excluded, other.namespace)
		}
	}
	c.Webhooks.ExcludedNamespaces = &excluded
	if kind == nativePolicies {
		c.Policies.NativePolicies = "requested"
	}
	program := filepath.Join(s.folder, "quaymaster")
	if err := peers.BuildQuaymaster(ctx, program); err != nil {
		return err
	}
	running, err := gateway.Start(ctx, gateway.Options{Program: program, Folder: folder, Configuration: c})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, running.Kill)
	p.webhook, s.gateway = running.Process, running
	if err := running.Ready(ctx); err != nil {
		return err
	}
	return running.Await(ctx, func(ctx context.Context) error {
		if s.bad != nil {
			if err := s.awaitDenied(ctx, *p, s.bad); err != nil {
				return err
			}
		}
		return s.create(ctx, *p)
	})
}

// policy returns a policy of a kind that wants the image signed, or the policies of
// the Pod Security Standards.
func (s *stand) policy(kind, namespace string) (string, error) {
	switch kind {
	case podSecurity:
		return standards()
	case nativePolicies:
		return webhookPolicies(namespace), nil
	case clusterPolicy:
		return s.env.YAML(env.Policy{Name: "signed", Namespaces: []string{namespace}})
	}
	key, err := json.Marshal(string(s.env.Signer.PublicPEM()))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: signed}
spec:
  validationActions: [Deny]
  matchConstraints:
    namespaceSelector: {matchLabels: {%s: %s}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences: [{glob: "%s/**"}]
  attestors:
  - name: ours
    cosign: {key: {data: %s}, ctlog: {insecureIgnoreTlog: true}}
  validations:
  - expression: images.containers.all(image, verifyImageSignatures(image, [attestors.ours]) > 0)
    message: the image is not signed
`, core.LabelMetadataName, namespace, s.env.Registry.Host(), key), nil
}

// create creates a pod and checks what came back.
func (s *stand) create(ctx context.Context, p phase) error {
	return s.post(ctx, p, s.body)
}

// post creates a pod of that body.
func (s *stand) post(ctx context.Context, p phase, pod []byte) error {
	url := s.plane.Admin().Host + "/api/v1/namespaces/" + p.namespace + "/pods?dryRun=All"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(pod))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated {
		return fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	if bytes.Contains(body, []byte("@"+s.image.Manifest.Digest)) != p.pinned {
		return errors.New("the image came back as it should not")
	}
	return nil
}
