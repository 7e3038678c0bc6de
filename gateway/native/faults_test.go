package native

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
)

// TestUnverified: policies whose objects cannot be listed need their webhooks: at once in a new term, since the objects
// may have gone meanwhile, and after verifyTime in the same one.
func TestUnverified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		by := c.start(record.Auto)
		c.rounds(by)
		refused := true
		c.dynamic.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return refused, nil, apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: string(validatingPolicies)}, "", errors.New("no"))
		})
		turn := func(by *controller, wait time.Duration) record.State {
			turned, end := make(chan struct{}), c.until(wait)
			go func() { by.run(end, nil); close(turned) }()
			<-turned
			return c.state(noHostNetworkID)
		}
		if got := turn(by, verifyTime-2*pendingPause); !got.Native {
			t.Errorf("a short fault: %+v", got)
		}
		const why = "not known whether the native policy is in force: list validatingadmissionpolicies"
		if got := turn(by, 4*pendingPause); got.Native || !strings.Contains(got.Reason, why) {
			t.Errorf("a long fault: %+v", got)
		}
		refused = false
		if got := turn(by, 10*pendingPause); !got.Native {
			t.Errorf("the fault ended: %+v", got)
		}
		refused = true
		if got := turn(c.start(record.Auto), pendingPause/2); got.Native {
			t.Errorf("a fault in a new term: %+v", got)
		}
		refused = false
		c.rounds(by)
		unloaded := c.start(record.Auto)
		unloaded.Policies = notLoaded{c}
		if got := turn(unloaded, pendingPause/2); got.Native || !strings.HasSuffix(got.Reason, errNotLoaded.Error()) {
			t.Errorf("a new term without policies: %+v", got)
		}
	})
}

// TestLongReason: a reason that is cut in the record is not recorded again in each round: the webhooks could never be
// known to enforce a policy in knowledge of the latest record.
func TestLongReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		c.warns = strings.Repeat("é no such field", 40)
		by := c.start(record.Auto)
		c.rounds(by)
		c.log = nil
		for range 3 {
			c.rounds(by)
		}
		if len(c.log) > 0 {
			t.Errorf("nothing has changed, and the writes are %q", c.log)
		}
	})
}

// TestVersionWithoutForm: while a version that no API server can evaluate is held back, the objects of the one in force
// stay until the webhooks are known to enforce that one.
func TestVersionWithoutForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			id    = "ClusterPolicy/one"
			rules = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "one", "uid": "u1"}, "spec": {"rules": [
  {"name": "r", "match": {"resources": {"kinds": ["Pod"]}}, `
			native = rules + `"validate": {"failureAction": "Enforce", "cel": {"expressions": [{"expression": "!has(object.spec.hostNetwork)"}]}}}]}}`
			images = rules + `"verifyImages": [{"imageReferences": ["*"], "failureAction": "Enforce", "attestors": [{"entries": [{"keyless": {
  "issuer": "https://issuer.example", "subject": "s", "rekor": {"url": "https://rekor.sigstore.dev"}}}]}]}]}]}}`
		)
		c := newCluster(t)
		c.put(native)
		by := c.start(record.Auto)
		c.rounds(by)
		before := c.names()
		if !c.state(id).Native || len(before) == 0 {
			t.Fatalf("%+v, %q", c.state(id), before)
		}
		effective := c.documents[0].entry.Policy
		c.put(images)
		c.earlier = effective
		c.rounds(by)
		if got := c.state(id); got.Native || got.Hash != effective.Hash || len(c.names()) != len(before) {
			t.Errorf("the webhooks do not have the version in force: %+v, %q", got, c.names())
		}
		c.coverWith(map[string]string{id: c.documents[0].entry.Policy.Hash})
		c.rounds(by)
		if len(c.names()) != len(before) {
			t.Errorf("the webhooks have the other version: %q", c.names())
		}
		c.coverWith(map[string]string{id: effective.Hash})
		c.rounds(by)
		if len(c.names()) > 0 {
			t.Errorf("the webhooks have the version in force: %q", c.names())
		}
	})
}

// TestMalformedCoverage: no policy is then known to have a webhook, and everything else goes on.
func TestMalformedCoverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		if err := c.typed.Tracker().Add(&core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: own, Name: record.Covered}, Data: map[string]string{record.Key: "{"}}); err != nil {
			t.Fatal(err)
		}
		by := c.start(record.Auto)
		c.rounds(by)
		if got := c.state(noHostNetworkID); !got.Native {
			t.Errorf("%+v", got)
		}
		c.exceptions = []*policy.Exception{{
			Group: "policies.kyverno.io", Namespace: "n", Name: "e", Hash: "h",
			Rules: []policy.ExceptedRule{{Kind: "ValidatingPolicy", Policy: "no-host-network", Rules: []string{"*"}}},
		}}
		c.rounds(by)
		if got := c.state(noHostNetworkID); got.Native || len(c.names()) == 0 {
			t.Errorf("an exception: %+v, %q", got, c.names())
		}
	})
}

// TestRemovedAsRead: an object that was written again since it was read is not deleted.
func TestRemovedAsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		by := c.start(record.Auto)
		c.rounds(by)
		have := c.stored(validatingPolicies, noHostNetworkName)
		have.SetResourceVersion("7")
		if err := by.api.remove(t.Context(), stored{object{resource: validatingPolicies, version: "v1", content: have}}); err != nil {
			t.Fatal(err)
		}
		deleted, ok := c.dynamic.Actions()[len(c.dynamic.Actions())-1].(clienttesting.DeleteActionImpl)
		if !ok || deleted.DeleteOptions.Preconditions == nil || *deleted.DeleteOptions.Preconditions.UID != have.GetUID() ||
			*deleted.DeleteOptions.Preconditions.ResourceVersion != "7" {
			t.Errorf("%+v", deleted)
		}
	})
}

// TestChangeWhileProbing: the probe of a policy that came meanwhile does not depend on the probe before it, which is
// deleted: an API server that had both could show the earlier mark alone.
func TestChangeWhileProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		c.seen = errNotSeen
		by := c.start(record.Auto)
		probes := func() (names, keys []string) {
			c.rounds(by)
			for _, name := range c.names() {
				_, mark, is := strings.Cut(name, string(mutatingPolicies)+" "+probePrefix)
				if !is {
					continue
				}
				mutations, _, _ := unstructured.NestedSlice(c.stored(mutatingPolicies, probePrefix+mark).Object, "spec", "mutations")
				names = append(names, mark)
				keys = append(keys, fmt.Sprint(mutations))
			}
			return names, keys
		}
		first, _ := probes()
		c.put(strings.ReplaceAll(noHostNetwork, "no-host-network", "another"))
		second, keys := probes()
		if len(first) != 1 || len(second) != 1 || first[0] == second[0] || !strings.Contains(keys[0], ProbeLabel+"-"+second[0]) {
			t.Errorf("the probes are of %q, then of %q with %q", first, second, keys)
		}
		c.seen = nil
		c.rounds(by)
		if !c.state(noHostNetworkID).Native || !c.state("ValidatingPolicy/another").Native {
			t.Errorf("%+v, %+v", c.state(noHostNetworkID), c.state("ValidatingPolicy/another"))
		}
	})
}
