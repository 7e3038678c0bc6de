package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/peers"
)

// TestColdStart stops a cluster as a power cut does and starts it with the data in etcd: the
// webhooks that fail closed, without a gateway behind them.
func TestColdStart(t *testing.T) {
	peers.Long(t)
	t.Parallel()
	c := coldCluster(t)
	c.stop(t)
	c.restart(t)
	t.Run("the cluster's own workloads are admitted", c.tryMends)
	t.Run("everything else is denied, and the error names the cause", func(t *testing.T) {
		c.trySays(t, "connect: connection refused") // as a node's proxy rules answer for a Service without endpoints
	})
	t.Run("the gateway serves by itself", func(t *testing.T) {
		c.returns(t, c.configuration, c.program(t))
		c.runs(t, c.namespace, "web", 1) // its controller retries a refused pod
	})
	t.Run("an API server that looks endpoints up itself", func(t *testing.T) {
		c.stop(t)
		c.restart(t, "--enable-aggregator-routing=true")
		c.trySays(t, `no endpoints available for service "quaymaster"`)
	})
	t.Run("again without DNS", c.tryWithoutNames)
	t.Run("again with an expired certificate", c.tryExpired)
	t.Run("again with a stale bundle of authorities", c.tryStaleBundle)
	t.Run("again with an expired external certificate", c.tryExpiredFiles)
	t.Run("what came in meanwhile is found", c.tryFound)
	t.Run("the page's commands", c.tryPage)
}

// tryMends: pods of the namespaces that are left out come, made by controllers; and a node
// goes on saying that it is there.
func (c *cold) tryMends(t *testing.T) {
	c.systemRuns(t)
	for _, namespace := range []string{"kube-system", storageNamespace} { // the gateway's has a Pod Security Standard
		if _, err := c.in(t, namespace).dryRun(t.Context(), pod("by-hand", c.bare.Name)); err != nil {
			t.Errorf("a pod in %s: %v", namespace, err)
		}
	}
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), "worker-1", meta.GetOptions{})
	must(t, err)
	node.Labels = map[string]string{"zone": "a"}
	_, err = c.client.CoreV1().Nodes().Update(t.Context(), node, meta.UpdateOptions{})
	must(t, err, c.plane.Namespace(t.Context(), "kube-node-lease"))
	_, err = c.client.CoordinationV1().Leases("kube-node-lease").Create(t.Context(), &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: "worker-1"}}, meta.CreateOptions{})
	must(t, err, c.plane.Namespace(t.Context(), "new"))
}

// trySays: the error of a pod's creation, and the events of a Deployment with too few pods,
// name the service that the API server could not reach, and the cause.
func (c *cold) trySays(t *testing.T, why string) {
	_, err := c.create(t, pod("refused", c.signed.Name))
	if err == nil {
		t.Fatal("the webhook was not called")
	}
	t.Logf("the error of a pod's creation:\n%v", err)
	service := fmt.Sprintf("%s.%s.svc", ownName, releaseNamespace)
	for _, part := range []string{"failed calling webhook", ".mutate.quaymaster.dev", service, why} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the refusal is %q, and does not contain %q", err, part)
		}
	}
	now := meta.DeleteOptions{GracePeriodSeconds: new(int64)}
	must(t, c.client.CoreV1().Pods(c.namespace).DeleteCollection(t.Context(), now, meta.ListOptions{}))
	until(t, awaitTimeout, func(ctx context.Context) error {
		list, err := c.client.EventsV1().Events(c.namespace).List(ctx, meta.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Regarding.Kind == "ReplicaSet" && event.Reason == "FailedCreate" && strings.Contains(event.Note, why) {
				return nil
			}
		}
		return fmt.Errorf("no event of %d reports that a ReplicaSet could make no pod: %w", len(list.Items), errNotYet)
	})
}
