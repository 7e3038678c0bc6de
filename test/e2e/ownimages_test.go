package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	authorization "k8s.io/api/authorization/v1"
)

// Images of releases, as docs/own-images.md names them. They are not pulled here.
const (
	ownRepository = "ghcr.io/quaymaster/quaymaster"
	sidecar       = "mesh.example/proxy@sha256:" + "5555555555555555555555555555555555555555555555555555555555555555"
)

func ownDigest(release string) string { return "sha256:" + strings.Repeat(release, 64) }

// TestOwnImages: in the gateway's namespace the API server admits the release's images and
// no others, with no gateway running; through upgrades and rollbacks to other digests.
func TestOwnImages(t *testing.T) {
	r := released(t)
	r.install(t, "1")
	r.rolledOut(t, "quaymaster", "1")
	t.Run("images of other origins", r.tryForeign)
	t.Run("what a pod becomes", r.tryChanges)
	t.Run("rights to change the policy", r.tryPolicyRights)
	t.Run("upgrade and rollback", r.tryDigests)
	t.Run("two Deployments", r.tryController)
	t.Run("rendered without a cluster", r.tryRendered)
}

// install installs the chart with the digest of a release.
func (r *release) install(t *testing.T, digest string) {
	t.Helper()
	r.run(t, "install", "quaymaster", r.chart("quaymaster"), "--create-namespace", "--set=replicas=2,image.digest="+ownDigest(digest), "--set=ownNamespace.images={"+sidecar+"}")
}

// rolledOut waits until a Deployment has a pod of a release, made by the ReplicaSet that
// came last; nothing runs here, so that there are pods of the one before as well.
func (r *release) rolledOut(t *testing.T, component, digest string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		list, err := r.client.CoreV1().Pods(releaseNamespace).List(ctx, meta.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			p := &list.Items[i]
			if p.DeletionTimestamp == nil && strings.HasPrefix(p.Name, component+"-") && images(p)[0] == ownRepository+"@"+ownDigest(digest) {
				return nil
			}
		}
		return fmt.Errorf("%s has no pod of release %s among %d", component, digest, len(list.Items))
	})
}

// own makes a pod in the gateway's namespace, and takes it away.
func (r *release) own(ctx context.Context, p *core.Pod) error {
	pods := r.client.CoreV1().Pods(releaseNamespace)
	_, err := pods.Create(ctx, p, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	return err
}

// eventuallyOwn waits until the API server, which learns of a policy within a second or two,
// admits or denies an image as expected.
func (r *release) eventuallyOwn(t *testing.T, image string, admitted bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		err := r.own(ctx, pod("probe", image))
		if admitted || err == nil {
			if !admitted {
				err = errors.New(image + " is admitted")
			}
			return err
		}
		return nil
	})
}

// tryForeign: other images are refused wherever they stand, and the release's are not.
func (r *release) tryForeign(t *testing.T) {
	const foreign = "evil.example/shell:1"
	release := ownRepository + "@" + ownDigest("1")
	inInit, asVolume := pod("probe", release), withVolume(pod("probe", release), foreign)
	inInit.Spec.InitContainers = []core.Container{{Name: "i", Image: foreign}}
	beside := pod("probe", release)
	beside.Spec.Containers = append(beside.Spec.Containers, core.Container{Name: "s", Image: foreign})
	r.eventuallyOwn(t, foreign, false)
	for _, row := range []struct {
		what     string
		pod      *core.Pod
		admitted bool
	}{
		{"the release's", pod("probe", release), true},
		{"with a sidecar that values name", func() *core.Pod {
			p := pod("probe", release)
			p.Spec.InitContainers = []core.Container{{Name: "proxy", Image: sidecar}}
			return p
		}(), true},
		{"another", pod("probe", foreign), false},
		{"another as init container", inInit, false},
		{"another beside", beside, false},
		{"another as a volume", asVolume, false},
		{"the release's repository by a tag", pod("probe", ownRepository+":v0.1.0"), false},
		{"the release's repository by another digest", pod("probe", ownRepository+"@"+ownDigest("9")), false},
		{"the release's digest in another repository", pod("probe", "evil.example/quaymaster@"+ownDigest("1")), false},
		{"a tag before the digest", pod("probe", ownRepository+":v0.1.0@"+ownDigest("1")), false},
	} {
		err := r.own(t.Context(), row.pod)
		if row.admitted {
			must(t, err)
			continue
		}
		refused(t, row.what, err, "no image of its release")
	}
	said, err := r.kubectl.Run(t.Context(), "--kubeconfig", r.kubeconfig, "--namespace", releaseNamespace, "run", "shell", "--image=busybox")
	if page, _ := os.ReadFile(filepath.Join(r.deploy, "..", "docs", "own-images.md")); err == nil || !strings.Contains(string(page), strings.TrimSpace(said)) {
		t.Errorf("docs/own-images.md does not show kubectl's output: %s", said)
	}
	if _, err := r.dryRun(t.Context(), pod("probe", foreign)); err != nil {
		t.Errorf("in another namespace: %v", err)
	}
}

