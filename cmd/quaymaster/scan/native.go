package scan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// ofCluster is the prefix of the source of a policy from a cluster.
	ofCluster = "the cluster: "
	// nativePage is the number of documents in one response, as in kubectl; maxNative bounds those of a
	// kind: an API server evaluates each for every request.
	nativePage, maxNative = 500, 10_000
)

// addNative adds the API server's own policies: those of the files of --policy, which the gateway does
// not read, or without such files those of the cluster. One that does not compile is a warning, since the
// API server applies it in any case. It is for inputs with a Reader.
func (f *scanFlags) addNative(ctx context.Context, t command.Terminal, from *setup.Inputs) error {
	client, err := f.client(t)
	if err != nil {
		return err
	}
	var documents []workload.Object
	if len(f.setup.Policies) > 0 {
		documents, err = setup.PolicyObjects(f.setup.Policies)
		if err != nil {
			return err
		}
		documents = slices.DeleteFunc(documents, func(o workload.Object) bool {
			return !native.IsPolicy(o.APIVersion(), o.Kind()) && !native.IsBinding(o.APIVersion(), o.Kind())
		})
	} else {
		documents = listNative(ctx, t, client)
	}
	joined, warnings, err := native.Join(documents)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		t.Warn(warning)
	}
	policies := slices.Clone(from.Set.Policies())
	for _, o := range joined {
		made, err := compileNative(from.Reader.Compilers().Native, o)
		switch {
		case err != nil && len(f.setup.Policies) > 0:
			return err
		case err != nil:
			t.Warn(err.Error() + "; it is left out")
			continue
		}
		setup.WarnNative(t, made)
		policies = append(policies, made)
	}
	from.Set, err = set.Join(policies, from.Set.Exceptions(), from.Set.Overrides())
	return err
}

func compileNative(by *native.Compiler, o workload.Object) (*policy.Policy, error) {
	text, err := json.Marshal(o.Content())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Source(), err)
	}
	return by.Compile(text, o.Source())
}

// listNative returns the policies and bindings of a cluster, in the newest version that it serves. What
// may not be listed is a warning.
func listNative(ctx context.Context, t command.Terminal, client *cluster.Client) (all []workload.Object) {
	for _, resource := range []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
			found, err := listResource(ctx, client, schema.GroupVersionResource{Group: native.Group, Version: version, Resource: resource})
			if apierrors.IsNotFound(err) {
				continue // not served in this version
			}
			if err != nil {
				t.Warn(fmt.Sprintf("%s of the cluster could not be listed, and are left out: %v", resource, err))
			}
			all = append(all, found...)
			break
		}
	}
	return all
}

func listResource(ctx context.Context, client *cluster.Client, resource schema.GroupVersionResource) ([]workload.Object, error) {
	var list []workload.Object
	options := meta.ListOptions{Limit: nativePage}
	for {
		page, err := client.Dynamic.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			object, err := fromCluster(&page.Items[i])
			if err != nil {
				return nil, err
			}
			list = append(list, object)
		}
		if len(list) > maxNative {
			return nil, fmt.Errorf("there are more than %d", maxNative)
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return list, nil
		}
	}
}

// fromCluster returns an object with its source.
func fromCluster(o *unstructured.Unstructured) (workload.Object, error) {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return workload.Object{}, err
	}
	objects, err := workload.Read(bytes.NewReader(text), ofCluster+o.GetKind()+"/"+o.GetName())
	if err != nil || len(objects) != 1 {
		return workload.Object{}, fmt.Errorf("%s %s: %d objects: %w", o.GetKind(), o.GetName(), len(objects), err)
	}
	return objects[0], nil
}
