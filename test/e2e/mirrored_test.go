package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// hub is the path below which targets here keep their copies.
const hub = "hub"

var registryMirrors = schema.GroupVersionResource{Group: "quaymaster.dev", Version: "v1alpha1", Resource: "registrymirrors"}

// mirrored is a scene in which two other registries mirror the first.
type mirrored struct {
	*scene
	near, far *env.Env
}

// mirror makes a scene with a gateway that has neither mirrors nor policies yet.
func mirror(t *testing.T, namespace string, c gateway.Configuration) *mirrored {
	t.Helper()
	m := &mirrored{scene: unguarded(t, namespace), near: openEnv(t, registrytest.Options{}), far: openEnv(t, registrytest.Options{})}
	m.endLead(t)
	c.PlainHTTP(m.near.Registry.Host(), m.far.Registry.Host())
	m.gateway = m.start(t, c)
	must(t, m.gateway.Ready(t.Context()))
	return m
}

// within returns the same in another namespace, which is made.
func (m *mirrored) within(t *testing.T, namespace string, labels ...string) *mirrored {
	t.Helper()
	return &mirrored{scene: m.in(t, namespace, labels...), near: m.near, far: m.far}
}

// entry is one of a mapping: from the scene's registry below a path (empty: all of
// it) to both others. More overrides fields.
func (m *mirrored) entry(below string, more map[string]any) map[string]any {
	source := m.env.Registry.Host()
	if below != "" {
		source += "/" + below
	}
	e := map[string]any{"sources": []any{source}, "targets": []any{m.at(m.near), m.at(m.far)}}
	maps.Copy(e, more)
	return e
}

// at is a registry as a target.
func (*mirrored) at(h *env.Env) map[string]any {
	return map[string]any{"location": h.Registry.Host() + "/" + hub}
}

// document writes a RegistryMirror.
func document(t *testing.T, name string, entries ...map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "quaymaster.dev/v1alpha1", "kind": "RegistryMirror",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"mirrors": entries},
	})
	must(t, err)
	return string(text)
}

// reflect makes a change to mirrors, and returns when the gateway took it: see
// effect.
func (s *scene) reflect(t *testing.T, change func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), awaitTimeout)
	defer cancel()
	before, _ := s.reflected()
	must(t, change(ctx))
	must(t, process.Eventually(ctx, func(context.Context) error {
		if now, err := s.reflected(); err != nil || now == before {
			return errors.Join(err, fmt.Errorf("the gateway still rests on the mirrors %s", before))
		}
		return nil
	}))
}

// reflected returns the gateway's last log line of its mirrors.
func (s *scene) reflected() (string, error) {
	lines, err := s.gateway.Lines()
	said := ""
	for _, line := range lines {
		if line["msg"] == "mirrors" {
			said = fmt.Sprint(line["documents"], " ", line["used"], " ", line["hash"])
		}
	}
	return said, err
}

// redirectBy applies RegistryMirrors until the test ends and returns when the
// gateway took them. They must change something.
func (s *scene) redirectBy(t *testing.T, text string) {
	t.Helper()
	s.reflect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
	objects, err := controlplane.ParseManifests([]byte(text))
	must(t, err)
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	t.Cleanup(func() {
		for _, object := range objects {
			_ = client.Resource(registryMirrors).Delete(context.WithoutCancel(t.Context()), object.GetName(), meta.DeleteOptions{})
		}
	})
}

// copied signs an image and copies it, but not its signature, to registries.
func (m *mirrored) copied(t *testing.T, repository, tag string, to ...*env.Env) gatetest.Image {
	t.Helper()
	image, err := m.env.Signed(repository, tag)
	must(t, err)
	m.copyTo(t, image, repository, tag, to...)
	return image
}

// copyTo copies an image below the hub of registries.
func (m *mirrored) copyTo(t *testing.T, image gatetest.Image, repository, tag string, to ...*env.Env) {
	t.Helper()
	for _, h := range to {
		_, err := m.env.CopyTo(h, image, hub+"/"+repository, tag)
		must(t, err)
	}
}

// tagged is an image's name in a registry's hub.
func tagged(h *env.Env, image gatetest.Image) string {
	return h.Registry.Host() + "/" + hub + afterHost(image)
}

// afterHost is an image's name from the first slash on.
func afterHost(image gatetest.Image) string {
	for i, c := range image.Name {
		if c == '/' {
			return image.Name[i:]
		}
	}
	return ""
}

// exact is the name that a redirected image has: by tag and digest, in a hub.
func exact(h *env.Env, image gatetest.Image) string {
	return tagged(h, image) + "@" + image.Manifest.Digest
}

// kept returns the original images in a pod's annotation.
func kept(t *testing.T, p *core.Pod) map[string]string {
	t.Helper()
	var entries map[string]string
	if text := p.Annotations[written]; text != "" {
		must(t, json.Unmarshal([]byte(text), &entries))
	}
	return entries
}

// isRedirected waits until the API server asks about pods and the gateway answers
// with the first target.
func (m *mirrored) isRedirected(t *testing.T, to *env.Env) {
	t.Helper()
	probe := m.copied(t, "probe/"+m.namespace, "1", to)
	eventually(t, func(ctx context.Context) error {
		got, err := m.dryRun(ctx, pod("probe", probe.Name))
		if err == nil && images(got)[0] != exact(to, probe) {
			err = fmt.Errorf("it is not redirected: %v", images(got))
		}
		return err
	})
}
