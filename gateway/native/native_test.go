package native

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

const noHostNetwork = `{"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy",
  "metadata": {"name": "no-host-network", "uid": "u1", "generation": 1, "labels": {"app.kubernetes.io/instance": "shop"}}, "spec": {
  "autogen": {"podControllers": {"controllers": []}},
  "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]},
  "validations": [{"expression": "!has(object.spec.hostNetwork)", "message": "no"}]}}`

const (
	noHostNetworkID   = "ValidatingPolicy/no-host-network"
	noHostNetworkName = "no-host-network.validatingpolicy.quaymaster.dev"
)

// TestChangeOver: the objects are written before the probe, policies before bindings, the probe after all of them, and
// the record of the change-over comes last. The way back is recorded first, and objects go once the webhooks are known
// to enforce the policy, in knowledge of that record.
func TestChangeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		by := c.start(record.Auto)
		c.rounds(by)
		if got := c.state(noHostNetworkID); !got.Native || got.Hash != c.documents[0].entry.Policy.Hash {
			t.Fatalf("the state is %+v", got)
		}
		var order []string
		for _, line := range c.log {
			switch {
			case strings.Contains(line, probePrefix):
				line, _, _ = strings.Cut(line, probePrefix)
				line += "PROBE"
			case strings.Contains(line, noHostNetworkName):
				line = strings.TrimSuffix(line, noHostNetworkName)
			}
			order = append(order, line)
		}
		want := []string{
			"record ValidatingPolicy/no-host-network native=false",
			"create validatingadmissionpolicies ", "create validatingadmissionpolicybindings ",
			"create mutatingadmissionpolicies PROBE", "create mutatingadmissionpolicybindings PROBE",
			"create validatingadmissionpolicies PROBE", "create validatingadmissionpolicybindings PROBE",
			"probe of 2", "record ValidatingPolicy/no-host-network native=false", // another reason
			"probe of 2",
		}
		if len(order) < len(want) || !slices.Equal(order[:len(want)], want) {
			t.Errorf("the writes are\n\t%s\nwant\n\t%s", strings.Join(order, "\n\t"), strings.Join(want, "\n\t"))
		}
		if last := order[len(order)-1]; last != "record ValidatingPolicy/no-host-network native=true" {
			t.Errorf("the last write is %q", last)
		}
		if got := c.names(); !slices.Equal(got, []string{"validatingadmissionpolicies " + noHostNetworkName, "validatingadmissionpolicybindings " + noHostNetworkName}) {
			t.Errorf("there are %q", got)
		}

		c.exceptions = []*policy.Exception{{Group: "policies.kyverno.io", Namespace: "n", Name: "e", Hash: "h", Rules: []policy.ExceptedRule{{Kind: "ValidatingPolicy", Policy: "no-host-network", Rules: []string{"*"}}}}}
		for _, step := range []struct {
			cover, known, left bool
			reason             string
		}{
			{false, false, true, "the webhooks are not known"},
			{true, false, true, "they are, from before the record"},
			{true, true, false, "they are, in knowledge of the record"},
		} {
			if step.cover {
				c.cover(step.known)
			}
			c.rounds(by)
			if got := c.state(noHostNetworkID); got.Native || got.Reason != "the PolicyException n/e is about it" {
				t.Errorf("%s: %+v", step.reason, got)
			}
			if got := len(c.names()) > 0; got != step.left {
				t.Errorf("%s: the objects are left: %t", step.reason, got)
			}
		}
	})
}

// TestNotNative: whatever is missing keeps the policy in the webhook, with the reason.
func TestNotNative(t *testing.T) {
	const refused = "validatingadmissionpolicybindings.admissionregistration.k8s.io is forbidden"
	for _, row := range []struct {
		reason string
		change func(*cluster)
		want   string
	}{
		{"nothing is missing", func(*cluster) {}, ""},
		{"no type check", func(c *cluster) { c.unchecked = true }, waitsForCheck},
		{"a warning of the type check", func(c *cluster) { c.warns = "no such field" }, "the type check of the API server warns about spec.validations[0].expression: no such field"},
		{"an API server that does not show the mark", func(c *cluster) { c.seen = errNotSeen }, waitsForProbe},
		{"a verb that RBAC lacks", func(c *cluster) {
			c.dynamic.PrependReactor("create", string(validatingBindings), func(a clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: string(validatingBindings)}, "", errors.New("no"))
			})
		}, refused},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.put(noHostNetwork)
				row.change(c)
				c.rounds(c.start(record.Auto))
				if got := c.state(noHostNetworkID); got.Native != (row.want == "") || !strings.Contains(got.Reason, row.want) {
					t.Errorf("%+v, want %q", got, row.want)
				}
			})
		})
	}
}

// TestTypeCheckLater: a warning that ends, as by the definition of a kind, makes the policy native.
func TestTypeCheckLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		c.warns = "no such field"
		by := c.start(record.Auto)
		c.rounds(by)
		c.warns = ""
		checked := c.stored(validatingPolicies, noHostNetworkName).DeepCopy()
		c.typeCheck(checked)
		if err := c.dynamic.Tracker().Update(validatingPolicies.in("v1"), checked, ""); err != nil {
			t.Fatal(err)
		}
		c.log = nil
		c.rounds(by)
		if got := c.state(noHostNetworkID); !got.Native {
			t.Errorf("%+v", got)
		}
		if slices.ContainsFunc(c.log, func(line string) bool { return strings.HasSuffix(line, noHostNetworkName) }) {
			t.Errorf("the objects are written again: %q", c.log)
		}
	})
}

