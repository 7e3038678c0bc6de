package reconcile

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestRival: what another release owns is left alone, and nothing else is.
func TestRival(t *testing.T) {
	owner := func(kind, name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind, Name: name, UID: types.UID(uid)}
	}
	ours := owner("ClusterRole", "quaymaster", "1")
	for _, row := range []struct {
		reason string
		theirs []metav1.OwnerReference
		ours   metav1.OwnerReference
		left   bool
	}{
		{"another release's", []metav1.OwnerReference{owner("ClusterRole", "second", "2")}, ours, true},
		{"our own", []metav1.OwnerReference{ours}, ours, false},
		{"our own, with a new ClusterRole", []metav1.OwnerReference{owner("ClusterRole", "quaymaster", "0")}, ours, false},
		{"ours, with an added owner", []metav1.OwnerReference{owner("ClusterRole", "second", "2"), ours}, ours, false},
		{"an owner of another kind", []metav1.OwnerReference{owner("Namespace", "second", "2")}, ours, false},
		{"nobody's", nil, ours, false},
		{"another release's, and nothing owns this gateway", []metav1.OwnerReference{owner("ClusterRole", "second", "2")}, metav1.OwnerReference{}, true},
		{"an owner of another kind, and nothing owns this gateway", []metav1.OwnerReference{owner("Namespace", "second", "2")}, metav1.OwnerReference{}, false},
		{"without an owner, and nothing owns this gateway", nil, metav1.OwnerReference{}, false},
	} {
		in := input(t)
		b := newBench(t, in)
		b.round(t)
		b.mutating.object.OwnerReferences, b.validating.object.OwnerReferences = row.theirs, row.theirs
		b.mutating.object.Labels, b.validating.object.Labels = nil, nil // there is something to write
		b.source.input.Owner = row.ours
		b.wrote = nil
		err := b.reconciler.Reconcile(t.Context())
		var rival *RivalError
		if errors.As(err, &rival) != row.left || !row.left && err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if row.left != (len(b.wrote) == 0) {
			t.Errorf("%s: written: %v", row.reason, b.wrote)
		}
		if row.left && (rival.Name != "second" || !strings.Contains(err.Error(), "a cluster has one gateway")) {
			t.Errorf("%s: %v does not name the owner", row.reason, err)
		}
	}
}
