package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// seedPod is a pod of one container, with more in its metadata and its spec.
func seedPod(image, metadata, spec string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p%s}, spec: {containers: [{name: app, image: '%s'}]%s}}", metadata, image, spec)
}

// tryRegistry: public images come from private registries, those of another region from
// this one if they are there, and those of a registry that asks get its secret.
func tryRegistry(t *testing.T, h *harvest) {
	const home, digest = "000000000000.dkr.ecr.eu-west-1.amazonaws.com", "sha256:6854c8c0fa8f79118b329708d1b8db33386120f37d20a4e331462f9e072d7e22"
	image := func(name string) string { return "{spec: {containers: [{name: app, image: '" + name + "'}]}}" }
	secret := "imagePullSecrets: [{name: registry-proxy-private-key}]"
	const none = "spec imagePullSecrets"
	h.tryCases(t,
		seedCase{reason: "Docker Hub", object: seedPod("nginx", "", ""), want: image(home + "/docker-hub/library/nginx:latest"), without: none},
		seedCase{reason: "by digest", object: seedPod("nginx@"+digest, "", ""), want: image(home + "/docker-hub/library/nginx@" + digest), without: none},
		seedCase{reason: "through the proxy, with its secret", object: seedPod("gcr.io/nginx", "", ""), want: "{spec: {containers: [{name: app, image: 'my-registry-proxy.example.com/gcr/nginx:latest'}], " + secret + "}}"},
		seedCase{
			reason: "an init container", object: seedPod(home+"/app", "", ", initContainers: [{name: init, image: gcr.io/init}]"),
			want: "{spec: {containers: [{name: app, image: " + home + "/app}], initContainers: [{name: init, image: 'my-registry-proxy.example.com/gcr/init:latest'}], " + secret + "}}",
		},
		seedCase{reason: "this region", object: seedPod(home+"/nginx", "", ""), want: image(home + "/nginx"), without: none},
		seedCase{reason: "an unknown registry", object: seedPod("registry.acme.example/nginx", "", ""), want: image("registry.acme.example/nginx"), without: none},
		seedCase{reason: "a pod with a secret of its own", object: seedPod("nginx", "", ", imagePullSecrets: [{name: mine}]"), want: "{spec: {containers: [{name: app, image: nginx}], imagePullSecrets: [{name: mine}]}}"},
	)
	before := h.asked.Load()
	h.tryCases(t,
		seedCase{reason: "another region, and it is here", object: seedPod("000000000000.dkr.ecr.us-east-1.amazonaws.com/nginx", "", ""), want: image(home + "/nginx:latest"), without: none},
		seedCase{reason: "another region, and it is not", object: seedPod("111111111111.dkr.ecr.us-east-1.amazonaws.com/nginx", "", ""), want: image("111111111111.dkr.ecr.us-east-1.amazonaws.com/nginx")},
	)
	if n := h.asked.Load() - before; n < 2 {
		t.Errorf("the checker was asked %d times about two images", n)
	}
	made := h.make(t, h.ann, seedPod("gcr.io/nginx", "", ""))
	got, err := h.of(t, h.bob, made).Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"blue"}}}`), meta.PatchOptions{})
	must(t, err, has(got, "{metadata: {labels: {team: blue}}, spec: {"+secret+"}}"))
}

// tryRecord: the creator of a ConfigMap is written into it, and cannot be changed.
func tryRecord(t *testing.T, h *harvest) {
	const annotation, protected = "kyverno.io/created-by", "The annotation kyverno.io/created-by is protected and may not be altered or removed."
	review, err := clientset(t, h.annIs).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authentication.SelfSubjectReview{}, meta.CreateOptions{})
	must(t, err)
	text, err := json.Marshal(review.Status.UserInfo)
	must(t, err)
	var is any
	must(t, json.Unmarshal(text, &is))

	eventually(t, func(ctx context.Context) error {
		probe := h.object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe}}")
		got, err := h.of(t, h.ann, probe).Create(ctx, probe, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil && got.GetAnnotations()[annotation] == "" {
			err = errors.New("the creator of a ConfigMap is not recorded")
		}
		return err
	})
	made := h.make(t, h.ann, `{apiVersion: v1, kind: ConfigMap, metadata: {name: made, annotations: {kyverno.io/created-by: bob}}, data: {a: "1"}}`)
	var recorded any
	if err := json.Unmarshal([]byte(made.GetAnnotations()[annotation]), &recorded); err != nil || !reflect.DeepEqual(recorded, is) {
		t.Errorf("recorded is %v (%v), want %v", recorded, err, is)
	}
	patch := func(by dynamic.Interface, name, text string) error {
		_, err := h.of(t, by, made).Patch(t.Context(), name, types.MergePatchType, []byte(text), meta.PatchOptions{})
		return err
	}
	for _, row := range []struct {
		reason, name, patch string
		refused             bool
	}{
		{"its data", "made", `{"data":{"a":"2"}}`, false},
		{"another annotation", "made", `{"metadata":{"annotations":{"x":"y"}}}`, false},
		{"the annotation", "made", `{"metadata":{"annotations":{"kyverno.io/created-by":"bob"}}}`, true},
		{"the annotation, with data", "made", `{"data":{"a":"3"},"metadata":{"annotations":{"kyverno.io/created-by":""}}}`, true},
		{"its removal", "made", `{"metadata":{"annotations":{"kyverno.io/created-by":null}}}`, true},
		{"the removal of all", "made", `{"metadata":{"annotations":null}}`, true},
		{"an object older than the policy", "older", `{"data":{"a":"2"}}`, false},
	} {
		for name, by := range map[string]dynamic.Interface{"ann": h.ann, "bob": h.bob, "the administrator": h.admin(t)} {
			if err := patch(by, row.name, row.patch); row.refused != (err != nil) || err != nil && !strings.Contains(err.Error(), protected) {
				t.Errorf("%s, by %s: %v, want refused %t", row.reason, name, err, row.refused)
			}
		}
	}
	must(t, h.of(t, h.bob, made).Delete(t.Context(), "made", meta.DeleteOptions{}))
}

// tryArch: a pod that does not say for which processors it is gets its namespace's.
func tryArch(t *testing.T, h *harvest) {
	arch := func(name string) string { return "{spec: {nodeSelector: {kubernetes.io/arch: " + name + "}}}" }
	affinity := ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [x]}]}]}}}"
	const none = "spec nodeSelector"
	h.tryCases(t,
		seedCase{reason: "the default", object: seedPod("nginx", "", ""), want: arch("arm64")},
		seedCase{reason: "that of the namespace", object: seedPod("nginx", ", namespace: seeds-intel", ""), want: arch("amd64")},
		seedCase{reason: "a namespace that is left out", object: seedPod("nginx", ", namespace: seeds-free", ""), without: none},
		seedCase{reason: "a pod with a node selector", object: seedPod("nginx", "", ", nodeSelector: {kubernetes.io/arch: s390x}"), want: arch("s390x")},
		seedCase{reason: "a pod with an affinity", object: seedPod("nginx", "", fmt.Sprintf(affinity, "kubernetes.io/arch")), without: none},
		seedCase{reason: "another affinity", object: seedPod("nginx", "", fmt.Sprintf(affinity, "zone")), want: arch("arm64")},
		seedCase{reason: "of a DaemonSet", object: seedPod("nginx", ", ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: o, uid: u}]", ""), without: none},
	)
}

// tryAffinity: a Deployment keeps its pods apart, and knows its processors.
func tryAffinity(t *testing.T, h *harvest) {
	deployment := func(affinity string) string {
		return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 13, selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: nginx}], affinity: {` + affinity + "}}}}}"
	}
	pods := "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}}]}"
	nodes := "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]}}"
	const apart, arch = "one-pod-per-deployment-per-node", "require-cpu-architecture"
	h.tryCases(t,
		seedCase{reason: "no processor", object: deployment(pods), refused: arch},
		seedCase{reason: "no distance", object: deployment(nodes), refused: apart},
		seedCase{reason: "none", object: deployment(""), refused: "All pods most have anti-affinity"},
		seedCase{reason: "and the other", object: deployment(""), refused: "All pods most have nodeAffinity"},
		seedCase{reason: "both", object: deployment(pods + ", " + nodes)},
		seedCase{reason: "the distance of zones", object: deployment(strings.Replace(pods, "kubernetes.io/hostname", "zone", 1) + ", " + nodes), refused: apart},
		seedCase{reason: "not the processor", object: deployment(pods + ", " + strings.Replace(nodes, "operator: In", "operator: NotIn", 1)), refused: arch},
		seedCase{reason: "a namespace that is left out", object: strings.Replace(deployment(""), "name: d", "name: d, namespace: kube-system", 1)},
		seedCase{reason: "a pod", object: seedPod("nginx", "", "")},
	)
}

