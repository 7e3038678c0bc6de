package e2e

import (
	"strings"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestDebug: kubectl debug brings an image into a pod that runs already.
// TestAdmission asks the same through the API.
func TestDebug(t *testing.T) {
	s := guard(t, "debug", gateway.Configuration{})
	s.enforce(t, env.Policy{Name: "debug", Namespaces: []string{"debug"}})
	signed, err := s.env.Signed("shop/tools", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	_, err = s.create(t, pod("web", signed.Name))
	must(t, err)
	kubectl := s.kubectl(t)
	ephemeral := func() []string {
		got, err := s.client.CoreV1().Pods(s.namespace).Get(t.Context(), "web", meta.GetOptions{})
		must(t, err)
		var images []string
		for _, c := range got.Spec.EphemeralContainers {
			images = append(images, c.Image)
		}
		return images
	}

	said, err := kubectl("debug", "web", "--image="+bare.Name, "--container=shell", "--profile=general")
	if err == nil || !strings.Contains(said, "[unsigned]") || !strings.Contains(said, bare.Name) {
		t.Errorf("an unsigned image: %v, %s", err, said)
	}
	if images := ephemeral(); len(images) != 0 {
		t.Errorf("the pod got %v", images)
	}
	said, err = kubectl("debug", "web", "--image="+signed.Name, "--container=shell", "--profile=general")
	if err != nil {
		t.Errorf("a signed image: %v, %s", err, said)
	}
	if images := ephemeral(); len(images) != 1 || images[0] != env.Pinned(signed) {
		t.Errorf("the pod got %v, want %s", images, env.Pinned(signed))
	}

	// A copy of the pod with another image is a new pod.
	said, err = kubectl("debug", "web", "--copy-to=copy", "--set-image=c0="+bare.Name, "--profile=general")
	if err == nil || !strings.Contains(said, "[unsigned]") {
		t.Errorf("a copy with an unsigned image: %v, %s", err, said)
	}
	said, err = kubectl("debug", "web", "--copy-to=copy", "--set-image=c0="+signed.Name, "--profile=general")
	if err != nil {
		t.Errorf("a copy with a signed image: %v, %s", err, said)
	}
}
