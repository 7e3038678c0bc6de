package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestRedirect: an image is pulled from the mirror that serves the verified digest, in every
// field of a pod, and no check is weaker for that.
func TestRedirect(t *testing.T) {
	m := mirror(t, "redirect", gateway.Configuration{})
	m.redirectBy(t, document(t, "redirect", m.entry("", nil)))
	m.enforceMirrored(t, env.Policy{Name: "redirect", Namespaces: []string{m.namespace}})
	m.isRedirected(t, m.near)
	signed := m.copied(t, "shop/web", "1.0", m.near, m.far)
	bare := m.env.Unsigned("shop/bare", "1.0")
	m.copyTo(t, bare, "shop/bare", "1.0", m.near, m.far)

	t.Run("a pod", func(t *testing.T) { m.tryRedirected(t, signed, bare) })
	t.Run("every place of a pod", func(t *testing.T) { m.tryEveryPlace(t, signed, bare) })
	t.Run("an ephemeral container", func(t *testing.T) { m.tryEphemeral(t, signed.Name, exact(m.near, signed), bare.Name) })
	t.Run("written as its copy", func(t *testing.T) { m.tryCopy(t, signed, bare) })
	t.Run("the next target", func(t *testing.T) { m.tryNextTarget(t) })
	t.Run("an update", func(t *testing.T) { m.tryUpdates(t, signed, bare) })
	t.Run("the same manifest again", func(t *testing.T) { m.tryAgainApplied(t, signed, bare) })
	t.Run("kubectl replaces it by the same", func(t *testing.T) { m.tryReplace(t, signed, bare) })
	t.Run("the record is tampered with", func(t *testing.T) { m.tryTampering(t, signed, bare) })
	t.Run("a Deployment", func(t *testing.T) { m.tryTemplate(t, signed, bare) })
}

// enforceMirrored applies a policy until the test ends, and returns when the
// gateway took it. Pods are pinned by other names than enforce looks for.
func (m *mirrored) enforceMirrored(t *testing.T, policy env.Policy) {
	t.Helper()
	text, err := m.env.YAML(policy)
	must(t, err)
	m.put(t, text)
}

func (m *mirrored) tryRedirected(t *testing.T, signed, bare gatetest.Image) {
	got, err := m.create(t, pod("redirected", signed.Name))
	must(t, err)
	if want := []string{exact(m.near, signed)}; !slices.Equal(images(got), want) {
		t.Errorf("images %v, want %v", images(got), want)
	}
	if entries := kept(t, got); len(entries) != 1 || entries["c0"] != signed.Name {
		t.Errorf("the original is kept as %v, want c0: %s", entries, signed.Name)
	}
	lines := m.verdicts(t, "mutate", "redirected")
	if len(lines) != 1 || lines[0]["mirror"] != "RegistryMirror/redirect[0]" || lines[0]["target"] != exact(m.near, signed) || lines[0]["image"] != signed.Name {
		t.Errorf("the log has it as %v", lines)
	}
	m.forget()
	_, err = m.dryRun(t.Context(), pod("warm", signed.Name))
	must(t, err)
	if n := m.requests(); n != 0 {
		t.Errorf("the same image again costs %d requests to registries", n)
	}
	_, err = m.create(t, pod("bare", bare.Name))
	denied(t, "an unsigned image that the mirror has as well", err, "unsigned")

	// By digest, and by both.
	for _, written := range []string{signed.ByDigest(), env.Pinned(signed)} {
		got, err := m.dryRun(t.Context(), pod("by-digest", written))
		must(t, err)
		if name := images(got)[0]; !strings.HasPrefix(name, m.near.Registry.Host()+"/"+hub+"/") || !strings.HasSuffix(name, "@"+signed.Manifest.Digest) {
			t.Errorf("%s became %s", written, name)
		}
	}
}

