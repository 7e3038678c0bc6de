package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

const (
	// requestTimeout bounds one request.
	requestTimeout = 10 * time.Second
	// maxObjects bounds the objects of one resource: each is evaluated in every request that it matches.
	maxObjects = 2_000
	// reserved is the part of them for probes, and for objects that wait for their removal.
	reserved = 500
)

// stored is an object as the API server has it.
type stored struct{ object }

// policy is the ID of the policy that it is made from; empty for a probe.
func (s stored) policy() string {
	if s.content.GetLabels()[Label] != ofPolicy {
		return ""
	}
	return s.content.GetAnnotations()[policyAnnotation]
}

// api reads and writes the objects.
type api struct{ client dynamic.Interface }

// errTaken means that another client's object has the name.
var errTaken = errors.New("an object of that name is there that is not the gateway's")

// list returns all objects of the component.
func (a api) list(ctx context.Context, served versions) (map[key]stored, error) {
	found := map[key]stored{}
	for _, r := range []resource{validatingPolicies, validatingBindings, mutatingPolicies, mutatingBindings} {
		version := served.of(r)
		if version == "" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		list, err := a.client.Resource(r.in(version)).List(ctx, meta.ListOptions{LabelSelector: Label, Limit: maxObjects})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", r, err)
		}
		if list.GetContinue() != "" {
			return nil, fmt.Errorf("there are more than %d %s with the label %s", maxObjects, r, Label)
		}
		for i := range list.Items {
			one := stored{object{resource: r, version: version, content: &list.Items[i]}}
			found[one.key()] = one
		}
	}
	return found, nil
}

// of returns the version in which a resource is served; empty for none.
func (v versions) of(r resource) string {
	if r == validatingPolicies || r == validatingBindings {
		return v.validating
	}
	return v.mutating
}

// digest identifies the objects of a plan as they are stored; empty if one is missing, or is not as it was written but
// for its spec. Another spec has another generation: so the digest that was taken after a write stays the same until
// another client changes an object, or another object is wanted.
func digest(wanted []object, have map[key]stored) string {
	sum := sha256.New()
	for _, o := range wanted {
		is, ok := have[o.key()]
		if !ok || !sameMeta(o.content, is.content) {
			return ""
		}
		fmt.Fprintln(sum, o.key(), is.content.GetUID(), is.content.GetGeneration(), specOf(o.content))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// sameMeta compares the parts of the metadata that are written.
func sameMeta(wanted, have *unstructured.Unstructured) bool {
	within := func(part, whole map[string]string) bool {
		for name, value := range part {
			if whole[name] != value {
				return false
			}
		}
		return true
	}
	return within(wanted.GetLabels(), have.GetLabels()) && within(wanted.GetAnnotations(), have.GetAnnotations()) &&
		equality.Semantic.DeepEqual(wanted.GetOwnerReferences(), have.GetOwnerReferences()) && have.GetDeletionTimestamp() == nil
}

func specOf(content *unstructured.Unstructured) string {
	text, err := json.Marshal(content.Object["spec"])
	if err != nil {
		return "" // it was made from JSON
	}
	return string(text)
}

// write creates or replaces an object, and returns it as stored. An error is errTaken where the name is another's.
func (a api) write(ctx context.Context, wanted object) (stored, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	client := a.client.Resource(wanted.in(wanted.version))
	kept, err := client.Create(ctx, wanted.content, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		var have *unstructured.Unstructured
		have, err = client.Get(ctx, wanted.content.GetName(), meta.GetOptions{})
		if err == nil {
			if have.GetLabels()[Label] != wanted.content.GetLabels()[Label] ||
				have.GetAnnotations()[policyAnnotation] != wanted.content.GetAnnotations()[policyAnnotation] {
				return stored{}, errTaken
			}
			again := wanted.content.DeepCopy()
			again.SetResourceVersion(have.GetResourceVersion())
			kept, err = client.Update(ctx, again, meta.UpdateOptions{})
		}
	}
	if err != nil {
		return stored{}, fmt.Errorf("write %s %s: %w", wanted.kind(), wanted.content.GetName(), err)
	}
	return stored{object{resource: wanted.resource, version: wanted.version, content: kept}}, nil
}

// remove deletes an object, if it is still the one that was read.
func (a api) remove(ctx context.Context, s stored) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	uid, version := s.content.GetUID(), s.content.GetResourceVersion()
	err := a.client.Resource(s.in(s.version)).Delete(ctx, s.content.GetName(), meta.DeleteOptions{
		Preconditions: &meta.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the next round lists it, if it is there
	}
	if err != nil {
		return fmt.Errorf("delete %s %s: %w", s.kind(), s.content.GetName(), err)
	}
	return nil
}
