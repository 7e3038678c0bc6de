package configuration

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy"
)

// Input determines the configurations completely.
type Input struct {
	// Policies of the active set, including broken ones. Their order does not matter.
	Policies []*policy.Policy
	// Exceptions to them.
	Exceptions []*policy.Exception
	// Resources that the API server serves; at least one. See Served.
	Resources []Resource
	// Failed are the group versions with failed discovery. A Reconciler takes their resources from
	// the stored configuration; Build ignores this field.
	Failed []schema.GroupVersion
	// Endpoint is the address of the gateway for the API server; required.
	Endpoint Endpoint
	// CABundle holds the authorities (PEM) that verify the gateway's certificate; at least one.
	CABundle []byte
	// Namespace is the gateway's own, which is excluded; required.
	Namespace string
	// Exclusions in addition to Namespace and its service accounts.
	Exclusions
	// Pinning is which objects other than pods are changed.
	Pinning
	// Mirrors is the requirement of mirrors; unset, there are none.
	Mirrors Mirrors
	// Labelled are the policies that apply only to namespaces with a label. Resources without other
	// policies have no webhook elsewhere. Unset, there are none.
	Labelled Labelled
	// Documents are the resources of policies, exceptions and mirrors for the policy endpoint.
	// Resources that the API server does not serve are harmless. Empty means no such webhook.
	Documents []schema.GroupResource
	// BreakGlass excludes namespaces that carry the label BreakGlass. Unset, the label has no
	// effect.
	BreakGlass bool
	// Shadow evaluates requests without enforcement, regardless of failure settings. Enforcement is
	// limited to namespaces that carry ModeLabel with the value ModeEnforce; see "Shadow" in the
	// package's documentation. Unset, the label has no effect.
	Shadow bool
	// Owner is a cluster-scoped object of the release. Its deletion also deletes the
	// configurations. The zero value means that they must be deleted by hand.
	Owner metav1.OwnerReference
}

// Exclusions are requests without a webhook.
type Exclusions struct {
	// Accounts are user names of the gateway. Their Leases and Events are excluded.
	Accounts []string
	// ExcludedNamespaces are excluded as a whole.
	ExcludedNamespaces []string
}

// Pinning selects the objects, other than pods, in which images are pinned.
type Pinning struct {
	// MutateControllers are the kinds of pod controllers that are pinned like Pods, as in
	// Deployment.
	MutateControllers []string
	// OnlyPods disables changes of images in objects other than pods, whatever rules name.
	OnlyPods bool
}

// Labelled identifies the policies that apply only to namespaces with a label of that value.
type Labelled struct {
	Label, Value string
	Is           func(*policy.Policy) bool
}

// Endpoint is a Service or a URL.
type Endpoint struct {
	// Namespace, Service and Port of the gateway; the port defaults to 443.
	Namespace, Service string
	Port               int32
	// URL, as in https://host:port, instead of the Service.
	URL string
}

const defaultPort = 443

func (e Endpoint) check() error {
	if e.URL != "" {
		u, err := url.Parse(e.URL)
		switch {
		case e.Service != "" || e.Namespace != "" || e.Port != 0:
			return errors.New("endpoint: give a Service or a URL, not both")
		case err != nil:
			return fmt.Errorf("endpoint: %w", err)
		case u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return fmt.Errorf("endpoint: %q: must be https://host[:port][/path]", u.Redacted())
		}
		return nil
	}
	if e.Service == "" || e.Namespace == "" {
		return errors.New("endpoint: a Service with its namespace, or a URL, is required")
	}
	if e.Port < 0 || e.Port > 65535 {
		return fmt.Errorf("endpoint: %d is not a valid port", e.Port)
	}
	return nil
}

// Client returns the client configuration of a webhook at a path of the endpoint.
func (in Input) Client(path string) admission.WebhookClientConfig {
	c := admission.WebhookClientConfig{CABundle: slices.Clone(in.CABundle)}
	if in.Endpoint.URL != "" {
		address := strings.TrimSuffix(in.Endpoint.URL, "/") + path
		c.URL = &address
		return c
	}
	port := in.Endpoint.Port
	if port == 0 {
		port = defaultPort
	}
	c.Service = &admission.ServiceReference{Namespace: in.Endpoint.Namespace, Name: in.Endpoint.Service, Path: &path, Port: &port}
	return c
}

// check rejects input that would block a cluster or verify nothing.
func (in Input) check() error {
	var errs []error
	if err := checkBundle(in.CABundle); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, in.Endpoint.check())
	if len(in.Resources) == 0 {
		errs = append(errs, errors.New("the resources of the API server are not known yet"))
	}
	for _, namespace := range append([]string{in.Namespace}, in.ExcludedNamespaces...) {
		if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
			errs = append(errs, fmt.Errorf("%q is not a valid name of a namespace: %s", namespace, strings.Join(reasons, "; ")))
		}
	}
	for _, kind := range in.MutateControllers {
		if !slices.Contains(controllers(), kind) {
			errs = append(errs, fmt.Errorf("mutateControllers: %q is not a kind of pod controller: use %s", kind, strings.Join(controllers(), ", ")))
		}
	}
	if in.Mirrors < NoMirrors || in.Mirrors > MirrorsClosed {
		errs = append(errs, fmt.Errorf("mirrors: %d is not a valid value", in.Mirrors))
	}
	if l := in.Labelled; l.Is != nil && (len(validation.IsQualifiedName(l.Label)) > 0 || len(validation.IsValidLabelValue(l.Value)) > 0) {
		errs = append(errs, fmt.Errorf("labelled: %s=%q is not a valid label", l.Label, l.Value))
	}
	for _, d := range in.Documents {
		if d.Group == "" || d.Resource == "" || strings.ContainsAny(d.Group+d.Resource, "*/") {
			errs = append(errs, fmt.Errorf("documents: %q is not a custom resource", d))
		}
	}
	if o := in.Owner; o != (metav1.OwnerReference{}) && (o.APIVersion == "" || o.Kind == "" || o.Name == "" || o.UID == "") {
		errs = append(errs, errors.New("the owner has no apiVersion, kind, name or UID"))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("webhook configurations: %w", err)
	}
	return nil
}

// checkBundle rejects an invalid bundle. With an empty one the API server would use its system's
// authorities.
func checkBundle(bundle []byte) error {
	certificates := 0
	for rest := bundle; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("the CA bundle contains a %s, which must not be published", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("the CA bundle: %w", err)
		}
		certificates++
	}
	if certificates == 0 {
		return errors.New("the CA bundle contains no certificate: the API server could not authenticate the gateway")
	}
	return nil
}
