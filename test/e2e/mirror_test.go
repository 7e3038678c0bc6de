package e2e

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// mirrorOf is what a kubelet creates for a static pod of its node.
func mirrorOf(name, image string, node *core.Node) *core.Pod {
	p := pod(name, image)
	yes := true
	p.Annotations = map[string]string{core.MirrorPodAnnotationKey: "d41d8cd98f00b204e9800998ecf8427e", "kubernetes.io/config.source": "file"}
	p.OwnerReferences = []meta.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &yes}}
	p.Spec.NodeName = node.Name
	return p
}

// TestMirrorPod: the mirror pod of a static pod runs already, and is left alone; the
// annotation alone makes no client a node.
func TestMirrorPod(t *testing.T) {
	s := guard(t, "mirror", gateway.Configuration{})
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	node, err := s.client.CoreV1().Nodes().Create(t.Context(), &core.Node{ObjectMeta: meta.ObjectMeta{Name: "mirror-node"}}, meta.CreateOptions{})
	must(t, err)
	identity, err := s.plane.User("system:node:mirror-node", "system:nodes")
	must(t, err)
	kubelet := *s
	kubelet.client = clientset(t, identity)
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/static", "1.0")

	got, err := kubelet.create(t, mirrorOf("static", bare.Name, node))
	must(t, err)
	if images(got)[0] != bare.Name {
		t.Errorf("the mirror pod became %v", images(got))
	}
	told := false
	for _, line := range s.verdicts(t, "validate", "static") {
		told = told || line["mirrorPod"] == true && line["result"] == "deny"
	}
	if !told {
		t.Errorf("the log does not have the mirror pod and the denial of other clients: %v", s.verdicts(t, "validate", "static"))
	}

	_, err = s.create(t, mirrorOf("forged", bare.Name, node))
	denied(t, "the annotation, by an administrator", err, "unsigned")
	endpoint := s.caller(t, s.gateway)
	for _, row := range []struct {
		reason, user string
		groups       []string
		change       func(*core.Pod)
		allowed      bool
	}{
		{"the node itself", "system:node:mirror-node", []string{"system:nodes", "system:authenticated"}, func(*core.Pod) {}, true},
		{"another node", "system:node:other", []string{"system:nodes"}, func(*core.Pod) {}, false},
		{"the node's name without the group", "system:node:mirror-node", nil, func(*core.Pod) {}, false},
		{"the group alone", "ann", []string{"system:nodes"}, func(*core.Pod) {}, false},
		{"the node without the annotation", "system:node:mirror-node", []string{"system:nodes"}, func(p *core.Pod) { p.Annotations = nil }, false},
		{"a pod of no node", "system:node:mirror-node", []string{"system:nodes"}, func(p *core.Pod) { p.Spec.NodeName = "" }, false},
	} {
		p := mirrorOf("asked", bare.Name, node)
		row.change(p)
		for _, path := range []string{"/mutate", "/validate"} {
			said, err := endpoint.ask(t.Context(), path, s.reviewOf(p, row.user, row.groups...))
			if err != nil || said.Allowed != row.allowed || len(said.Patch) > 0 {
				t.Errorf("%s at %s: %+v, %v; want allowed: %t", row.reason, path, said, err, row.allowed)
			}
		}
	}
	// A node's pod without the annotation is verified like any other.
	if said, err := endpoint.ask(t.Context(), "/validate", s.reviewOf(pod("asked", signed.ByDigest()), "system:node:mirror-node", "system:nodes")); err != nil || !said.Allowed {
		t.Errorf("a signed image by a node: %+v, %v", said, err)
	}
}
