package validating_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// control is a policy for a control of the Pod Security Standards, as policies of this
// dialect are written: a pod that meets all of them, and one thing wrong with it.
type control struct{ name, variables, expression, wrong string }

const good = `{
  hostNetwork: false,
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}, sysctls: [{name: net.ipv4.tcp_syncookies, value: "1"}]},
  initContainers: [{name: init, image: "a.example/init:1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}],
  containers: [
    {name: a, image: "a.example/a:1", ports: [{containerPort: 80}], securityContext: {allowPrivilegeEscalation: false, privileged: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}, seLinuxOptions: {type: container_t}}},
    {name: b, image: "a.example/b:1", livenessProbe: {httpGet: {path: /, port: 80}}, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, procMount: Default}}],
  volumes: [{name: v, emptyDir: {}}, {name: c, configMap: {name: c}}]}`

func controls() []control {
	const known = "['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT']"
	one := func(context string) string { return "{containers: [{name: a, securityContext: " + context + "}]}" }
	return []control{
		{"capabilities", "", "variables.all.all(c, c.?securityContext.?capabilities.?add.orValue([]).all(k, k in " + known + "))", one("{capabilities: {add: [SYS_ADMIN]}}")},
		{"host-namespaces", "", "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) && !object.spec.?hostIPC.orValue(false)", "{hostPID: true, containers: []}"},
		{"host-path", "", "object.spec.?volumes.orValue([]).all(v, !has(v.hostPath))", "{containers: [], volumes: [{name: v, hostPath: {path: /}}]}"},
		{"host-ports", "", "variables.all.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0))", "{containers: [{name: a, ports: [{hostPort: 80}]}]}"},
		{"host-ports-range", "", "variables.all.all(c, c.?ports.orValue([]).all(p, p.?hostPort.orValue(0) == 0 || p.hostPort >= 5000 && p.hostPort <= 6000))", "{containers: [{name: a, ports: [{hostPort: 80}]}]}"},
		{"host-process", "", "!object.spec.?securityContext.?windowsOptions.?hostProcess.orValue(false) && variables.all.all(c, !c.?securityContext.?windowsOptions.?hostProcess.orValue(false))", one("{windowsOptions: {hostProcess: true}}")},
		{"host-probes", "", "variables.all.all(c, ['livenessProbe', 'readinessProbe', 'startupProbe'].all(p, c[?p].?httpGet.?host.orValue('') == '' && c[?p].?tcpSocket.?host.orValue('') == ''))", "{containers: [{name: a, livenessProbe: {httpGet: {host: 10.0.0.1}}}]}"},
		{"privileged", "", "variables.all.all(c, c.?securityContext.?privileged.orValue(false) == false)", one("{privileged: true}")},
		{"proc-mount", "", "variables.all.all(c, c.?securityContext.?procMount.orValue('Default') == 'Default')", one("{procMount: Unmasked}")},
		{"selinux", `  - name: types
    expression: "[''] + ['container_t', 'container_init_t', 'container_kvm_t']"
`, "([object.spec] + variables.all).all(c, c.?securityContext.?seLinuxOptions.?type.orValue('') in variables.types && c.?securityContext.?seLinuxOptions.?user.orValue('') == '' && c.?securityContext.?seLinuxOptions.?role.orValue('') == '')", one("{seLinuxOptions: {role: r}}")},
		{"apparmor", "", "([object.spec] + variables.all).all(c, c.?securityContext.?appArmorProfile.?type.orValue('RuntimeDefault') in ['RuntimeDefault', 'Localhost']) && object.metadata.?annotations.orValue({}).all(k, !k.startsWith('container.apparmor') || object.metadata.annotations[k] != 'unconfined')", one("{appArmorProfile: {type: Unconfined}}")},
		{"seccomp", "", "([object.spec] + variables.all).all(c, c.?securityContext.?seccompProfile.?type.orValue('RuntimeDefault') != 'Unconfined')", one("{seccompProfile: {type: Unconfined}}")},
		{"sysctls", "", "object.spec.?securityContext.?sysctls.orValue([]).all(s, s.name in ['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies', 'net.ipv4.ping_group_range'])", "{containers: [], securityContext: {sysctls: [{name: kernel.msgmax}]}}"},
		{"capabilities-strict", "", "variables.all.all(c, c.?securityContext.?capabilities.?drop.orValue([]).exists(k, k == 'ALL') && c.?securityContext.?capabilities.?add.orValue([]).all(k, k == 'NET_BIND_SERVICE'))", one("{capabilities: {drop: [ALL], add: [CHOWN]}}")},
		{"privilege-escalation", "", "variables.all.all(c, c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false)", one("{}")},
		{"run-as-non-root-user", "", "object.spec.?securityContext.?runAsUser.orValue(1) != 0 && variables.all.all(c, c.?securityContext.?runAsUser.orValue(1) > 0)", one("{runAsUser: 0}")},
		{"run-as-non-root", `  - name: pod
    expression: object.spec.?securityContext.?runAsNonRoot.orValue(false)
`, "variables.all.all(c, c.?securityContext.?runAsNonRoot.orValue(variables.pod))", one("{}")},
		{"volume-types", "", "object.spec.?volumes.orValue([]).all(v, ['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'image', 'persistentVolumeClaim', 'projected', 'secret'].exists(t, t in v))", "{containers: [], volumes: [{name: v, nfs: {path: /}}]}"},
	}
}