// tryLifecycle: pods of namespaces that opted in get scripts, and the time for them.
func tryLifecycle(t *testing.T, h *harvest) {
	want := func(start, stop, grace string) string {
		return "{spec: {terminationGracePeriodSeconds: " + grace + `, containers: [{name: app, lifecycle: {
  postStart: {exec: {command: [/bin/sh, -c, "if ! curl -s http://raptor-config.default > /dev/null; then sleep ` + start + `; exit 1; fi"]}},
  preStop: {exec: {command: [/bin/sh, -c, "sleep ` + stop + `"]}}}}]}}`
	}
	h.tryCases(t,
		seedCase{reason: "a namespace that opted in", object: seedPod("nginx", ", namespace: seeds-scripts", ""), want: want("5", "30", "40")},
		seedCase{
			reason: "with seconds of its own", want: want("7", "50", "60"),
			object: seedPod("nginx", `, namespace: seeds-scripts, labels: {postStartSleepSeconds: "7", preStopSleepSeconds: "50"}`, ""),
		},
		seedCase{reason: "a namespace that did not", object: seedPod("nginx", "", ""), want: "{spec: {terminationGracePeriodSeconds: 30}}"},
	)
}

// tryKEDA: where Prometheus is stands in one ConfigMap, and is written into objects
// that come, and into those that are there when it changes.
func tryKEDA(t *testing.T, h *harvest) {
	address := func(at string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: keda-prometheus-serveraddress, namespace: observability}, data: {main: '" + at + "'}}"
	}
	scaled := func(name, central string) string {
		return "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: " + name + ", annotations: {keda.prometheus.sh/use-central-serveraddress: '" + central + `'}},
  spec: {triggers: [{type: cron, metadata: {start: "1"}}, {type: prometheus, metadata: {serverAddress: "http://old:9090", query: up}}]}}`
	}
	points := func(name, at string) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := h.get(ctx, t, scaled(name, ""))
			if err != nil {
				return err
			}
			return has(got, `{spec: {triggers: [{type: cron, metadata: {start: "1"}}, {type: prometheus, metadata: {serverAddress: "`+at+`", query: up}}]}}`)
		}
	}
	h.make(t, h.ann, scaled("other", "false"))
	configuration := h.make(t, h.ann, address("http://first:9090"))
	eventually(t, func(ctx context.Context) error {
		probe := h.object(t, scaled("probe", "true"))
		got, err := h.of(t, h.ann, probe).Create(ctx, probe, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if text := fmt.Sprint(got); err == nil && !strings.Contains(text, "http://first:9090") {
			err = fmt.Errorf("it is %s", text)
		}
		return err
	})
	h.make(t, h.ann, scaled("one", "true"))
	h.make(t, h.ann, strings.Replace(scaled("one", "true"), "name: one", "name: one, namespace: seeds-intel", 1))
	must(t, points("one", "http://first:9090")(t.Context()))

	_, err := h.of(t, h.bob, configuration).Patch(t.Context(), configuration.GetName(), types.MergePatchType, []byte(`{"data":{"main":"http://second:9090"}}`), meta.PatchOptions{})
	must(t, err)
	eventually(t, points("one", "http://second:9090"))
	eventually(t, func(ctx context.Context) error {
		got, err := h.get(ctx, t, strings.Replace(scaled("one", "true"), "name: one", "name: one, namespace: seeds-intel", 1))
		if err == nil && !strings.Contains(fmt.Sprint(got.Object), "http://second:9090") {
			err = fmt.Errorf("in another namespace it is %v", got.Object)
		}
		return err
	})
	must(t, points("other", "http://old:9090")(t.Context()))
}

