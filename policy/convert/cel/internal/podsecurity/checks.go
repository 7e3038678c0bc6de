package podsecurity

import (
	"strings"

	"k8s.io/pod-security-admission/api"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
)

// fault is a field that a check may forbid. Expressions of a container read it as container, and others
// read the pod's spec and metadata as \\x01S and \\x01M.
type fault struct {
	// field is its name, below the container or from the root of the pod.
	field string
	// good holds where the field is not forbidden. Of elements it reads one.
	good string
	// of is a list, or a map, of which each element is a fault of its own; name is an element's.
	of, name string
	// value is the text that is forbidden, an expression. values are a list of such texts, of which each
	// must be excluded. fixed is a text that is always the same. Without any, the field is missing, and
	// excluded whatever the values.
	value, values, fixed string
	// empty: the value may be empty, which no exclusion names.
	empty bool
	// kinds: the names of fields below field are those of an element.
	kinds bool
}

// check is a check of Kubernetes.
type check struct {
	control, message string
	level            api.Level
	pod, containers  []fault
	// short is the form of containers where nothing but images is excluded.
	short string
	// windows pods meet it.
	windows bool
}

const (
	// Names in the pod: its spec, its metadata, and the variable with its containers.
	podContext = "\x01S.?securityContext.?"
	context    = "container.?securityContext.?"
	profiles   = "['RuntimeDefault', 'Localhost']"
	appArmor   = "container.apparmor.security.beta.kubernetes.io/"
	seccomp    = "seccomp.security.alpha.kubernetes.io/pod"
	seccompOf  = "container.seccomp.security.alpha.kubernetes.io/"
	notes      = "metadata.annotations"
)

// checks returns the checks in the revisions of a version, in the order of the standards.
func checks(version api.Version) []check {
	before := func(minor int) bool { return version.Older(api.MajorMinorVersion(1, minor)) }
	return append(baseline(before), restricted(before)...)
}

func baseline(before func(minor int) bool) []check {
	return []check{
		{control: "HostProcess", message: "Windows pods and containers must not be host processes (windowsOptions.hostProcess).",
			pod: []fault{{field: "spec.securityContext.windowsOptions.hostProcess",
				good: podContext + "windowsOptions.?hostProcess.orValue(false) == false", fixed: "true"}},
			containers: []fault{{field: "securityContext.windowsOptions.hostProcess",
				good: context + "windowsOptions.?hostProcess.orValue(false) == false", fixed: "true"}}},
		{control: "Host Namespaces", message: "Pods must not use the network, processes and IPC of the host (hostNetwork, hostPID, hostIPC).", pod: []fault{
			{field: "spec.hostNetwork", good: "\x01S.?hostNetwork.orValue(false) == false", fixed: "true"},
			{field: "spec.hostPID", good: "\x01S.?hostPID.orValue(false) == false", fixed: "true"},
			{field: "spec.hostIPC", good: "\x01S.?hostIPC.orValue(false) == false", fixed: "true"},
		}},
		{control: "Privileged Containers", message: "Containers must not be privileged.",
			containers: []fault{{field: "securityContext.privileged", good: context + "privileged.orValue(false) == false", fixed: "true"}}},
		{control: "Capabilities", message: "Containers must not add capabilities beyond the default set.", containers: []fault{
			added("capability in ['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT']"),
		}},
		{control: "HostPath Volumes", message: "Pods must not have hostPath volumes.", pod: []fault{
			{field: "spec.volumes[*].hostPath", of: "\x01S.?volumes.orValue([])", name: "volume",
				good: "!has(volume.hostPath)", value: "volume.hostPath.path", empty: true},
		}},
		{control: "Host Ports", message: "Containers must not use ports of the host.", containers: []fault{
			{field: "ports[*].hostPort", of: "container.?ports.orValue([])", name: "port", good: "port.?hostPort.orValue(0) == 0", value: "string(port.hostPort)"},
		}},
		handlers(),
		{control: "AppArmor", message: "AppArmor profiles must be RuntimeDefault or Localhost.", pod: []fault{
			{field: "spec.securityContext.appArmorProfile.type",
				good: podContext + "appArmorProfile.?type.orValue('RuntimeDefault') in " + profiles, value: podContext + "appArmorProfile.?type.orValue('')", empty: true},
			{field: notes + "[" + appArmor + "*]", of: "\x01M.?annotations.orValue({})", name: "key", value: "\x01M.annotations[key]",
				good: "!key.startsWith('" + appArmor + "') || \x01M.annotations[key] in ['', 'runtime/default'] || \x01M.annotations[key].startsWith('localhost/')"},
		}, containers: []fault{
			{field: "securityContext.appArmorProfile.type",
				good: context + "appArmorProfile.?type.orValue('RuntimeDefault') in " + profiles, value: context + "appArmorProfile.?type.orValue('')", empty: true},
		}},
		seLinux(before(31)),
		{control: "/proc Mount Type", message: "Containers must have the default /proc mount (procMount).",
			containers: []fault{{field: "securityContext.procMount",
				good: context + "procMount.orValue('Default') == 'Default'", value: context + "procMount.orValue('')", empty: true}}},
		seccompBaseline(before(19)),
		{control: "Sysctls", message: "Pods must not set sysctls beyond the safe set.", pod: []fault{
			{field: "spec.securityContext.sysctls[*].name", of: podContext + "sysctls.orValue([])", name: "sysctl",
				good: "sysctl.name in " + sysctls(before), value: "sysctl.name", empty: true},
		}},
	}
}