func (c control) text() string {
	return fmt.Sprintf("apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: %s}\n", c.name) + about("pods", fmt.Sprintf(`  variables:
  - name: all
    expression: >-
      object.spec.containers
      + object.spec.?initContainers.orValue([])
      + object.spec.?ephemeralContainers.orValue([])
%s  validations:
  - expression: >-
      %s
    message: %s is not met
`, c.variables, c.expression, c.name))
}

// TestControls has each control met by the good pod and its controllers, and held
// against a pod with one thing wrong, and its controllers.
func TestControls(t *testing.T) {
	for _, c := range controls() {
		policies := []*policy.Policy{compile(t, c.text())}
		for _, wrap := range []func(string) string{pod, deployment, cronJob} {
			if what, why := verdict(validate(t, subject(t, wrap(good)), policies)); what != "pass" {
				t.Errorf("%s: the good %T: %s %s", c.name, wrap, what, why)
			}
			what, why := verdict(validate(t, subject(t, wrap(c.wrong)), policies))
			if want := "spec.validations[0]: " + c.name + " is not met\n"; what != "fail" || why != want {
				t.Errorf("%s: the wrong one: %s %s", c.name, what, why)
			}
		}
	}
}

// TestConcurrent shares compiled policies between requests.
func TestConcurrent(t *testing.T) {
	var policies []*policy.Policy
	for _, c := range controls()[:4] {
		policies = append(policies, compile(t, c.text()))
	}
	set, err := set.New(policies...)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		for want, spec := range map[policy.Result]string{policy.Pass: good, policy.Fail: controls()[0].wrong} {
			s := subject(t, deployment(spec))
			group.Go(func() {
				for range 20 {
					if got := set.Validate(t.Context(), s, nil)[0].Ruling.Result; got != want {
						t.Errorf("%s, want %s", got, want)
					}
				}
			})
		}
	}
	group.Wait()
}

func BenchmarkControls(b *testing.B) {
	var policies []*policy.Policy
	for _, c := range controls() {
		policies = append(policies, compile(b, c.text()))
	}
	set, err := set.New(policies...)
	if err != nil {
		b.Fatal(err)
	}
	s := subject(b, pod(good))
	for _, r := range set.Validate(b.Context(), s, nil) {
		if r.Ruling.Result != policy.Pass {
			b.Fatal(r.Policy.Name, r.Ruling.Reasons)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		set.Validate(b.Context(), s, nil)
	}
}