// TestTakenName: an object of another owner is left as it is.
func TestTakenName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, labels := range []map[string]string{nil, {Label: ofPolicy}} {
			c := newCluster(t)
			c.put(noHostNetwork)
			foreign := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"validations": []any{}}}}
			foreign.SetAPIVersion(group + "/v1")
			foreign.SetKind(validatingPolicies.kind())
			foreign.SetName(noHostNetworkName)
			foreign.SetLabels(labels)
			foreign.SetAnnotations(map[string]string{policyAnnotation: "ValidatingPolicy/other"})
			if labels != nil {
				c.put(strings.ReplaceAll(noHostNetwork, "no-host-network", "other")) // it is not to be removed, either
				c.documents[1].entry.State = "broken"
			}
			if err := c.dynamic.Tracker().Add(foreign.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			c.rounds(c.start(record.Auto))
			if got := c.state(noHostNetworkID); got.Native || !strings.Contains(got.Reason, errTaken.Error()) {
				t.Errorf("%v: %+v", labels, got)
			}
			if got := c.stored(validatingPolicies, noHostNetworkName); got == nil || fmt.Sprint(got.Object["spec"]) != fmt.Sprint(foreign.Object["spec"]) {
				t.Errorf("%v: the other's object is now %v", labels, got)
			}
		}
	})
}

// TestDrift: an object that another client changed or deleted costs the state before it is restored.
func TestDrift(t *testing.T) {
	for reason, change := range map[string]func(*cluster, *unstructured.Unstructured) error{
		"another spec": func(c *cluster, o *unstructured.Unstructured) error {
			_ = unstructured.SetNestedField(o.Object, "Ignore", "spec", "failurePolicy")
			o.SetGeneration(o.GetGeneration() + 1)
			return c.dynamic.Tracker().Update(validatingPolicies.in("v1"), o, "")
		},
		"no owner": func(c *cluster, o *unstructured.Unstructured) error {
			o.SetOwnerReferences(nil)
			return c.dynamic.Tracker().Update(validatingPolicies.in("v1"), o, "")
		},
		"deleted": func(c *cluster, o *unstructured.Unstructured) error {
			return c.dynamic.Tracker().Delete(validatingPolicies.in("v1"), "", o.GetName())
		},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.put(noHostNetwork)
				by := c.start(record.Auto)
				c.rounds(by)
				wanted := c.stored(validatingPolicies, noHostNetworkName).DeepCopy()
				if err := change(c, wanted.DeepCopy()); err != nil {
					t.Fatal(err)
				}
				c.log = nil
				c.rounds(by)
				if len(c.log) == 0 || c.log[0] != "record "+noHostNetworkID+" native=false" {
					t.Errorf("the first write is not the record: %q", c.log)
				}
				got := c.stored(validatingPolicies, noHostNetworkName)
				if !c.state(noHostNetworkID).Native || got == nil || fmt.Sprint(got.Object["spec"]) != fmt.Sprint(wanted.Object["spec"]) || len(got.GetOwnerReferences()) != 1 {
					t.Errorf("it is not restored: %+v, %v", c.state(noHostNetworkID), got)
				}
			})
		})
	}
}

// TestRestart: a new leader leaves a native policy as it is, and notices a change that was made meanwhile.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		c.rounds(c.start(record.Auto))
		c.log = nil
		c.rounds(c.start(record.Auto))
		if len(c.log) > 0 {
			t.Errorf("a new leader writes %q", c.log)
		}
		c.put(strings.Replace(noHostNetwork, `"generation": 1`, `"generation": 2`, 1))
		c.rounds(c.start(record.Auto))
		if len(c.log) == 0 || c.log[0] != "record "+noHostNetworkID+" native=false" {
			t.Errorf("another version: the first write is not the record: %q", c.log)
		}
		if got := c.state(noHostNetworkID); !got.Native || got.Hash != c.documents[0].entry.Policy.Hash {
			t.Errorf("another version: %+v", got)
		}
		c.drop(noHostNetworkID)
		c.rounds(c.start(record.Auto))
		if got := c.names(); len(got) > 0 {
			t.Errorf("the policy is deleted, and there are %q", got)
		}
	})
}

// TestLostRecord: without its record, or with a malformed one, nothing is native until the probe.
func TestLostRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noHostNetwork)
		by := c.start(record.Auto)
		c.rounds(by)
		configMaps := c.typed.CoreV1().ConfigMaps(own)
		if err := c.typed.Tracker().Update(core.SchemeGroupVersion.WithResource("configmaps"), &core.ConfigMap{
			ObjectMeta: meta.ObjectMeta{Namespace: own, Name: record.Enforced}, Data: map[string]string{record.Key: "{"},
		}, own); err != nil {
			t.Fatal(err)
		}
		c.seen = errNotSeen
		c.rounds(c.start(record.Auto))
		if got := c.state(noHostNetworkID); got.Native {
			t.Errorf("a malformed record: %+v", got)
		}
		c.seen = nil
		if err := configMaps.Delete(t.Context(), record.Enforced, meta.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.rounds(by)
		if got := c.state(noHostNetworkID); !got.Native {
			t.Errorf("a deleted record: %+v", got)
		}
	})
}
