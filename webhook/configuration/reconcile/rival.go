package reconcile

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RivalError means that a configuration belongs to another release. Two gateways would overwrite
// each other at every round, and each would miss requests.
type RivalError struct {
	// Kind and Name of the object that owns it.
	Kind, Name string
}

func (e *RivalError) Error() string {
	return fmt.Sprintf("it belongs to another gateway (%s %s) and is not changed; a cluster has one gateway: uninstall either release", e.Kind, e.Name)
}

// rival returns an error for a configuration that belongs to another owner of the same kind. When
// that release is uninstalled, its owner takes the configuration along, and ours is created. A
// gateway without an owner, outside of the cluster, does not change the configuration of any
// release.
func rival(current, wanted metav1.ObjectMeta) error {
	if len(wanted.OwnerReferences) == 0 {
		return owned(current, metav1.OwnerReference{Kind: releaseKind})
	}
	for _, ours := range wanted.OwnerReferences {
		if err := owned(current, ours); err != nil {
			return err
		}
	}
	return nil
}

// releaseKind is the kind of the owner of a release's configurations.
const releaseKind = "ClusterRole"

// owned returns an error if another owner of the same kind owns the configuration.
func owned(current metav1.ObjectMeta, ours metav1.OwnerReference) error {
	var other *RivalError
	for _, o := range current.OwnerReferences {
		if o.Kind == ours.Kind && o.Name == ours.Name {
			return nil
		}
		if o.Kind == ours.Kind {
			other = &RivalError{Kind: o.Kind, Name: o.Name}
		}
	}
	if other != nil {
		return other
	}
	return nil
}