// trySidecar: the pods that a Deployment's controller makes get a sidecar, and there is
// a certificate for it, which is put back, and goes with them.
func trySidecar(t *testing.T, h *harvest) {
	asked := `, labels: {nginx.kyverno.io/inject: "true", app: probe}`
	h.tryCases(t,
		seedCase{
			reason: "a pod that asks", object: seedPod("nginx", asked, ""),
			want: `{metadata: {labels: {nginx.kyverno.io/revision: default}, annotations: {kubectl.kubernetes.io/default-container: app}},
  spec: {containers: [{name: app, image: nginx}, {name: nginx-sidecar, image: "nginx:latest", resources: {limits: {cpu: "1", memory: 2Gi}}}],
         volumes: [{name: nginx-tls, secret: {secretName: nginx-probe-tls}}]}}`,
		},
		seedCase{reason: "a pod that does not", object: seedPod("nginx", ", labels: {app: probe}", ""), want: "{spec: {containers: [{name: app}]}}", without: "spec volumes"},
	)
	h.make(t, h.ann, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: plain}, spec: {replicas: 1, selector: {matchLabels: {app: plain}},
  template: {metadata: {labels: {app: plain}}, spec: {containers: [{name: main, image: busybox}]}}}}`)
	deployment := h.make(t, h.ann, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
  template: {metadata: {labels: {app: web, nginx.kyverno.io/inject: "true"}}, spec: {containers: [{name: main, image: busybox}]}}}}`)
	h.awaitContainers(t, "app=web", 2, 2)
	h.awaitContainers(t, "app=plain", 1, 1)
	const certificate = "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: nginx-web}}"
	want := func(ctx context.Context) error {
		got, err := h.get(ctx, t, certificate)
		if err != nil {
			return err
		}
		return has(got, `{metadata: {labels: {nginx.kyverno.io/instance: web}, ownerReferences: [{kind: ReplicaSet}]},
  spec: {secretName: nginx-web-tls, dnsNames: [localhost], duration: 43800h0m0s, issuerRef: {group: cert-manager.io, kind: ClusterIssuer, name: nginx-selfsigned-issuer}}}`)
	}
	eventually(t, want)
	made := h.of(t, h.bob, h.object(t, certificate))
	_, err := made.Patch(t.Context(), "nginx-web", types.MergePatchType, []byte(`{"spec":{"duration":"1h"}}`), meta.PatchOptions{})
	must(t, err)
	eventually(t, want)
	must(t, made.Delete(t.Context(), "nginx-web", meta.DeleteOptions{}))
	eventually(t, want)
	list, err := made.List(t.Context(), meta.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 {
		t.Errorf("%d certificates, want that of the pods that asked alone", len(list.Items))
	}
	foreground := meta.DeletePropagationForeground
	must(t, h.of(t, h.ann, deployment).Delete(t.Context(), "web", meta.DeleteOptions{PropagationPolicy: &foreground}))
	eventually(t, func(ctx context.Context) error {
		if _, err := h.get(ctx, t, certificate); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the certificate is there without a pod: %w", err)
		}
		return nil
	})
}