func (m *mirrored) tryEveryPlace(t *testing.T, signed, bare gatetest.Image) {
	build := func(name string, images [3]string) *core.Pod {
		p := withVolume(pod(name, images[0]), images[2])
		p.Spec.InitContainers = []core.Container{{Name: "init", Image: images[1]}}
		return p
	}
	for i, place := range []string{"container", "init container", "volume"} {
		images := [3]string{signed.Name, signed.Name, signed.Name}
		images[i] = bare.Name
		_, err := m.create(t, build("bare", images))
		denied(t, "an unsigned "+place, err, "unsigned")
	}
	got, err := m.create(t, build("places", [3]string{signed.Name, signed.Name, signed.Name}))
	must(t, err)
	want := exact(m.near, signed)
	all := append(images(got), got.Spec.Volumes[0].Image.Reference)
	if len(all) != 3 || slices.ContainsFunc(all, func(i string) bool { return i != want }) {
		t.Errorf("images %v, want %s each", all, want)
	}
	if entries := kept(t, got); !maps.Equal(entries, map[string]string{"c0": signed.Name, "init": signed.Name, "volume/data": signed.Name}) {
		t.Errorf("the original is kept as %v", entries)
	}
}

// tryCopy: an image by the target's name is evaluated under the source's as well, although
// the policy matches the source alone.
func (m *mirrored) tryCopy(t *testing.T, signed, bare gatetest.Image) {
	for _, h := range []*env.Env{m.near, m.far} {
		_, err := m.create(t, pod("copy-bare", tagged(h, bare)))
		denied(t, "an unsigned image by its copy's name", err, "unsigned")
		if err == nil || !strings.Contains(err.Error(), "as a copy of "+bare.Name) {
			t.Errorf("the denial does not name the source: %v", err)
		}
		_, err = m.create(t, pod("copy-bare", exact(h, bare)))
		denied(t, "the same by digest", err, "unsigned")
		got, err := m.dryRun(t.Context(), pod("copy", exact(h, signed)))
		must(t, err)
		if !slices.Equal(images(got), []string{exact(h, signed)}) {
			t.Errorf("a copy by tag and digest became %v, want that it is left alone", images(got))
		}
		got, err = m.dryRun(t.Context(), pod("copy", tagged(h, signed)))
		must(t, err)
		if !slices.Equal(images(got), []string{exact(h, signed)}) {
			t.Errorf("a copy by tag became %v, want it pinned where it is", images(got))
		}
	}
	// An image of the target that the source does not have is evaluated as well.
	own := m.near.Unsigned(hub+"/shop/own", "1.0")
	_, err := m.create(t, pod("own", own.Name))
	denied(t, "an image that only the target has", err, "unsigned")
	beside := m.near.Unsigned("beside/own", "1.0")
	if _, err := m.dryRun(t.Context(), pod("beside", beside.Name)); err != nil {
		t.Errorf("an image beside the hub, which no policy matches: %v", err)
	}
}

