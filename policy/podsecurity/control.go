package podsecurity

import (
	"slices"
	"strings"

	"k8s.io/pod-security-admission/api"
)

// scope is the location of a control's fields.
type scope int

const (
	anywhere   scope = iota // in the pod and in its containers
	inPod                   // in the pod only
	containers              // in containers only
)

// control is a control of the standards as policies name it.
type control struct {
	name   string
	level  api.Level // the lowest that has it
	scope  scope
	checks []string // the identifiers of Kubernetes' checks
	fields []string // fields that can be excluded; containers. means the three lists
}

// controls returns the controls. A check of Kubernetes that is in none of them
// can be violated, and not excluded.
func controls() []control {
	return []control{
		{"Capabilities", api.LevelBaseline, containers, []string{"capabilities_baseline", "capabilities_restricted"},
			[]string{"containers.securityContext.capabilities.add", "containers.securityContext.capabilities.drop"}},
		{"Seccomp", api.LevelBaseline, anywhere, []string{"seccompProfile_baseline", "seccompProfile_restricted"}, []string{
			"spec.securityContext.seccompProfile.type", "containers.securityContext.seccompProfile.type", annotations,
			annotations + "[" + seccompPod + "]", annotations + "[" + seccompContainer + "*]",
		}},
		{"Privileged Containers", api.LevelBaseline, containers, []string{"privileged"}, []string{"containers.securityContext.privileged"}},
		{"Host Ports", api.LevelBaseline, containers, []string{"hostPorts"}, []string{"containers.ports[*].hostPort"}},
		{"/proc Mount Type", api.LevelBaseline, containers, []string{"procMount", "procMount_restricted"}, []string{"containers.securityContext.procMount"}},
		{"Host Probes / Lifecycle Hooks", api.LevelBaseline, containers, []string{"hostProbesAndHostLifecycle"}, handlerFields()},
		{"HostProcess", api.LevelBaseline, anywhere, []string{"windowsHostProcess"},
			[]string{"spec.securityContext.windowsOptions.hostProcess", "containers.securityContext.windowsOptions.hostProcess"}},
		{"SELinux", api.LevelBaseline, anywhere, []string{"seLinuxOptions"}, []string{
			"spec.securityContext.seLinuxOptions.type", "spec.securityContext.seLinuxOptions.user", "spec.securityContext.seLinuxOptions.role",
			"containers.securityContext.seLinuxOptions.type", "containers.securityContext.seLinuxOptions.user", "containers.securityContext.seLinuxOptions.role",
		}},
		{"Host Namespaces", api.LevelBaseline, inPod, []string{"hostNamespaces"}, []string{"spec.hostNetwork", "spec.hostPID", "spec.hostIPC"}},
		{"HostPath Volumes", api.LevelBaseline, inPod, []string{"hostPathVolumes"}, []string{"spec.volumes[*].hostPath"}},
		{"Sysctls", api.LevelBaseline, inPod, []string{"sysctls"}, []string{"spec.securityContext.sysctls[*].name"}},
		{"AppArmor", api.LevelBaseline, anywhere, []string{"appArmorProfile"}, []string{
			"spec.securityContext.appArmorProfile.type", "containers.securityContext.appArmorProfile.type", annotations, annotations + "[" + appArmor + "*]",
		}},
		{"Privilege Escalation", api.LevelRestricted, containers, []string{"allowPrivilegeEscalation"},
			[]string{"containers.securityContext.allowPrivilegeEscalation"}},
		{"Running as Non-root", api.LevelRestricted, anywhere, []string{"runAsNonRoot"},
			[]string{"spec.securityContext.runAsNonRoot", "containers.securityContext.runAsNonRoot"}},
		{"Running as Non-root user", api.LevelRestricted, anywhere, []string{"runAsUser"},
			[]string{"spec.securityContext.runAsUser", "containers.securityContext.runAsUser"}},
		{"Volume Types", api.LevelRestricted, inPod, []string{"restrictedVolumes"}, volumeFields()},
	}
}

// controlOf returns the control that a check belongs to; the zero control if none.
func controlOf(check string) control {
	all := controls()
	if i := slices.IndexFunc(all, func(c control) bool { return slices.Contains(c.checks, check) }); i >= 0 {
		return all[i]
	}
	return control{}
}

// named returns the control of a name.
func named(name string) (control, bool) {
	all := controls()
	i := slices.IndexFunc(all, func(c control) bool { return c.name == name })
	if i < 0 {
		return control{}, false
	}
	return all[i], true
}

// names lists the controls that a level has, for a message.
func names(level api.Level) string {
	var list []string
	for _, c := range controls() {
		if level == api.LevelRestricted || c.level == level {
			list = append(list, c.name)
		}
	}
	return strings.Join(list, ", ")
}

// spelled returns the fields of a control as policies write them.
func (c control) spelled() []string {
	var list []string
	for _, field := range c.fields {
		below, ok := strings.CutPrefix(field, "containers.")
		if !ok {
			list = append(list, field)
			continue
		}
		for _, kind := range kinds() {
			list = append(list, "spec."+kind+"[*]."+below)
		}
	}
	return list
}

// kinds are the lists of containers, in the order in which Kubernetes asks.
func kinds() [3]string { return [3]string{"initContainers", "containers", "ephemeralContainers"} }

// handlerFields are where a probe or hook names a host.
func handlerFields() []string {
	var list []string
	for _, handler := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"} {
		list = append(list, "containers."+handler+".httpGet.host", "containers."+handler+".tcpSocket.host")
	}
	return list
}
