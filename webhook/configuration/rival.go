package configuration

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RivalError says that a configuration is another release's: two gateways would take it from
// one another at every round, and each would be asked about half of what it should.
type RivalError struct {
	// Kind and Name of the object that owns it.
	Kind, Name string
}

func (e *RivalError) Error() string {
	return fmt.Sprintf("it is another gateway's, of the %s %s, and is left to that one; a cluster has one gateway: uninstall either release", e.Kind, e.Name)
}

// rival refuses a configuration that an owner of our owner's kind has, and ours has not. When
// that one is uninstalled, its owner takes the configuration along, and ours is made. A
// gateway that nothing owns, outside of the cluster, leaves alone what any release owns.
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

// releaseKind is the kind of what owns the configurations of a release.
const releaseKind = "ClusterRole"

// owned refuses what another owner of the kind of ours has, and ours has not.
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