// tryChanges: neither an update nor an ephemeral container brings another image in, and
// what else becomes of a pod is not the policy's business.
func (r *release) tryChanges(t *testing.T) {
	ctx, pods := t.Context(), r.client.CoreV1().Pods(releaseNamespace)
	list, err := pods.List(ctx, meta.ListOptions{})
	must(t, err)
	own := list.Items[0].DeepCopy()
	own.Spec.Containers[0].Image = "evil.example/shell:1"
	_, err = pods.Update(ctx, own, meta.UpdateOptions{})
	refused(t, "another image", err, "no image of its release")
	own = list.Items[0].DeepCopy()
	own.Labels["note"] = "x"
	own, err = pods.Update(ctx, own, meta.UpdateOptions{})
	must(t, err)
	debug := func(image string) error {
		p := own.DeepCopy()
		p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, core.EphemeralContainer{EphemeralContainerCommon: core.EphemeralContainerCommon{
			Name: "debug", Image: image, TerminationMessagePolicy: core.TerminationMessageReadFile,
		}})
		_, err := pods.UpdateEphemeralContainers(ctx, p.Name, p, meta.UpdateOptions{DryRun: []string{meta.DryRunAll}})
		return err
	}
	refused(t, "kubectl debug", debug("evil.example/shell:1"), "no image of its release")
	must(t, debug(sidecar))
	said, err := r.kubectl.Run(ctx, "--kubeconfig", r.kubeconfig, "--namespace", releaseNamespace, "debug", own.Name, "--image=busybox", "--container=shell", "--profile=general")
	if err == nil || !strings.Contains(said, "no image of its release: busybox") {
		t.Errorf("kubectl debug: %v: %s", err, said)
	}
}

// tryPolicyRights: the gateway's account may neither change the policies nor bind others.
func (r *release) tryPolicyRights(t *testing.T) {
	identity, err := r.plane.ServiceAccount(t.Context(), releaseNamespace, "quaymaster")
	must(t, err)
	own, err := kubernetes.NewForConfig(identity)
	must(t, err)
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			review, err := own.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorization.SelfSubjectAccessReview{
				Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{Group: "admissionregistration.k8s.io", Resource: resource, Verb: verb}},
			}, meta.CreateOptions{})
			must(t, err)
			if review.Status.Allowed {
				t.Errorf("the gateway may %s %s", verb, resource)
			}
		}
	}
}

// tryDigests: an upgrade makes pods of the new release and leaves those of the one before
// admitted, so does a rollback, and with a further release the oldest is refused.
func (r *release) tryDigests(t *testing.T) {
	upgrade := func(digest string) {
		r.run(t, "upgrade", "quaymaster", r.chart("quaymaster"), "--reset-then-reuse-values", "--set=image.digest="+ownDigest(digest))
		r.rolledOut(t, "quaymaster", digest)
	}
	admits := func(digests string, admitted bool) {
		for _, digest := range digests {
			r.eventuallyOwn(t, ownRepository+"@"+ownDigest(string(digest)), admitted)
		}
	}
	upgrade("2")
	admits("12", true)
	must(t, r.client.CoreV1().Pods(releaseNamespace).DeleteCollection(t.Context(), meta.DeleteOptions{}, meta.ListOptions{}))
	r.rolledOut(t, "quaymaster", "1") // nothing gets ready here, so that both ReplicaSets make pods anew
	r.rolledOut(t, "quaymaster", "2")
	r.run(t, "rollback", "quaymaster")
	must(t, r.client.CoreV1().Pods(releaseNamespace).DeleteCollection(t.Context(), meta.DeleteOptions{}, meta.ListOptions{}))
	r.rolledOut(t, "quaymaster", "1")
	admits("1", true)
	admits("2", false) // the manifest of then is as it was
	upgrade("2")
	upgrade("3")
	upgrade("4")
	admits("432", true)
	admits("1", false)
	r.run(t, "upgrade", "quaymaster", r.chart("quaymaster"), "--reset-then-reuse-values", "--set=ownNamespace.previous=0")
	admits("32", false)
	admits("4", true)
}

// tryController: the Deployment of scan, reports and the background runs the same image.
func (r *release) tryController(t *testing.T) {
	r.run(t, "upgrade", "quaymaster", r.chart("quaymaster"), "--reset-then-reuse-values", "--set=roles.separate=true")
	r.rolledOut(t, "quaymaster-controller", "4")
}

// tryRendered: a rendering without a cluster names this release, and those of values.
func (r *release) tryRendered(t *testing.T) {
	for reason, row := range map[string]struct {
		arguments []string
		admitted  string
	}{
		"values name the release before": {[]string{"--set=ownNamespace.images={" + ownRepository + "@" + ownDigest("5") + "}"}, "56"},
		"values name nothing":            {nil, "6"},
	} {
		text := r.run(t, append([]string{"template", "quaymaster", r.chart("quaymaster"), "--show-only=templates/ownnamespace.yaml", "--set=image.digest=" + ownDigest("6")}, row.arguments...)...)
		must(t, r.plane.ApplyYAML(t.Context(), text))
		for _, digest := range "456" {
			t.Log(reason, string(digest))
			r.eventuallyOwn(t, ownRepository+"@"+ownDigest(string(digest)), slices.Contains(strings.Split(row.admitted, ""), string(digest)))
		}
	}
	r.run(t, "uninstall", "quaymaster")
	registered := r.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	if _, err := registered.Get(t.Context(), "quaymaster-own-images", meta.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the release is gone: %v", err)
	}
}
