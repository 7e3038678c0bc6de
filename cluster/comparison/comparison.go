// Package comparison reads what two engines of a cluster decided: reports, events, and the metadata
// that a comparison of them needs.
package comparison

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/report/compare"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
)

// pageSize is the number of objects in one response.
const pageSize = 500

// Read reads both engines' reports, the other's events, the times of policy changes, and the
// owners of pods. It returns the resources that it may not read. The error is reports.ErrNone if
// everything else was read.
func Read(ctx context.Context, client *cluster.Client, into *compare.Collector) (notRead []string, err error) {
	served := 0
	for _, api := range policyreport.APIs() {
		is, err := readAllReports(ctx, client, api, into)
		switch {
		case errors.Is(err, publish.ErrRejected):
			notRead = append(notRead, fmt.Sprintf("reports of %s: %v", api, err))
		case err != nil:
			return nil, err
		case is:
			served++
		}
	}
	noReports := served == 0 && len(notRead) == 0
	if refused, err := readEvents(ctx, client, into); err != nil {
		return nil, err
	} else if refused != nil {
		notRead = append(notRead, fmt.Sprintf("events: %v", refused))
	}
	refused, err := readMetadata(ctx, client, into)
	if err == nil && noReports {
		err = reports.ErrNone
	}
	return append(notRead, refused...), err
}

// readAllReports reads the reports of one API, of all reporters; false: it is not served. A
// report that cannot be read is counted, and the others are read.
func readAllReports(ctx context.Context, client *cluster.Client, api policyreport.API, into *compare.Collector) (served bool, err error) {
	store, err := reports.NewStore(client.Dynamic, api)
	if err != nil {
		return false, err
	}
	for _, namespace := range []string{reports.Everywhere, ""} {
		err := store.Each(ctx, namespace, "", func(text []byte) error {
			_ = into.Object(text) // it is counted
			return nil
		})
		if errors.Is(err, publish.ErrNotServed) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// readEvents reads the events that contain verdicts.
func readEvents(ctx context.Context, client *cluster.Client, into *compare.Collector) (refused, err error) {
	for _, reason := range compare.Reasons() {
		options := metav1.ListOptions{FieldSelector: "reason=" + reason, Limit: pageSize}
		for {
			page, err := client.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).List(ctx, options)
			if apierrors.IsForbidden(err) {
				return err, nil
			}
			if err != nil {
				return nil, fmt.Errorf("list the events of reason %s: %w", reason, err)
			}
			for i := range page.Items {
				text, err := json.Marshal(page.Items[i].Object)
				if err != nil {
					return nil, err
				}
				_ = into.Object(text) // it is counted
			}
			options.Continue = page.GetContinue()
			if options.Continue == "" {
				break
			}
		}
	}
	return nil, nil //nolint:nilnil // the first is the refusal
}

// comparedKinds are the policies, for the time of their last change, and the intermediate owners
// between a pod and its workload.
func comparedKinds() []schema.GroupVersionResource {
	kinds := []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"}, {Group: "apps", Version: "v1", Resource: "replicasets"}, {Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}, {Group: "kyverno.io", Version: "v1", Resource: "policies"},
		{Group: "policy.sigstore.dev", Version: "v1beta1", Resource: "clusterimagepolicies"},
	}
	for _, resource := range []string{"imagevalidatingpolicies", "namespacedimagevalidatingpolicies", "validatingpolicies", "namespacedvalidatingpolicies"} {
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
			kinds = append(kinds, schema.GroupVersionResource{Group: "policies.kyverno.io", Version: version, Resource: resource})
		}
	}
	return kinds
}

// readMetadata reads the metadata of those kinds. A kind that the cluster does not serve
// has no objects.
func readMetadata(ctx context.Context, client *cluster.Client, into *compare.Collector) (notRead []string, err error) {
	for _, kind := range comparedKinds() {
		options := metav1.ListOptions{Limit: pageSize}
		for {
			page, err := client.Metadata.Resource(kind).List(ctx, options)
			if apierrors.IsNotFound(err) {
				break
			}
			if apierrors.IsForbidden(err) {
				notRead = append(notRead, fmt.Sprintf("%s: %v", kind.GroupResource(), err))
				break
			}
			if err != nil {
				return nil, fmt.Errorf("list the metadata of %s: %w", kind.GroupResource(), err)
			}
			for i := range page.Items {
				if err := addMetadata(&page.Items[i], kind, client, into); err != nil {
					return nil, err
				}
			}
			options.Continue = page.GetContinue()
			if options.Continue == "" {
				break
			}
		}
	}
	return notRead, nil
}

// addMetadata adds metadata under the kind of the list: items of a metadata list carry only the
// kind PartialObjectMetadata.
func addMetadata(one *metav1.PartialObjectMetadata, of schema.GroupVersionResource, client *cluster.Client, into *compare.Collector) error {
	kind, err := client.Mapper.KindFor(of)
	if err != nil {
		return fmt.Errorf("find the kind of %s: %w", of.GroupResource(), err)
	}
	one.SetGroupVersionKind(kind)
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	_ = into.Object(text) // it is counted
	return nil
}
