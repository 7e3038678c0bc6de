package reports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
)

// Store stores the reports of one API in the API server. It implements publish.Store. Create one
// with NewStore.
type Store struct {
	client dynamic.Interface
	api    policyreport.API
}

// NewStore creates a Store. Its rate is that of the client, which should not be shared with
// admission requests.
func NewStore(client dynamic.Interface, api policyreport.API) (*Store, error) {
	if client == nil || !slices.Contains(policyreport.APIs(), api) {
		return nil, fmt.Errorf("store of reports: the client is required, and one of the APIs: %q", api)
	}
	return &Store{client: client, api: api}, nil
}

// Get returns a report as JSON.
func (s *Store) Get(ctx context.Context, namespace, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := s.resource(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, s.told("read", namespace, name, err)
	}
	text, err := json.Marshal(got.Object)
	if err == nil && len(text) > maxReport {
		err = fmt.Errorf("it has %d bytes, and %d are the bound", len(text), maxReport)
	}
	if err != nil {
		return nil, s.told("read", namespace, name, err)
	}
	return text, nil
}

// Put creates a report, or updates one with a resourceVersion, and returns the stored one.
func (s *Store) Put(ctx context.Context, text []byte) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("write a report: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	to := s.resource(object.GetNamespace())
	var written *unstructured.Unstructured
	var err error
	if object.GetResourceVersion() == "" {
		written, err = to.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		written, err = to.Update(ctx, object, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return nil, s.told("write", object.GetNamespace(), object.GetName(), err)
	}
	return json.Marshal(written.Object)
}

// Delete deletes a report if it still has that version.
func (s *Store) Delete(ctx context.Context, namespace, name, version string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.resource(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	if err != nil {
		return s.told("delete", namespace, name, err)
	}
	return nil
}

// Each calls do with each report with the labels, as JSON, in pages, until it returns an error.
// An empty namespace means cluster reports; star means all others.
func (s *Store) Each(ctx context.Context, namespace, labels string, do func(text []byte) error) error {
	options := metav1.ListOptions{LabelSelector: labels, Limit: pageSize}
	for {
		page, err := s.page(ctx, namespace, options)
		if err != nil {
			return s.told("list", namespace, "*", err)
		}
		for i := range page.Items {
			text, err := json.Marshal(page.Items[i].Object)
			if err != nil {
				return err
			}
			if err := do(text); err != nil {
				return err
			}
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return nil
		}
	}
}

// Everywhere selects all namespaces in Each.
const Everywhere = "*"

func (s *Store) page(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if namespace == Everywhere {
		return s.client.Resource(s.api.Resource(namespace)).List(ctx, options)
	}
	return s.resource(namespace).List(ctx, options)
}

func (s *Store) resource(namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.client.Resource(s.api.Resource(""))
	}
	return s.client.Resource(s.api.Resource(namespace)).Namespace(namespace)
}

// fieldManager is the field manager of writes.
const fieldManager = "quaymaster"

// told converts an error of the API server to one of package publish.
func (s *Store) told(did, namespace, name string, err error) error {
	what := s.api.Kind(namespace) + " " + strings.TrimPrefix(namespace+"/"+name, "/")
	var kind error
	switch {
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		kind = publish.ErrNotServed
	case apierrors.IsNotFound(err), apierrors.IsGone(err), apierrors.HasStatusCause(err, core.NamespaceTerminatingCause):
		kind = publish.ErrNotFound
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		kind = publish.ErrConflict
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s %s: the gateway's service account wants get, list, create, update and delete on %s of %s: %w",
			did, what, s.api.Resource(namespace).Resource, s.api, errors.Join(publish.ErrRejected, err))
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		kind = publish.ErrRejected
	default:
		return fmt.Errorf("%s %s: %w", did, what, err)
	}
	return fmt.Errorf("%s %s: %w", did, what, errors.Join(kind, err))
}