func restricted(before func(minor int) bool) []check {
	of := func(c check) check { c.level = api.LevelRestricted; return c }
	return []check{
		of(check{control: "Volume Types", message: "Pods must not have volumes of other types than those of the level restricted.", pod: []fault{
			{field: "spec.volumes[*]", of: "\x01S.?volumes.orValue([])", name: "volume", kinds: true,
				good: "['configMap', 'csi', 'downwardAPI', 'emptyDir', 'ephemeral', 'image', 'persistentVolumeClaim', 'projected', 'secret'].exists(type, type in volume)"},
		}}),
		of(check{control: "Privilege Escalation", message: "Containers must set securityContext.allowPrivilegeEscalation to false.", windows: !before(25),
			short: context + "allowPrivilegeEscalation.orValue(true) == false", containers: []fault{
				{field: "securityContext.allowPrivilegeEscalation", good: "has(container.securityContext)"},
				{field: "securityContext.allowPrivilegeEscalation",
					good: "!has(container.securityContext) || has(container.securityContext.allowPrivilegeEscalation)", fixed: "nil"},
				{field: "securityContext.allowPrivilegeEscalation", good: context + "allowPrivilegeEscalation.orValue(false) == false", fixed: "true"},
			}}),
		of(check{control: "Running as Non-root", message: "Pods or containers must set securityContext.runAsNonRoot to true.",
			short: context + "runAsNonRoot.orValue(" + podContext + "runAsNonRoot.orValue(false)) == true",
			pod:   []fault{{field: "spec.securityContext.runAsNonRoot", good: podContext + "runAsNonRoot.orValue(true) == true", fixed: "false"}},
			containers: []fault{
				{field: "securityContext.runAsNonRoot", good: context + "runAsNonRoot.orValue(true) == true", fixed: "false"},
				{field: "securityContext.runAsNonRoot", good: context + "runAsNonRoot.hasValue() || " + podContext + "runAsNonRoot.orValue(false) == true"},
			}}),
		of(check{control: "Running as Non-root user", message: "Pods and containers must not set securityContext.runAsUser to 0.",
			pod:        []fault{{field: "spec.securityContext.runAsUser", good: podContext + "runAsUser.orValue(1) != 0", fixed: "0"}},
			containers: []fault{{field: "securityContext.runAsUser", good: context + "runAsUser.orValue(1) != 0", fixed: "0"}}}),
		of(check{control: "Seccomp", message: "Pods or containers must set the seccomp profile to RuntimeDefault or Localhost.", windows: !before(25),
			short: context + "seccompProfile.?type.orValue(" + podContext + "seccompProfile.?type.orValue('')) in " + profiles, pod: seccompBaseline(false).pod,
			containers: append(seccompBaseline(false).containers,
				fault{field: "securityContext.seccompProfile.type", good: context + "seccompProfile.hasValue() || " + podContext + "seccompProfile.hasValue()"})}),
		of(check{control: "Capabilities", message: "Containers must drop ALL capabilities, and must not add others than NET_BIND_SERVICE.", windows: !before(25), containers: []fault{
			{field: "securityContext.capabilities.drop",
				good: "'ALL' in " + context + "capabilities.?drop.orValue([])", values: context + "capabilities.?drop.orValue([])"},
			added("capability == 'NET_BIND_SERVICE'"),
		}}),
	}
}

