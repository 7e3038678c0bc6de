package podsecurity

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	core "k8s.io/api/core/v1"
)

// find lists the fields that a check of Kubernetes does not allow. An unsupported check
// has none, so that it is violated and cannot be excluded.
func (f *finder) find(check string) []fault {
	switch check {
	case "hostNamespaces":
		f.hostNamespaces()
	case "hostPathVolumes":
		f.hostPaths()
	case "restrictedVolumes":
		f.volumes()
	case "sysctls":
		f.sysctls()
	case "appArmorProfile":
		f.appArmor()
	case "seLinuxOptions":
		f.seLinux()
	case "seccompProfile_baseline", "seccompProfile_restricted":
		f.seccomp()
	case "windowsHostProcess":
		f.hostProcess()
	case "runAsNonRoot":
		f.nonRoot()
	case "runAsUser":
		f.user()
	default:
		for _, p := range f.places() {
			f.ofContainer(check, p)
		}
	}
	return f.found
}

// ofContainer finds the faults of the checks that are about containers only.
func (f *finder) ofContainer(check string, p place) {
	switch check {
	case "privileged":
		if v := p.context().Privileged; v != nil {
			f.ofContext(p, "privileged", core.SecurityContext{Privileged: v}, *v)
		}
	case "procMount", "procMount_restricted":
		if v := p.context().ProcMount; v != nil {
			f.ofContext(p, "procMount", core.SecurityContext{ProcMount: v}, string(*v))
		}
	case "allowPrivilegeEscalation":
		f.escalation(p)
	case "capabilities_baseline", "capabilities_restricted":
		f.capabilities(p)
	case "hostPorts":
		for i, port := range p.Ports {
			f.inContainer(p, "ports["+strconv.Itoa(i)+"].hostPort", core.Container{Ports: []core.ContainerPort{{HostPort: port.HostPort}}}, nil, port.HostPort)
		}
	case "hostProbesAndHostLifecycle":
		f.handlers(p)
	}
}

func (f *finder) hostNamespaces() {
	f.inPod("spec.hostNetwork", core.PodSpec{HostNetwork: f.spec.HostNetwork}, f.spec.HostNetwork)
	f.inPod("spec.hostPID", core.PodSpec{HostPID: f.spec.HostPID}, f.spec.HostPID)
	f.inPod("spec.hostIPC", core.PodSpec{HostIPC: f.spec.HostIPC}, f.spec.HostIPC)
}

func (f *finder) hostPaths() {
	for i, volume := range f.spec.Volumes {
		if volume.HostPath != nil {
			f.inPod("spec.volumes["+strconv.Itoa(i)+"].hostPath", core.PodSpec{Volumes: []core.Volume{volume}}, volume.HostPath.Path)
		}
	}
}

// volumes have no values: the field itself is forbidden.
func (f *finder) volumes() {
	for i, volume := range f.spec.Volumes {
		f.inPod("spec.volumes["+strconv.Itoa(i)+"]."+source(volume.VolumeSource), core.PodSpec{Volumes: []core.Volume{volume}}, "")
	}
}

func (f *finder) sysctls() {
	if f.spec.SecurityContext == nil {
		return
	}
	for i, sysctl := range f.spec.SecurityContext.Sysctls {
		f.podContext("sysctls["+strconv.Itoa(i)+"].name", core.PodSecurityContext{Sysctls: []core.Sysctl{sysctl}}, sysctl.Name)
	}
}

func (f *finder) appArmor() {
	const field = "appArmorProfile.type"
	if pod := f.spec.SecurityContext; pod != nil && pod.AppArmorProfile != nil {
		f.podContext(field, core.PodSecurityContext{AppArmorProfile: pod.AppArmorProfile}, string(pod.AppArmorProfile.Type))
	}
	for _, p := range f.places() {
		if profile := p.context().AppArmorProfile; profile != nil {
			f.ofContext(p, field, core.SecurityContext{AppArmorProfile: profile}, string(profile.Type))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.meta.Annotations)) {
		if strings.HasPrefix(key, appArmor) {
			f.annotation(key, appArmor)
		}
	}
}

func (f *finder) seLinux() {
	parts := func(o *core.SELinuxOptions, add func(part string, alone *core.SELinuxOptions, value string)) {
		if o != nil {
			add("type", &core.SELinuxOptions{Type: o.Type}, o.Type)
			add("user", &core.SELinuxOptions{User: o.User}, o.User)
			add("role", &core.SELinuxOptions{Role: o.Role}, o.Role)
		}
	}
	if pod := f.spec.SecurityContext; pod != nil {
		parts(pod.SELinuxOptions, func(part string, alone *core.SELinuxOptions, value string) {
			f.podContext("seLinuxOptions."+part, core.PodSecurityContext{SELinuxOptions: alone}, value)
		})
	}
	for _, p := range f.places() {
		parts(p.context().SELinuxOptions, func(part string, alone *core.SELinuxOptions, value string) {
			f.ofContext(p, "seLinuxOptions."+part, core.SecurityContext{SELinuxOptions: alone}, value)
		})
	}
}