// awaitContainers waits for pods of a controller, of so many containers each.
func (h *harvest) awaitContainers(t *testing.T, selector string, pods, containers int) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		list, err := h.client.CoreV1().Pods(h.namespace).List(ctx, meta.ListOptions{LabelSelector: selector})
		if err != nil || len(list.Items) != pods {
			return fmt.Errorf("%d pods of %s: %w", len(list.Items), selector, err)
		}
		for _, p := range list.Items {
			if len(p.Spec.Containers) != containers {
				return fmt.Errorf("a pod of %s has %d containers", selector, len(p.Spec.Containers))
			}
		}
		return nil
	})
}

// tryRoleBinding: the creator of a namespace gets the role admin in it, once the gateway may
// bind it; a cluster administrator gets nothing.
func tryRoleBinding(t *testing.T, h *harvest) {
	roles := h.client.RbacV1()
	suffix := "-theirs"
	if strings.HasSuffix(t.Name(), "ours") {
		suffix = "-ours"
	}
	team, office := "seeds-team"+suffix, "seeds-office"+suffix
	namespaced := func(name string) string { return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}" }
	eventually(t, func(ctx context.Context) error { // until the webhooks match
		probe := h.object(t, namespaced("seeds-probe"))
		got, err := h.of(t, h.ann, probe).Create(ctx, probe, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil && len(got.GetAnnotations()) == 0 {
			err = errors.New("the creator of a namespace is not recorded")
		}
		return err
	})
	h.make(t, h.ann, namespaced(team))
	h.make(t, h.admin(t), namespaced(office))
	eventually(t, func(context.Context) error {
		lines, err := h.gateway.Lines()
		if err == nil && !slices.ContainsFunc(lines, func(line map[string]any) bool {
			return line["msg"] == "a generate or mutate-existing rule failed" && line["trigger"] == team && strings.Contains(fmt.Sprint(line["error"]), "forbidden")
		}) {
			err = errors.New("no event reports that the gateway may not make a role binding")
		}
		return err
	})
	must(t, h.plane.ApplyYAML(t.Context(), seedBinding))
	t.Cleanup(func() { h.forbidBinding(t) })
	var made *rbac.RoleBinding
	eventually(t, func(ctx context.Context) (err error) {
		made, err = roles.RoleBindings(team).Get(ctx, "ann-admin-binding", meta.GetOptions{})
		return err
	})
	if made.RoleRef.Name != "admin" || len(made.Subjects) != 1 || made.Subjects[0].Kind != "User" || made.Subjects[0].Name != "ann" || made.Annotations["kyverno.io/user"] != "ann" {
		t.Errorf("the role binding is %v", made)
	}
	list, err := roles.RoleBindings(office).List(t.Context(), meta.ListOptions{})
	must(t, err)
	if len(list.Items) != 0 {
		t.Errorf("the administrator got %v", list.Items)
	}
}

// seedBinding lets the gateway bind the role that a rule binds.
const seedBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: seeds-binding, labels: {quaymaster.dev/aggregate-to-background: "true"}}
rules:
  - {apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings], verbs: [get, list, watch, create, update, delete]}
  - {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [admin], verbs: [bind]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: seeds-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: seeds-binding}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`

// forbidBinding takes that back, and returns when the API server knows.
func (h *harvest) forbidBinding(t *testing.T) {
	t.Helper()
	h.remove(t, seedBinding)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), awaitTimeout)
	defer cancel()
	self := clientset(t, h.identity).AuthorizationV1().SelfSubjectAccessReviews()
	must(t, process.Eventually(ctx, func(ctx context.Context) error {
		asked := &authorization.SelfSubjectAccessReview{}
		asked.Spec.ResourceAttributes = &authorization.ResourceAttributes{Verb: "create", Group: rbac.GroupName, Resource: "rolebindings", Namespace: h.namespace}
		said, err := self.Create(ctx, asked, meta.CreateOptions{})
		if err == nil && said.Status.Allowed {
			err = errors.New("the gateway may still make role bindings")
		}
		return err
	}))
}