// added is the fault of added capabilities, of which all that are not allowed must be excluded.
func added(allowed string) fault {
	const list = context + "capabilities.?add.orValue([])"
	return fault{field: "securityContext.capabilities.add",
		good: list + ".all(capability, " + allowed + ")", values: list + ".filter(capability, " + celtext.Not(allowed) + ")"}
}

// handlers is the check of hosts in probes and hooks.
func handlers() check {
	c := check{control: "Host Probes / Lifecycle Hooks", message: "Probes and lifecycle hooks of containers must not name a host.",
		short: "[container.?livenessProbe, container.?readinessProbe, container.?startupProbe, container.?lifecycle.?postStart, container.?lifecycle.?preStop]" +
			".all(handler, handler.?httpGet.?host.orValue('') == '' && handler.?tcpSocket.?host.orValue('') == '')"}
	for _, handler := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"} {
		for _, by := range []string{"httpGet", "tcpSocket"} {
			host := "container.?" + strings.ReplaceAll(handler, ".", ".?") + ".?" + by + ".?host.orValue('')"
			c.containers = append(c.containers, fault{field: handler + "." + by + ".host", good: host + " == ''", value: host})
		}
	}
	return c
}

func seLinux(old bool) check {
	types := "['', 'container_t', 'container_init_t', 'container_kvm_t', 'container_engine_t']"
	if old {
		types = "['', 'container_t', 'container_init_t', 'container_kvm_t']"
	}
	c := check{control: "SELinux", message: "SELinux options must not set user and role, and only types of containers."}
	for _, part := range []struct{ name, good string }{{"type", " in " + types}, {"user", " == ''"}, {"role", " == ''"}} {
		of := "seLinuxOptions.?" + part.name + ".orValue('')"
		c.pod = append(c.pod, fault{field: "spec.securityContext.seLinuxOptions." + part.name, good: podContext + of + part.good, value: podContext + of})
		c.containers = append(c.containers, fault{field: "securityContext.seLinuxOptions." + part.name, good: context + of + part.good, value: context + of})
	}
	return c
}

// seccompBaseline is the check of profiles; before version 1.19 of the annotations for them.
func seccompBaseline(old bool) check {
	c := check{control: "Seccomp", message: "Seccomp profiles must be RuntimeDefault or Localhost."}
	if !old {
		const of = "seccompProfile.?type.orValue("
		c.pod = []fault{{field: "spec.securityContext.seccompProfile.type",
			good: podContext + of + "'RuntimeDefault') in " + profiles, value: podContext + of + "'')", empty: true}}
		c.containers = []fault{{field: "securityContext.seccompProfile.type",
			good: context + of + "'RuntimeDefault') in " + profiles, value: context + of + "'')", empty: true}}
		return c
	}
	const valid = "\x01M.annotations[key] in ['runtime/default', 'docker/default'] || \x01M.annotations[key].startsWith('localhost/')"
	const all = "\x01M.?annotations.orValue({})"
	c.pod = []fault{
		{field: notes + "[" + seccomp + "]", of: all, name: "key", good: "key != '" + seccomp + "' || " + valid, value: "\x01M.annotations[key]", empty: true},
		{field: notes + "[" + seccompOf + "*]", of: all, name: "key", value: "\x01M.annotations[key]", empty: true,
			good: "!variables.\x01C.exists(container, key == '" + seccompOf + "' + container.name) || " + valid},
	}
	return c
}

func sysctls(before func(minor int) bool) string {
	names := []string{"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range",
		"net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"}
	for _, later := range []struct {
		minor int
		names []string
	}{
		{27, []string{"net.ipv4.ip_local_reserved_ports"}},
		{29, []string{"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"}},
		{32, []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}},
		{37, []string{"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"}},
	} {
		if !before(later.minor) {
			names = append(names, later.names...)
		}
	}
	return "['" + strings.Join(names, "', '") + "']"
}
