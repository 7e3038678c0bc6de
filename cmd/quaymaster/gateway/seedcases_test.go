package gateway

import (
	"strings"
)

// seedNamespaces are those of the cases.
const seedNamespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {kubernetes.io/metadata.name: shop}}
---
apiVersion: v1
kind: Namespace
metadata: {name: intel, labels: {policies.kyverno.io/default-arch: amd64}}
---
apiVersion: v1
kind: Namespace
metadata: {name: free, labels: {policies.kyverno.io/disable-default-arch-enforcement: "true"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: scripts, labels: {policies.kyverno.io/test-mutate-rules-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {policies.kyverno.io/test-mutate-rules-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-system}
---
apiVersion: v1
kind: Namespace
metadata: {name: observability}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: keda-prometheus-serveraddress, namespace: observability}
data: {main: "http://prometheus.observability:9090"}
`

const theAnnotation = "The annotation kyverno.io/created-by is protected and may not be altered or removed."

func seeds() []seed {
	return []seed{
		{"record", []string{"miro/01-record-creation-details/policy.yaml"}, recordCases()},
		{"keda", []string{"miro/02-keda-prometheus-address/policy.yaml"}, kedaCases()},
		{"arch", []string{"miro/03-pod-hardware-arch/policy.yaml"}, archCases()},
		{"registry", []string{"miro/04-image-registry/policy.yaml", "miro/04-image-registry/configs.yaml"}, registryCases()},
		{"sidecar", []string{"miro/05-sidecar-inject/policy.yaml", "miro/05-sidecar-inject/configs.yaml"}, sidecarCases()},
		{"affinity", []string{"digitalocean/policies/one-pod-per-deployment-per-node.yaml", "digitalocean/policies/require-cpu-architecture.yaml"}, affinityCases()},
		{"escalation", []string{"kubecon/disallow-privilege-escalation.yaml"}, escalationCases()},
		{"vault", []string{"kubecon/inject-vault-agent.yaml"}, vaultCases()},
		{"rolebinding", []string{"kubecon/generate-admin-rolebinding.yaml"}, rolebindingCases()},
		{"lifecycle", []string{"operations/mutate-lifecycle.yaml"}, lifecycleCases()},
	}
}

func recordCases() []seedCase {
	made := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {kyverno.io/created-by: 'REQUESTER'}}, data: {a: "1"}}`
	other := strings.Replace(made, "'REQUESTER'", "'{\"username\":\"somebody\"}'", 1)
	bare := `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: "2"}}`
	return []seedCase{
		{reason: "the creator is recorded", object: bare, want: `{metadata: {annotations: {kyverno.io/created-by: 'REQUESTER'}}}`},
		{reason: "a claim of another creator is replaced", object: other, want: `{metadata: {annotations: {kyverno.io/created-by: 'REQUESTER'}}}`},
		{reason: "annotations beside it stay", object: strings.Replace(bare, "name: c", "name: c, annotations: {x: z}", 1), want: `{metadata: {annotations: {x: z, kyverno.io/created-by: 'REQUESTER'}}}`},
		{reason: "another kind", object: strings.Replace(bare, "ConfigMap", "Secret", 1)},
		{reason: "its data may change", object: strings.Replace(made, `a: "1"`, `a: "2"`, 1), old: made},
		{reason: "it may not change", object: other, old: made, refused: theAnnotation},
		{reason: "it may not go", object: bare, old: made, refused: theAnnotation},
		{reason: "it may not be empty", object: strings.Replace(made, "REQUESTER", "", 1), old: made, refused: theAnnotation},
		{reason: "what has none may be changed", object: strings.Replace(bare, `"2"`, `"3"`, 1), old: bare},
		{reason: "what has none may get one", object: made, old: bare},
	}
}

func kedaCases() []seedCase {
	scaled := `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: s, annotations: {keda.prometheus.sh/use-central-serveraddress: "true"}},
  spec: {triggers: [{type: cron, metadata: {start: "1"}}, {type: prometheus, metadata: {serverAddress: "http://old:9090", query: up}}]}}`
	want := `{spec: {triggers: [{type: cron, metadata: {start: "1"}}, {type: prometheus, metadata: {serverAddress: "http://prometheus.observability:9090", query: up}}]}}`
	return []seedCase{
		{reason: "the address of the ConfigMap", object: scaled, want: want},
		{reason: "at an update, too", object: scaled, old: strings.Replace(scaled, "name: s,", "name: s, labels: {a: b},", 1), want: want},
		{reason: "without the annotation", object: strings.Replace(scaled, `"true"`, `"false"`, 1)},
		{reason: "another trigger alone", object: strings.Replace(scaled, "type: prometheus", "type: kafka", 1)},
		{reason: "the ConfigMap itself", object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: keda-prometheus-serveraddress, namespace: observability}, data: {main: "http://new"}}`},
	}
}

// podText is a pod with fields beside its containers, which are one of nginx.
func podText(metadata, spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: p" + metadata + "}, spec: {containers: [{name: app, image: nginx}]" + spec + "}}"
}

func archCases() []seedCase {
	want := func(arch string) string { return "{spec: {nodeSelector: {kubernetes.io/arch: " + arch + "}}}" }
	affinity := ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: %, operator: In, values: [x]}]}]}}}"
	owner := `, ownerReferences: [{apiVersion: apps/v1, kind: %, name: o, uid: u}]`
	pod := podText("", "")
	return []seedCase{
		{reason: "the default", object: pod, want: want("arm64")},
		{reason: "that of the namespace", object: podText(", namespace: intel", ""), want: want("amd64")},
		{reason: "a namespace that is left out", object: podText(", namespace: free", "")},
		{reason: "a pod that has it", object: podText("", ", nodeSelector: {kubernetes.io/arch: s390x}")},
		{reason: "a pod that selects otherwise", object: podText("", ", nodeSelector: {disk: ssd}"), want: "{spec: {nodeSelector: {disk: ssd, kubernetes.io/arch: arm64}}}"},
		{reason: "an affinity that has it", object: podText("", strings.Replace(affinity, "%", "kubernetes.io/arch", 1))},
		{reason: "another affinity", object: podText("", strings.Replace(affinity, "%", "zone", 1)), want: want("arm64")},
		{reason: "of a DaemonSet", object: podText(strings.Replace(owner, "%", "DaemonSet", 1), "")},
		{reason: "of a ReplicaSet", object: podText(strings.Replace(owner, "%", "ReplicaSet", 1), ""), want: want("arm64")},
		{reason: "at an update", object: podText(", labels: {a: b}", ""), old: pod},
	}
}

func registryCases() []seedCase {
	const home, abroad, digest = "000000000000.dkr.ecr.eu-west-1.amazonaws.com", "000000000000.dkr.ecr.us-east-1.amazonaws.com", "sha256:6854c8c0fa8f79118b329708d1b8db33386120f37d20a4e331462f9e072d7e22"
	of := func(images, more string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [" + images + "]" + more + "}}"
	}
	one := func(image string) string { return of("{name: a, image: '"+image+"'}", "") }
	secret := "imagePullSecrets: [{name: registry-proxy-private-key}]"
	withSecret := func(list, image string) string {
		return "{spec: {" + list + ": [{name: a, image: '" + image + "'}], " + secret + "}}"
	}
	containers := func(image string) string { return "{spec: {containers: [{name: a, image: '" + image + "'}]}}" }
	return []seedCase{
		{reason: "Docker Hub's own", object: one("nginx"), want: containers(home + "/docker-hub/library/nginx:latest")},
		{reason: "of a Docker Hub account", object: one("acme/web:1.2"), want: containers(home + "/docker-hub/acme/web:1.2")},
		{reason: "by digest", object: one("nginx@" + digest), want: containers(home + "/docker-hub/library/nginx@" + digest)},
		{reason: "through the proxy, with its secret", object: one("gcr.io/nginx"), want: withSecret("containers", "my-registry-proxy.example.com/gcr/nginx:latest")},
		{reason: "the proxy itself", object: one("my-registry-proxy.example.com/gcr/nginx:1"), want: withSecret("containers", "my-registry-proxy.example.com/gcr/nginx:1")},
		{reason: "a registry that is not mapped", object: one("registry.acme.example/nginx")},
		{reason: "a pod with a secret of its own", object: of("{name: a, image: nginx}", ", imagePullSecrets: [{name: mine}]")},
		{reason: "this region", object: one(home + "/nginx")},
		{reason: "another region, and it is here", object: one(abroad + "/nginx"), want: containers(home + "/nginx:latest")},
		{reason: "another region, and it is not here", object: one("111111111111.dkr.ecr.us-east-1.amazonaws.com/nginx")},
		{reason: "another region, and the lookup fails", object: one(abroad + "/secret"), stopped: "503"},
		{reason: "another region, and this tag is not here", object: one(abroad + "/nginx:2")},
		{
			reason: "several", object: of("{name: a, image: nginx}, {name: b, image: registry.acme.example/b}, {name: c, image: gcr.io/c}", ""),
			want: "{spec: {containers: [{name: a, image: '" + home + "/docker-hub/library/nginx:latest'}, {name: b, image: registry.acme.example/b}, {name: c, image: 'my-registry-proxy.example.com/gcr/c:latest'}], " + secret + "}}",
		},
		{
			reason: "init containers", object: of("{name: b, image: registry.acme.example/b}", ", initContainers: [{name: a, image: gcr.io/a}]"),
			want: withSecret("initContainers", "my-registry-proxy.example.com/gcr/a:latest"),
		},
		{
			reason: "an init container of Docker Hub", object: of("{name: b, image: registry.acme.example/b}", ", initContainers: [{name: a, image: busybox}]"),
			want: "{spec: {containers: [{name: b, image: registry.acme.example/b}], initContainers: [{name: a, image: '" + home + "/docker-hub/library/busybox:latest'}]}}",
		},
		{reason: "at an update", object: of("{name: a, image: nginx}", ", priority: 1"), old: one("nginx")},
	}
}

func sidecarCases() []seedCase {
	asked := `, labels: {nginx.kyverno.io/inject: "true", app: web}`
	sidecar := `{name: nginx-sidecar, image: "nginx:latest", volumeMounts: [{name: nginx-tls, mountPath: /opt/sslconfig}], resources: {limits: {cpu: "1", memory: 2Gi}}}`
	want := `{metadata: {labels: {nginx.kyverno.io/revision: default}, annotations: {kubectl.kubernetes.io/default-container: app}},
  spec: {containers: [{name: app, image: nginx}, ` + sidecar + `], volumes: [{name: nginx-tls, secret: {secretName: nginx-web-tls}}]}}`
	return []seedCase{
		{reason: "it asks for it", object: podText(asked, ""), want: want},
		{reason: "it does not", object: podText(", labels: {app: web}", "")},
		{reason: "it declines", object: podText(strings.Replace(asked, `"true"`, `"false"`, 1), "")},
		{reason: "a pod without the label app", object: podText(`, labels: {nginx.kyverno.io/inject: "true"}`, "")},
		{
			reason: "it names the default container", object: podText(asked+", annotations: {kubectl.kubernetes.io/default-container: other}", ""),
			want: strings.Replace(want, "default-container: app", "default-container: other", 1),
		},
		{
			reason: "it sets the resources", object: podText(asked+`, annotations: {nginx.kyverno.io/proxyCPU: "3", nginx.kyverno.io/proxyMemory: 1Gi}`, ""),
			want: strings.Replace(strings.Replace(want, `cpu: "1"`, `cpu: "3"`, 1), "2Gi", "1Gi", 1),
		},
		{
			reason: "volumes beside it stay", object: podText(asked, ", volumes: [{name: data, emptyDir: {}}]"),
			want: strings.Replace(want, "volumes: [", "volumes: [{name: data, emptyDir: {}}, ", 1),
		},
		{reason: "at an update", object: podText(asked+", annotations: {a: b}", ""), old: podText(asked, "")},
	}
}

func affinityCases() []seedCase {
	deployment := func(namespace, affinity string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: " + namespace + `}, spec: {selector: {matchLabels: {a: b}},
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: nginx}], affinity: {` + affinity + "}}}}}"
	}
	pods := "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {}}]}"
	nodes := "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]}}"
	both := pods + ", " + nodes
	const apart, arch = "one-pod-per-deployment-per-node", "require-cpu-architecture"
	return []seedCase{
		{reason: "both", object: deployment("shop", both)},
		{reason: "none", object: deployment("shop", ""), refused: apart},
		{reason: "no processor", object: deployment("shop", pods), refused: arch},
		{reason: "no distance", object: deployment("shop", nodes), refused: "All pods most have anti-affinity"},
		{reason: "the distance of zones", object: deployment("shop", strings.Replace(both, "kubernetes.io/hostname", "zone", 1)), refused: apart},
		{reason: "a distance that is preferred", object: deployment("shop", "podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}, "+nodes), refused: apart},
		{reason: "not the processor", object: deployment("shop", strings.Replace(both, "operator: In", "operator: NotIn", 1)), refused: arch},
		{reason: "another label of nodes", object: deployment("shop", strings.Replace(both, "kubernetes.io/arch", "disk", 1)), refused: "All pods most have nodeAffinity"},
		{reason: "a namespace that is left out", object: deployment("kube-system", "")},
		{reason: "an update that takes it away", object: deployment("shop", ""), old: deployment("shop", both), refused: apart},
		{reason: "an update that keeps it", object: strings.Replace(deployment("shop", both), "name: d,", "name: d, labels: {a: b},", 1), old: deployment("shop", both)},
	}
}

func escalationCases() []seedCase {
	container := func(name, allows string) string {
		return "{name: " + name + ", image: nginx, securityContext: {allowPrivilegeEscalation: " + allows + "}}"
	}
	pod := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + spec + "}}"
	}
	const audited = "escalation=fail"
	good := "containers: [" + container("a", "false") + "]"
	return []seedCase{
		{reason: "none may", object: pod(good)},
		{reason: "one may", object: pod("containers: [" + container("a", "false") + ", " + container("b", "true") + "]"), audited: audited},
		{reason: "one does not say", object: podText("", ""), audited: audited},
		{reason: "an init container may", object: pod(good + ", initContainers: [" + container("i", "true") + "]"), audited: audited},
		{reason: "no init container may", object: pod(good + ", initContainers: [" + container("i", "false") + "]")},
	}
}

func vaultCases() []seedCase {
	deployment := func(annotations, spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {metadata: {annotations: {" + annotations + "}}, spec: {" + spec + "}}}}"
	}
	inject := `vault.hashicorp.com/agent-inject: "true"`
	agent := `{name: vault-agent, image: "vault:1.5.4", imagePullPolicy: IfNotPresent, volumeMounts: [{mountPath: /vault/secrets, name: vault-secret}]}`
	return []seedCase{
		{
			reason: "it asks for it", object: deployment(inject, "containers: [{name: a, image: nginx}], volumes: [{name: v, emptyDir: {}}]"),
			want: deployment(inject, "containers: [{name: a, image: nginx}, "+agent+"], volumes: [{name: v, emptyDir: {}}, {name: vault-secret, emptyDir: {medium: Memory}}]"),
		},
		{reason: "it declines", object: deployment(strings.Replace(inject, "true", "false", 1), "containers: [{name: a, image: nginx}]")},
		{reason: "it has no annotation", object: deployment("", "containers: [{name: a, image: nginx}]")},
		{reason: "another kind", object: strings.Replace(deployment(inject, "containers: [{name: a, image: nginx}]"), "kind: Deployment", "kind: StatefulSet", 1)},
	}
}

// rolebindingCases: generating needs a cluster; at the endpoints the requester is recorded.
func rolebindingCases() []seedCase {
	return []seedCase{
		{reason: "a namespace", object: "{apiVersion: v1, kind: Namespace, metadata: {name: team}}", want: `{metadata: {annotations: {quaymaster.dev/requester: '{"username":*'}}}`},
		{reason: "another kind", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"},
	}
}

func lifecycleCases() []seedCase {
	want := func(start, stop, grace string) string {
		return "{spec: {terminationGracePeriodSeconds: " + grace + `, containers: [{name: app, lifecycle: {
  postStart: {exec: {command: [/bin/sh, -c, "if ! curl -s http://raptor-config.default > /dev/null; then sleep ` + start + `; exit 1; fi"]}},
  preStop: {exec: {command: [/bin/sh, -c, "sleep ` + stop + `"]}}}}]}}`
	}
	return []seedCase{
		{reason: "a namespace that opted in", object: podText(", namespace: scripts", ""), want: want("5", "30", "40")},
		{reason: "with seconds of its own", object: podText(`, namespace: scripts, labels: {postStartSleepSeconds: "7", preStopSleepSeconds: "50"}`, ""), want: want("7", "50", "60")},
		{reason: "a namespace that did not", object: podText("", "")},
		{reason: "a role that is left out", object: podText(", namespace: default, labels: {role: spring-app}", "")},
		{reason: "a pod that opted out", object: podText(", namespace: default, labels: {policies.kyverno.io/test-mutate-rules-injection: disabled}", "")},
		{reason: "another role", object: podText(", namespace: default, labels: {role: web}", ""), want: want("5", "30", "40")},
		{reason: "the role in another namespace", object: podText(", namespace: scripts, labels: {role: spring-app}", ""), want: want("5", "30", "40")},
		{reason: "at an update", object: podText(", namespace: scripts, labels: {a: b}", ""), old: podText(", namespace: scripts", "")},
	}
}
