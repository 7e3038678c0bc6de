package main

import (
	"fmt"
	"strings"
)

// control is one of the Pod Security Standards, as a condition in CEL. The variable containers has those of all kinds.
type control struct{ name, expression string }

// controls are the 18 policies of the Pod Security Standards (Kubernetes 1.37), baseline and then restricted.
func controls() []control {
	const (
		capabilities = "['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT']"
		sysctls      = "['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.ip_unprivileged_port_start', 'net.ipv4.tcp_syncookies', 'net.ipv4.ping_group_range']"
		volumes      = "has(v.configMap) || has(v.csi) || has(v.downwardAPI) || has(v.emptyDir) || has(v.ephemeral) || has(v.persistentVolumeClaim) || has(v.projected) || has(v.secret)"
		all          = "variables.containers.all(c, "
		context      = "object.spec.?securityContext"
	)
	return []control{
		{"capabilities", all + "c.?securityContext.?capabilities.?add.orValue([]).all(x, x in " + capabilities + "))"},
		{"host-namespaces", "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)"},
		{"host-path", "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))"},
		{"host-ports", all + "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))"},
		{"host-ports-range", all + "c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0 || p.hostPort >= 5000 && p.hostPort <= 6000))"},
		{"host-process", "!" + context + ".?windowsOptions.?hostProcess.orValue(false) && " + all + "!c.?securityContext.?windowsOptions.?hostProcess.orValue(false))"},
		{"privileged", all + "!c.?securityContext.?privileged.orValue(false))"},
		{"proc-mount", all + "c.?securityContext.?procMount.orValue('Default') == 'Default')"},
		{"selinux", context + ".?seLinuxOptions.?type.orValue('') in ['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']"},
		{"apparmor", all + "c.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost'])"},
		{"seccomp", all + "c.?securityContext.?seccompProfile.?type.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost'])"},
		{"sysctls", context + ".?sysctls.orValue([]).all(s, s.name in " + sysctls + ")"},
		{"capabilities-strict", all + "'ALL' in c.?securityContext.?capabilities.?drop.orValue([]) && c.?securityContext.?capabilities.?add.orValue([]).all(x, x == 'NET_BIND_SERVICE'))"},
		{"privilege-escalation", all + "!c.?securityContext.?allowPrivilegeEscalation.orValue(true))"},
		{"root-user", context + ".?runAsUser.orValue(1) != 0 && " + all + "c.?securityContext.?runAsUser.orValue(1) != 0)"},
		{"non-root", all + "c.?securityContext.?runAsNonRoot.orValue(" + context + ".?runAsNonRoot.orValue(false)))"},
		{"seccomp-strict", all + "c.?securityContext.?seccompProfile.?type.orValue(" + context + ".?seccompProfile.?type.orValue('')) in ['RuntimeDefault', 'Localhost'])"},
		{"volume-types", "object.spec.?volumes.orValue([]).all(v, " + volumes + ")"},
	}
}

// containers is the expression of the variable.
const containers = "object.spec.containers + object.spec.?initContainers.orValue([]) + object.spec.?ephemeralContainers.orValue([])"

// matching is the match of each policy: pods of one namespace.
const matching = `
    namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%s]}]}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods, pods/ephemeralcontainers]}]`

// validatingPolicies are the controls as ValidatingPolicies for a namespace, which ask to be evaluated by the API server.
func validatingPolicies(namespace string) string {
	return policiesOf("ValidatingPolicy", namespace, "", true)
}

// webhookPolicies are the controls as policies of a namespace: the gateway is asked about no other one.
func webhookPolicies(namespace string) string {
	return policiesOf("NamespacedValidatingPolicy", namespace, ", namespace: "+namespace, false)
}

// policiesOf has no generated rules for controllers of pods: those by hand are about pods alone, too.
func policiesOf(kind, namespace, in string, native bool) string {
	var all []string
	for _, c := range controls() {
		all = append(all, fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: %[1]s
metadata: {name: %[2]s-%[3]s%[4]s}
spec:
  autogen: {podControllers: {controllers: []}, validatingAdmissionPolicy: {enabled: %[5]t}}
  validationActions: [Deny]
  matchConstraints:%[6]s
  variables: [{name: containers, expression: %[7]q}]
  validations: [{expression: %[8]q, message: "the pod violates %[3]s"}]
`, kind, namespace, c.name, in, native, fmt.Sprintf(matching, namespace), containers, c.expression))
	}
	return strings.Join(all, "\n---\n")
}

// admissionPolicies are the controls as one writes them for the API server, with a binding each.
func admissionPolicies(namespace string) string {
	var all []string
	for _, c := range controls() {
		all = append(all, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s-%[2]s}
spec:
  failurePolicy: Fail
  matchConstraints:%[3]s
  variables: [{name: containers, expression: %[4]q}]
  validations: [{expression: %[5]q, message: "the pod violates %[2]s"}]
`, namespace, c.name, fmt.Sprintf(matching, namespace), containers, c.expression), fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s-%[2]s}
spec: {policyName: %[1]s-%[2]s, validationActions: [Deny]}
`, namespace, c.name))
	}
	return strings.Join(all, "\n---\n")
}