// seccomp: a container without a profile has the pod's profile, so that a pod with a
// forbidden one is one fault.
func (f *finder) seccomp() {
	const field = "seccompProfile.type"
	pod := f.spec.SecurityContext
	set := pod != nil && pod.SeccompProfile != nil
	if set {
		f.podContext(field, core.PodSecurityContext{SeccompProfile: pod.SeccompProfile}, string(pod.SeccompProfile.Type))
	}
	for _, p := range f.places() {
		switch profile := p.context().SeccompProfile; {
		case profile != nil:
			f.ofContext(p, field, core.SecurityContext{SeccompProfile: profile}, string(profile.Type))
		case !set:
			f.ofContext(p, field, core.SecurityContext{}, nil)
		}
		f.annotation(seccompContainer+p.Name, seccompContainer)
	}
	f.annotation(seccompPod, "")
}

func (f *finder) hostProcess() {
	const field = "windowsOptions.hostProcess"
	if pod := f.spec.SecurityContext; pod != nil && pod.WindowsOptions != nil && pod.WindowsOptions.HostProcess != nil {
		f.podContext(field, core.PodSecurityContext{WindowsOptions: pod.WindowsOptions}, *pod.WindowsOptions.HostProcess)
	}
	for _, p := range f.places() {
		if options := p.context().WindowsOptions; options != nil && options.HostProcess != nil {
			f.ofContext(p, field, core.SecurityContext{WindowsOptions: options}, *options.HostProcess)
		}
	}
}

func (f *finder) nonRoot() {
	const field = "runAsNonRoot"
	var pod *bool
	if f.spec.SecurityContext != nil {
		pod = f.spec.SecurityContext.RunAsNonRoot
	}
	if pod != nil {
		f.podContext(field, core.PodSecurityContext{RunAsNonRoot: pod}, *pod)
	}
	for _, p := range f.places() {
		switch own := p.context().RunAsNonRoot; {
		case own != nil:
			f.ofContext(p, field, core.SecurityContext{RunAsNonRoot: own}, *own)
		case pod == nil || !*pod:
			f.ofContext(p, field, core.SecurityContext{}, nil)
		}
	}
}

func (f *finder) user() {
	const field = "runAsUser"
	if pod := f.spec.SecurityContext; pod != nil && pod.RunAsUser != nil {
		f.podContext(field, core.PodSecurityContext{RunAsUser: pod.RunAsUser}, *pod.RunAsUser)
	}
	for _, p := range f.places() {
		if own := p.context().RunAsUser; own != nil {
			f.ofContext(p, field, core.SecurityContext{RunAsUser: own}, *own)
		}
	}
}

// escalation: in a security context without the field its value is called nil, as by
// Kyverno, so that only an exclusion of that value covers it.
func (f *finder) escalation(p place) {
	const field = "allowPrivilegeEscalation"
	switch own := p.context().AllowPrivilegeEscalation; {
	case p.SecurityContext == nil:
		f.ofContext(p, field, core.SecurityContext{}, nil)
	case own == nil:
		f.ofContext(p, field, core.SecurityContext{}, "nil")
	default:
		f.ofContext(p, field, core.SecurityContext{AllowPrivilegeEscalation: own}, *own)
	}
}

// capabilities checks each added one together with a drop of ALL, and the drops without
// any added one.
func (f *finder) capabilities(p place) {
	all := []core.Capability{"ALL"}
	var own core.Capabilities
	if c := p.context().Capabilities; c != nil {
		own = *c
	}
	var dropped any
	if len(own.Drop) > 0 {
		dropped = texts(own.Drop)
	}
	f.ofContext(p, "capabilities.drop", core.SecurityContext{Capabilities: &core.Capabilities{Drop: own.Drop}}, dropped)
	var added []core.Capability
	for _, capability := range own.Add {
		alone := core.Container{SecurityContext: &core.SecurityContext{Capabilities: &core.Capabilities{Drop: all, Add: []core.Capability{capability}}}}
		if f.forbids(f.meta, core.PodSpec{Containers: []core.Container{alone}}) {
			added = append(added, capability)
		}
	}
	if len(added) > 0 {
		f.ofContext(p, "capabilities.add", core.SecurityContext{Capabilities: &core.Capabilities{Drop: all, Add: added}}, texts(added))
	}
}

func texts(list []core.Capability) []string {
	out := make([]string, len(list))
	for i, capability := range list {
		out[i] = string(capability)
	}
	return out
}

// handlers: a probe and a hook name hosts in the same two ways, which are asked
// about in a probe and in a hook of their own.
func (f *finder) handlers(p place) {
	probe := func(name string, own *core.Probe) {
		if own != nil {
			f.hosts(p, name, own.HTTPGet, own.TCPSocket)
		}
	}
	probe("livenessProbe", p.LivenessProbe)
	probe("readinessProbe", p.ReadinessProbe)
	probe("startupProbe", p.StartupProbe)
	if p.Lifecycle == nil {
		return
	}
	hook := func(name string, own *core.LifecycleHandler) {
		if own != nil {
			f.hosts(p, "lifecycle."+name, own.HTTPGet, own.TCPSocket)
		}
	}
	hook("postStart", p.Lifecycle.PostStart)
	hook("preStop", p.Lifecycle.PreStop)
}

func (f *finder) hosts(p place, handler string, get *core.HTTPGetAction, socket *core.TCPSocketAction) {
	ask := func(field, host string, alone core.ProbeHandler) {
		f.inContainer(p, handler+"."+field+".host", core.Container{LivenessProbe: &core.Probe{ProbeHandler: alone}}, nil, host)
	}
	if get != nil {
		ask("httpGet", get.Host, core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Host: get.Host}})
	}
	if socket != nil {
		ask("tcpSocket", socket.Host, core.ProbeHandler{TCPSocket: &core.TCPSocketAction{Host: socket.Host}})
	}
}