// tryNextTarget: a target without the image is skipped, and if no target has it the image
// stays.
func (m *mirrored) tryNextTarget(t *testing.T) {
	second, nowhere := m.copied(t, "shop/second", "1.0", m.far), m.copied(t, "shop/nowhere", "1.0")
	got, err := m.dryRun(t.Context(), pod("second", second.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{exact(m.far, second)}) {
		t.Errorf("images %v, want that of the second target", images(got))
	}
	heard, said := m.heard(t)
	got, err = heard.dryRun(t.Context(), pod("nowhere", nowhere.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{env.Pinned(nowhere)}) {
		t.Errorf("images %v, want that it stays at its source, pinned", images(got))
	}
	if warnings := said(); !strings.Contains(warnings, "it stays at "+m.env.Registry.Host()) {
		t.Errorf("the warning is %q, want that it is not mirrored", warnings)
	}
}

// tryUpdates: nothing but another image makes work, and that is redirected, too.
func (m *mirrored) tryUpdates(t *testing.T, signed, bare gatetest.Image) {
	next := m.copied(t, "shop/web", "1.1", m.near)
	got, err := m.create(t, pod("updated", signed.Name))
	must(t, err)
	pods := m.client.CoreV1().Pods(m.namespace)
	m.forget()
	changed, err := pods.Patch(t.Context(), "updated", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"blue"}}}`), meta.PatchOptions{})
	must(t, err)
	if n := m.requests(); n != 0 {
		t.Errorf("a label cost %d requests to registries", n)
	}
	if !equality.Semantic.DeepEqual(changed.Spec, got.Spec) || changed.Annotations[written] != got.Annotations[written] {
		t.Errorf("a label made %v of %v", changed, got)
	}
	_, err = pods.Patch(t.Context(), "updated", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c0","image":%q}]}}`, bare.Name), meta.PatchOptions{})
	denied(t, "an update to an unsigned image", err, "unsigned")
	changed, err = pods.Patch(t.Context(), "updated", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"containers":[{"name":"c0","image":%q}]}}`, next.Name), meta.PatchOptions{})
	must(t, err)
	if images(changed)[0] != exact(m.near, next) || kept(t, changed)["c0"] != next.Name {
		t.Errorf("a new image became %v, kept as %v", images(changed), kept(t, changed))
	}
}

// forget and requests count what all registries are asked.
func (m *mirrored) forget() {
	for _, h := range []*env.Env{m.env, m.near, m.far} {
		h.Registry.Reset()
	}
}

func (m *mirrored) requests() int {
	return m.env.Registry.Count("") + m.near.Registry.Count("") + m.far.Registry.Count("")
}

// tryAgainApplied: applying the original manifest again changes nothing, under any field
// manager.
func (m *mirrored) tryAgainApplied(t *testing.T, signed, bare gatetest.Image) {
	pods := m.client.CoreV1().Pods(m.namespace)
	apply := func(image, manager string, trial bool) (*core.Pod, error) {
		force := true
		options := meta.PatchOptions{FieldManager: manager, Force: &force}
		if trial {
			options.DryRun = []string{meta.DryRunAll}
		}
		got, err := pods.Patch(t.Context(), "applied", types.ApplyPatchType, manifest(t, pod("applied", image)), options)
		if err == nil {
			got.ManagedFields = nil
		}
		return got, err
	}
	before, err := apply(signed.Name, "first", false)
	must(t, err)
	if !slices.Equal(images(before), []string{exact(m.near, signed)}) {
		t.Errorf("images %v, want %s", images(before), exact(m.near, signed))
	}
	m.forget()
	for _, row := range []struct {
		reason, manager string
		trial           bool
	}{
		{"a trial by another manager", "second", true},
		{"a trial by the same manager", "first", true},
		{"the same manager again", "first", false},
		{"another manager", "second", false},
	} {
		after, err := apply(signed.Name, row.manager, row.trial)
		must(t, err)
		after.ResourceVersion = before.ResourceVersion // managed fields alone may change it
		if !equality.Semantic.DeepEqual(after, before) {
			t.Errorf("%s: got\n%v\nwant\n%v", row.reason, after, before)
		}
	}
	if n := m.requests(); n != 0 {
		t.Errorf("all that cost %d requests to registries", n)
	}
	_, err = apply(bare.Name, "second", true)
	denied(t, "a trial by another manager with an unsigned image", err, "unsigned")

	first, err := m.dryRun(t.Context(), withVolume(pod("twice", signed.Name), signed.Name))
	must(t, err)
	again := first.DeepCopy()
	again.UID, again.ResourceVersion, again.ManagedFields = "", "", nil
	second, err := m.dryRun(t.Context(), again)
	must(t, err)
	if !equality.Semantic.DeepEqual(first.Spec, second.Spec) || !equality.Semantic.DeepEqual(first.Annotations, second.Annotations) {
		t.Errorf("admitted again, %v became %v", first, second)
	}
}

func (m *mirrored) tryReplace(t *testing.T, signed, bare gatetest.Image) {
	kubectl := m.kubectl(t)
	file := t.TempDir() + "/pod.yaml"
	write := func(image string) { must(t, os.WriteFile(file, manifest(t, pod("replaced", image)), 0o600)) }
	write(signed.Name)
	_, err := kubectl("create", "-f", file)
	must(t, err)
	pods := m.client.CoreV1().Pods(m.namespace)
	before, err := pods.Get(t.Context(), "replaced", meta.GetOptions{})
	must(t, err)
	for _, arguments := range [][]string{{"replace", "-f", file}, {"apply", "-f", file}, {"diff", "-f", file}, {"diff", "-f", file, "--server-side", "--field-manager=second", "--force-conflicts"}} {
		if said, err := kubectl(arguments...); err != nil {
			t.Errorf("kubectl %v: %v\n%s", arguments, err, said)
		}
	}
	after, err := pods.Get(t.Context(), "replaced", meta.GetOptions{})
	must(t, err)
	if !slices.Equal(images(after), []string{exact(m.near, signed)}) || after.UID != before.UID || after.Annotations[written] != before.Annotations[written] {
		t.Errorf("%v, %s became %v, %s", images(before), before.Annotations[written], images(after), after.Annotations[written])
	}
	write(bare.Name)
	if said, err := kubectl("replace", "-f", file); err == nil || !strings.Contains(said, "[unsigned]") {
		t.Errorf("kubectl replaces it by an unsigned image: %v, %s", err, said)
	}
}

// tryTampering: the annotation of originals is the gateway's alone to write, and a forged one
// has no effect.
func (m *mirrored) tryTampering(t *testing.T, signed, bare gatetest.Image) {
	made, err := m.create(t, pod("tampered", signed.Name))
	must(t, err)
	pods := m.client.CoreV1().Pods(m.namespace)
	for _, patch := range []string{
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, written, `{"c0":"`+bare.Name+`"}`),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, written),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"nothing"}}}`, written),
	} {
		got, err := pods.Patch(t.Context(), "tampered", types.MergePatchType, []byte(patch), meta.PatchOptions{})
		must(t, err)
		if got.Annotations[written] != made.Annotations[written] || !slices.Equal(images(got), images(made)) {
			t.Errorf("%s made %q of %q, and %v of %v", patch, got.Annotations[written], made.Annotations[written], images(got), images(made))
		}
	}
	_, err = pods.Patch(t.Context(), "tampered", types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"annotations":{%q:%q}},"spec":{"containers":[{"name":"c0","image":%q}]}}`,
		written, `{"c0":"`+bare.Name+`"}`, bare.Name), meta.PatchOptions{})
	denied(t, "an unsigned image that the record names", err, "unsigned")

	// Where the mutating webhook does not repair it, it is refused.
	review := m.reviewOf(made, "ann")
	review.Request.Operation = "UPDATE"
	review.Request.OldObject = review.Request.Object
	forged := made.DeepCopy()
	forged.Annotations[written] = `{"c0":"` + bare.Name + `"}`
	review.Request.Object = m.reviewOf(forged, "ann").Request.Object
	said, err := m.caller(t, m.gateway).ask(t.Context(), "/validate", review)
	if err != nil || said.Allowed || !strings.Contains(said.Result.Message, written) {
		t.Errorf("at /validate: %+v, %v; want a refusal that names %s", said, err, written)
	}
	review.Request.Object = review.Request.OldObject
	if said, err := m.caller(t, m.gateway).ask(t.Context(), "/validate", review); err != nil || !said.Allowed {
		t.Errorf("at /validate, unchanged: %+v, %v", said, err)
	}
}

// tryTemplate: what people and tools write down stays as it is; the pods that are
// made of it are redirected.
func (m *mirrored) tryTemplate(t *testing.T, signed, bare gatetest.Image) {
	labels := map[string]string{"app": "mirrored"}
	deployment := func(name, image string) *apps.Deployment {
		d := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: name}}
		d.Spec.Selector = &meta.LabelSelector{MatchLabels: labels}
		d.Spec.Template = core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("", image).Spec}
		return d
	}
	deployments := m.client.AppsV1().Deployments(m.namespace)
	_, err := deployments.Create(t.Context(), deployment("bare", bare.Name), meta.CreateOptions{})
	denied(t, "a Deployment of an unsigned image", err, "unsigned")
	_, err = deployments.Create(t.Context(), deployment("bare", tagged(m.near, bare)), meta.CreateOptions{})
	denied(t, "a Deployment of its copy", err, "unsigned")
	_, err = deployments.Create(t.Context(), deployment("web", signed.Name), meta.CreateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		list, err := m.client.CoreV1().Pods(m.namespace).List(ctx, meta.ListOptions{LabelSelector: "app=mirrored"})
		if err != nil || len(list.Items) == 0 {
			return errors.Join(err, errors.New("no pod yet"))
		}
		if p := list.Items[0]; images(&p)[0] != exact(m.near, signed) || kept(t, &p)["c0"] != signed.Name {
			t.Errorf("its pod has %v, kept as %v", images(&p), kept(t, &p))
		}
		return nil
	})
	got, err := deployments.Get(t.Context(), "web", meta.GetOptions{})
	must(t, err)
	if image := got.Spec.Template.Spec.Containers[0].Image; image != signed.Name {
		t.Errorf("the template has %s, want it unchanged", image)
	}
}
