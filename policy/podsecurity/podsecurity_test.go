package podsecurity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/podsecurity"
)

// strict is a pod that meets restricted; tests change one thing of it.
const strict = `
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {team: a}}
spec:
  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
  initContainers:
  - {name: init, image: busybox, securityContext: &safe {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
  containers:
  - name: web
    image: ghcr.io/acme/web:1.0
    env: [{name: A, value: b}]
    resources: {limits: {cpu: 100m, memory: 1Gi}}
    ports: [{containerPort: 80}]
    livenessProbe: {httpGet: {port: 80, path: /}}
    securityContext: *safe
  - {name: side, image: proxy, securityContext: *safe}
`

// change replaces text in the strict pod, which must be there.
func change(t testing.TB, pairs ...string) string {
	t.Helper()
	text := strict
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the pod", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func TestExclusions(t *testing.T) {
	type exclude = []podsecurity.Exclusion
	const (
		web    = "ports: [{containerPort: 80}]"
		inWeb  = "securityContext: *safe\n"
		inPod  = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
		probe  = "httpGet: {port: 80, path: /}"
		images = "ghcr.io/acme/*"
	)
	escalates := "securityContext: {allowPrivilegeEscalation: true, capabilities: {drop: [ALL], add: [SYS_TIME, NET_BIND_SERVICE, CHOWN]}}\n"
	for _, row := range []struct {
		name     string
		pod      string
		exclude  exclude
		violated []string // the rest; the twin of a row has one thing different
	}{
		{"nothing is wrong", strict, nil, nil},
		{"nothing is excluded", change(t, inWeb, escalates), nil, []string{"allowPrivilegeEscalation", "capabilities_baseline", "capabilities_restricted"}},
		{"a control for an image", change(t, inWeb, escalates), exclude{{ControlName: "Capabilities", Images: []string{images}}, {ControlName: "Privilege Escalation", Images: []string{images}}}, nil},
		{"a control for another image", change(t, inWeb, escalates), exclude{{ControlName: "Capabilities", Images: []string{"proxy"}}, {ControlName: "Privilege Escalation", Images: []string{images}}},
			[]string{"capabilities_baseline", "capabilities_restricted"}},
		{"another control", change(t, inWeb, escalates), exclude{{ControlName: "Privileged Containers", Images: []string{"*"}}}, []string{"allowPrivilegeEscalation", "capabilities_baseline", "capabilities_restricted"}},
		{"all the values", change(t, inWeb, escalates, "allowPrivilegeEscalation: true", "allowPrivilegeEscalation: false"),
			exclude{{ControlName: "Capabilities", Images: []string{images}, RestrictedField: "spec.containers[*].securityContext.capabilities.add", Values: []string{"SYS_*", "CHOWN"}}}, nil},
		{"some of the values", change(t, inWeb, escalates, "allowPrivilegeEscalation: true", "allowPrivilegeEscalation: false"),
			exclude{{ControlName: "Capabilities", Images: []string{images}, RestrictedField: "spec.containers[*].securityContext.capabilities.add", Values: []string{"SYS_*"}}}, []string{"capabilities_restricted"}},
		{"the same field of init containers", change(t, inWeb, escalates, "allowPrivilegeEscalation: true", "allowPrivilegeEscalation: false"),
			exclude{{ControlName: "Capabilities", Images: []string{"*"}, RestrictedField: "spec.initContainers[*].securityContext.capabilities.add", Values: []string{"*"}}}, []string{"capabilities_baseline", "capabilities_restricted"}},
		{"one of two containers", change(t, inWeb, "securityContext: {capabilities: {drop: [ALL]}}\n", "&safe {allowPrivilegeEscalation: false, ", "&safe {"),
			exclude{{ControlName: "Privilege Escalation", Images: []string{images, "busybox"}}}, []string{"allowPrivilegeEscalation"}},
		{"both containers", change(t, inWeb, "securityContext: {capabilities: {drop: [ALL]}}\n", "&safe {allowPrivilegeEscalation: false, ", "&safe {"),
			exclude{{ControlName: "Privilege Escalation", Images: []string{images, "busybox"}}, {ControlName: "Privilege Escalation", Images: []string{"proxy"}}}, nil},
		{"two containers of one name, one of them excluded", change(t, web, web+"\n    x: y", "name: side, image: proxy, securityContext: *safe", "name: web, image: proxy, securityContext: {privileged: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"),
			exclude{{ControlName: "Privileged Containers", Images: []string{images}}}, []string{"privileged"}},
		{"a field of the pod", change(t, "runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0"),
			exclude{{ControlName: "Running as Non-root user", RestrictedField: "spec.securityContext.runAsUser", Values: []string{"0"}}}, nil},
		{"a field of the pod with another value", change(t, "runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0"),
			exclude{{ControlName: "Running as Non-root user", RestrictedField: "spec.securityContext.runAsUser", Values: []string{"1"}}}, []string{"runAsUser"}},
		{"the pod only, and the containers say nothing", change(t, "runAsNonRoot: true, ", ""), exclude{{ControlName: "Running as Non-root"}}, []string{"runAsNonRoot"}},
		{"the containers", change(t, "runAsNonRoot: true, ", ""), exclude{{ControlName: "Running as Non-root", Images: []string{"*"}}}, nil},
		{"a missing field has no value", change(t, "runAsNonRoot: true, ", ""), exclude{
			{ControlName: "Running as Non-root", Images: []string{"*"}, RestrictedField: "spec.containers[*].securityContext.runAsNonRoot", Values: []string{"false"}},
			{ControlName: "Running as Non-root", Images: []string{"*"}, RestrictedField: "spec.initContainers[*].securityContext.runAsNonRoot", Values: []string{"false"}},
		}, nil},
		{"a forbidden profile of the pod", change(t, "RuntimeDefault", "Unconfined"), exclude{{ControlName: "Seccomp", RestrictedField: "spec.securityContext.seccompProfile.type", Values: []string{"Unconfined"}}}, nil},
		{"a forbidden profile of the pod and one of a container", change(t, "RuntimeDefault", "Unconfined", inWeb, "securityContext: {allowPrivilegeEscalation: false, seccompProfile: {type: Unconfined}, capabilities: {drop: [ALL]}}\n"),
			exclude{{ControlName: "Seccomp"}}, []string{"seccompProfile_baseline", "seccompProfile_restricted"}},
		{"an excluded container does not hide one without a profile", change(t, inPod, "securityContext: {runAsNonRoot: true}", inWeb, "securityContext: {allowPrivilegeEscalation: false, seccompProfile: {type: Unconfined}, capabilities: {drop: [ALL]}}\n"),
			exclude{{ControlName: "Seccomp"}, {ControlName: "Seccomp", Images: []string{images, "busybox"}}}, []string{"seccompProfile_restricted"}},
		{"one of two sysctls", change(t, "runAsNonRoot: true", "runAsNonRoot: true, sysctls: [{name: kernel.a, value: a}, {name: net.b, value: b}]"),
			exclude{{ControlName: "Sysctls", RestrictedField: "spec.securityContext.sysctls[*].name", Values: []string{"net.*"}}}, []string{"sysctls"}},
		{"both sysctls, one at a time", change(t, "runAsNonRoot: true", "runAsNonRoot: true, sysctls: [{name: kernel.a, value: a}, {name: net.b, value: b}]"), exclude{
			{ControlName: "Sysctls", RestrictedField: "spec.securityContext.sysctls[*].name", Values: []string{"net.*"}},
			{ControlName: "Sysctls", RestrictedField: "spec.securityContext.sysctls[*].name", Values: []string{"kernel.a"}},
		}, nil},
		{"a path of the host", change(t, "initContainers:", "volumes: [{name: a, hostPath: {path: /etc/nginx}}]\n  initContainers:"), exclude{
			{ControlName: "HostPath Volumes", RestrictedField: "spec.volumes[*].hostPath", Values: []string{"/etc/*"}},
			{ControlName: "Volume Types", RestrictedField: "spec.volumes[*].hostPath", Values: []string{"*"}},
		}, nil},
		{"another path of the host", change(t, "initContainers:", "volumes: [{name: a, hostPath: {path: /var/lib}}]\n  initContainers:"), exclude{
			{ControlName: "HostPath Volumes", RestrictedField: "spec.volumes[*].hostPath", Values: []string{"/etc/*"}},
			{ControlName: "Volume Types"},
		}, []string{"hostPathVolumes"}},
		{"the host of a probe", change(t, probe, "httpGet: {port: 80, host: localhost}"), exclude{
			{ControlName: "Host Probes / Lifecycle Hooks", Images: []string{images}, RestrictedField: "spec.containers[*].livenessProbe.httpGet.host", Values: []string{"localhost"}},
		}, nil},
		{"the host of a hook", change(t, probe+"}", probe+"}\n    lifecycle: {preStop: {httpGet: {port: 80, host: localhost}}}"), exclude{
			{ControlName: "Host Probes / Lifecycle Hooks", Images: []string{images}, RestrictedField: "spec.containers[*].livenessProbe.httpGet.host", Values: []string{"localhost"}},
		}, []string{"hostProbesAndHostLifecycle"}},
		{"an annotation", change(t, "team: a", "container.apparmor.security.beta.kubernetes.io/web: unconfined"), exclude{{ControlName: "AppArmor", RestrictedField: "metadata.annotations", Values: []string{"unconfined"}}}, nil},
		{"another annotation", change(t, "team: a", "container.apparmor.security.beta.kubernetes.io/web: unconfined"), exclude{{ControlName: "AppArmor", RestrictedField: "metadata.annotations", Values: []string{"other"}}}, []string{"appArmorProfile"}},
		{"one host port of two", change(t, web, "ports: [{hostPort: 80}, {hostPort: 443}]"), exclude{
			{ControlName: "Host Ports", Images: []string{"*"}, RestrictedField: "spec.containers[*].ports[*].hostPort", Values: []string{"80"}},
		}, []string{"hostPorts"}},
		{"all host ports", change(t, web, "ports: [{hostPort: 80}, {hostPort: 443}]"), exclude{
			{ControlName: "Host Ports", Images: []string{"*"}, RestrictedField: "spec.containers[*].ports[*].hostPort", Values: []string{"80", "44?"}},
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := compile(t, "restricted", "latest", row.exclude...).Check(pod(t, row.pod))
			if err != nil {
				t.Fatal(err)
			}
			if ids := violated(got); !slices.Equal(ids, row.violated) {
				t.Errorf("violated %q, want %q: %s", ids, row.violated, got.Message("r"))
			}
			// An exception excludes the same as the policy.
			more, err := podsecurity.CompileExclusions(row.exclude, "spec.podSecurity")
			if err != nil {
				t.Fatal(err)
			}
			got, err = compile(t, "restricted", "").Check(pod(t, row.pod))
			if err != nil {
				t.Fatal(err)
			}
			once := got.Except(more)
			if ids := violated(once); !slices.Equal(ids, row.violated) {
				t.Errorf("with an exception violated %q, want %q", ids, row.violated)
			}
			if again := once.Except(more, nil); again.Message("r") != once.Message("r") {
				t.Errorf("excluded twice: %s, once: %s", again.Message("r"), once.Message("r"))
			}
		})
	}
}

// TestExcludedFields: each field is excluded by its own name and values, and no other is.
func TestExcludedFields(t *testing.T) {
	const (
		inWeb    = "securityContext: *safe\n"
		inPod    = "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
		safe     = "allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}"
		web      = "ghcr.io/acme/*"
		appArmor = "container.apparmor.security.beta.kubernetes.io/"
	)
	of := func(control, image, field string, values ...string) podsecurity.Exclusion {
		e := podsecurity.Exclusion{ControlName: control, RestrictedField: field, Values: values}
		if image != "" {
			e.Images = []string{image}
		}
		return e
	}
	with := func(more string) string { return "securityContext: {" + safe + ", " + more + "}\n" }
	unconfined := change(t, inPod, "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, appArmorProfile: {type: Unconfined}}")
	unconfinedWeb := change(t, inWeb, with("appArmorProfile: {type: Unconfined}"))
	annotated := change(t, "team: a", appArmor+"web: unconfined, "+appArmor+"side: runtime/default")
	asRoot, rootWeb := change(t, "runAsNonRoot: true", "runAsNonRoot: false"), change(t, inWeb, with("runAsNonRoot: false"))
	host := change(t, inWeb, with("windowsOptions: {hostProcess: true}"))
	bare := change(t, inPod, "hostname: web", inWeb, with("windowsOptions: {hostProcess: true}, runAsUser: 0"))
	without := change(t, "name: side, image: proxy, securityContext: *safe", "name: side, image: proxy")
	silent := change(t, "name: side, image: proxy, securityContext: *safe", "name: side, image: proxy, securityContext: {capabilities: {drop: [ALL]}}")
	drops := change(t, inWeb, "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [NET_RAW]}}\n")
	const escalation, drop = "spec.containers[*].securityContext.allowPrivilegeEscalation", "spec.containers[*].securityContext.capabilities.drop"
	for _, row := range []struct {
		name, pod string
		exclude   podsecurity.Exclusion
		violated  string
	}{
		{"a profile of the pod, and its containers are excluded", change(t, "RuntimeDefault", "Unconfined"), of("Seccomp", "*", ""), "seccompProfile_baseline seccompProfile_restricted"},
		{"AppArmor's field of the pod", unconfined, of("AppArmor", "", "spec.securityContext.appArmorProfile.type", "Unconfined"), ""},
		{"with another value", unconfined, of("AppArmor", "", "spec.securityContext.appArmorProfile.type", "Localhost"), "appArmorProfile"},
		{"AppArmor's field of a container", unconfinedWeb, of("AppArmor", web, "spec.containers[*].securityContext.appArmorProfile.type", "Unconfined"), ""},
		{"of another image", unconfinedWeb, of("AppArmor", "proxy", "spec.containers[*].securityContext.appArmorProfile.type", "Unconfined"), "appArmorProfile"},
		{"one of two annotations is forbidden, and excluded", annotated, of("AppArmor", "", "metadata.annotations", "unconfined"), ""},
		{"by the annotation's own name", annotated, of("AppArmor", "", "metadata.annotations["+appArmor+"*]", "unconfined"), ""},
		{"with another value of the annotation", annotated, of("AppArmor", "", "metadata.annotations["+appArmor+"*]", "runtime/default"), "appArmorProfile"},
		{"one container runs as root, and is excluded", rootWeb, of("Running as Non-root", web, ""), ""},
		{"and another is excluded", rootWeb, of("Running as Non-root", "proxy", ""), "runAsNonRoot"},
		{"the pod runs as root, and the containers are excluded", asRoot, of("Running as Non-root", "*", ""), "runAsNonRoot"},
		{"the pod runs as root, and is excluded without its containers", asRoot, of("Running as Non-root", "", ""), "runAsNonRoot"},
		{"a process of the host", host, of("HostProcess", web, ""), ""},
		{"a process of the host, of another image", host, of("HostProcess", "proxy", ""), "windowsHostProcess"},
		{"a process of the host, in a pod without settings", bare, of("HostProcess", web, ""), "runAsNonRoot runAsUser seccompProfile_restricted"},
		{"a user, in a pod without settings", bare, of("Running as Non-root user", web, ""), "windowsHostProcess runAsNonRoot seccompProfile_restricted"},
		{"no security context: the field is missing, whatever the value", without, of("Privilege Escalation", "proxy", escalation, "true"), "capabilities_restricted"},
		{"a security context without the field: its value is nil", silent, of("Privilege Escalation", "proxy", escalation, "nil"), ""},
		{"and no other", silent, of("Privilege Escalation", "proxy", escalation, "true"), "allowPrivilegeEscalation"},
		{"a dropped capability has a value", drops, of("Capabilities", web, drop, "NET_*"), ""},
		{"and no other", drops, of("Capabilities", web, drop, "ALL"), "capabilities_restricted"},
	} {
		got, err := compile(t, "restricted", "latest", row.exclude).Check(pod(t, row.pod))
		if err != nil {
			t.Fatal(err)
		}
		ids, want := violated(got), strings.Fields(row.violated)
		slices.Sort(want)
		slices.Sort(ids)
		if !slices.Equal(ids, want) {
			t.Errorf("%s: violated %q, want %q: %s", row.name, ids, want, got.Message("r"))
		}
	}
}

// TestExclusionsWithoutImages: the message names the fix where such an exclusion leaves fields of
// containers, whether it is the policy's or an exception's.
func TestExclusionsWithoutImages(t *testing.T) {
	type exclude = []podsecurity.Exclusion
	unset := change(t, ", seccompProfile: {type: RuntimeDefault}", "")
	root := change(t, "runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0")
	for _, row := range []struct {
		reason, text string
		exclude      exclude
		met, hint    bool
	}{
		{"containers without a profile", unset, exclude{{ControlName: "Seccomp"}}, false, true},
		{"and an entry for some of them", unset, exclude{{ControlName: "Seccomp"}, {ControlName: "Seccomp", Images: []string{"proxy"}}}, false, true},
		{"and an entry for all", unset, exclude{{ControlName: "Seccomp"}, {ControlName: "Seccomp", Images: []string{"*"}}}, true, false},
		{"containers that nothing runs as non-root", change(t, "runAsNonRoot: true, ", ""), exclude{{ControlName: "Running as Non-root"}}, false, true},
		{"another control", unset, exclude{{ControlName: "SELinux"}}, false, false},
		{"images of other containers", unset, exclude{{ControlName: "Seccomp", Images: []string{"proxy"}}}, false, false},
		{"a field of the pod", root, exclude{{ControlName: "Running as Non-root user"}}, true, false},
		{"a field of the pod with another value", root,
			exclude{{ControlName: "Running as Non-root user", RestrictedField: "spec.securityContext.runAsUser", Values: []string{"1"}}}, false, false},
	} {
		own, err := compile(t, "restricted", "", row.exclude...).Check(pod(t, row.text))
		if err != nil {
			t.Fatal(err)
		}
		exception, err := podsecurity.CompileExclusions(row.exclude, "spec.podSecurity")
		if err != nil {
			t.Fatal(err)
		}
		whole, err := compile(t, "restricted", "").Check(pod(t, row.text))
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []podsecurity.Result{own, whole.Except(exception)} {
			if hint := strings.Contains(got.Message("r"), "add an entry with images"); got.Met() != row.met || hint != row.hint {
				t.Errorf("%s: %s", row.reason, got.Message("r"))
			}
		}
	}
}

// TestViolationWithoutFields: what no field is known of cannot be excluded.
func TestViolationWithoutFields(t *testing.T) {
	all, err := podsecurity.CompileExclusions(everywhere("Seccomp"), "exclude")
	if err != nil {
		t.Fatal(err)
	}
	got := podsecurity.Result{Violations: []podsecurity.Violation{{ID: "seccompProfile_baseline", Control: "Seccomp"}}}
	got = got.Except(all)
	if got.Met() {
		t.Error("a violation of which no field is known was excluded")
	}
}

// TestImages: those of a violation are listed in full, and an invalid one as it is written.
func TestImages(t *testing.T) {
	text := change(t, "&safe {allowPrivilegeEscalation: false, ", "&safe {", "image: proxy", "image: 'Not an image'")
	got, err := compile(t, "restricted", "").Check(pod(t, text))
	if err != nil || len(got.Violations) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if images := fmt.Sprintf("%q", got.Violations[0].Images()); images != `["docker.io/library/busybox:latest" "ghcr.io/acme/web:1.0" "Not an image"]` {
		t.Error(images)
	}
}

// TestBoundsOfExclusions: the very last that are taken, and one more.
func TestBoundsOfExclusions(t *testing.T) {
	pods := slices.Repeat([]podsecurity.Exclusion{{ControlName: "Host Namespaces"}}, 201)
	texts := slices.Repeat([]string{"a"}, 501)
	capabilities := func(images, values int) []podsecurity.Exclusion {
		return []podsecurity.Exclusion{{
			ControlName: "Capabilities", RestrictedField: "spec.containers[*].securityContext.capabilities.add", Images: texts[:images], Values: texts[:values],
		}}
	}
	for _, row := range []struct {
		reason  string
		exclude []podsecurity.Exclusion
		good    bool
	}{
		{"as many exclusions as may be", pods[:200], true},
		{"one more", pods, false},
		{"as many images and values as may be", capabilities(500, 500), true},
		{"an image more", capabilities(501, 1), false},
		{"a value more", capabilities(1, 501), false},
	} {
		if _, err := podsecurity.CompileExclusions(row.exclude, "exclude"); (err == nil) != row.good {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

func violated(r podsecurity.Result) []string {
	var ids []string
	for _, v := range r.Violations {
		ids = append(ids, v.ID)
	}
	return ids
}

func TestVersions(t *testing.T) {
	text := change(t, "httpGet: {port: 80, path: /}", "httpGet: {port: 80, host: localhost}", "runAsNonRoot: true", "runAsNonRoot: true, sysctls: [{name: net.ipv4.tcp_rmem, value: a}]")
	for _, row := range []struct {
		level, version string
		want           []string
	}{
		{"restricted", "", []string{"hostProbesAndHostLifecycle"}},
		{"baseline", "v1.34", []string{"hostProbesAndHostLifecycle"}},
		{"baseline", "v1.33", []string{"hostProbesAndHostLifecycle"}}, // whose first revision is of 1.34
		{"baseline", "v1.31", []string{"hostProbesAndHostLifecycle", "sysctls"}},
		{"baseline", "v1.99", []string{"hostProbesAndHostLifecycle"}},
		{"privileged", "latest", nil},
	} {
		got, err := compile(t, row.level, row.version).Check(pod(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if ids := violated(got); !slices.Equal(ids, row.want) {
			t.Errorf("%s %s: %q, want %q", row.level, row.version, ids, row.want)
		}
	}
}

// TestFirstRevisions: a version before a check has the first revision of it, and others the last
// one up to that version.
func TestFirstRevisions(t *testing.T) {
	root := change(t, "runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0")
	profile := change(t, ", seccompProfile: {type: RuntimeDefault}", "")
	for _, row := range []struct {
		version, text string
		want          []string
	}{
		{"v1.23", root, []string{"runAsUser"}},
		{"v1.22", root, []string{"runAsUser"}},
		{"v1.0", root, []string{"runAsUser"}},
		{"v1.19", profile, []string{"seccompProfile_restricted"}},
		{"v1.18", profile, []string{"seccompProfile_restricted"}},
		{"v1.7", change(t, "&safe {allowPrivilegeEscalation: false, ", "&safe {"), []string{"allowPrivilegeEscalation"}},
		{"v1.21", change(t, "capabilities: {drop: [ALL]}", "capabilities: {}"), []string{"capabilities_restricted"}},
		{"v1.0", change(t), nil},
	} {
		got, err := compile(t, "restricted", row.version).Check(pod(t, row.text))
		if err != nil {
			t.Fatal(err)
		}
		if ids := violated(got); !slices.Equal(ids, row.want) {
			t.Errorf("%s: %q, want %q", row.version, ids, row.want)
		}
	}
}

// TestSysctls: the newest version allows more sysctls than the one before.
func TestSysctls(t *testing.T) {
	text := change(t, "runAsNonRoot: true", "runAsNonRoot: true, sysctls: [{name: net.ipv4.tcp_notsent_lowat, value: a}]")
	for version, want := range map[string]string{"latest": "", "v1.37": "", "v1.36": "sysctls", "v1.34": "sysctls", "v1.0": "sysctls"} {
		got, err := compile(t, "baseline", version).Check(pod(t, text))
		if ids := strings.Join(violated(got), " "); err != nil || ids != want {
			t.Errorf("%s: %q, %v, want %q", version, ids, err, want)
		}
	}
}

// TestUserNamespaces: the author of a pod writes hostUsers, which relaxes nothing.
func TestUserNamespaces(t *testing.T) {
	const side = "name: side, image: proxy, securityContext: *safe"
	for _, row := range []struct{ reason, level, text, want string }{
		{"a user", "restricted", change(t, "runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 0"), "runAsUser"},
		{"another user", "restricted", change(t, "runAsNonRoot: true", "runAsNonRoot: true, runAsUser: 1"), ""},
		{"no user", "restricted", change(t, "runAsNonRoot: true, ", ""), "runAsNonRoot"},
		{"what is mounted", "baseline", change(t, side, "name: side, image: proxy, securityContext: {procMount: Unmasked}"), "procMount"},
		{"the default", "baseline", change(t, side, "name: side, image: proxy, securityContext: {procMount: Default}"), ""},
	} {
		for _, users := range []string{"", "hostUsers: true\n  ", "hostUsers: false\n  "} {
			got, err := compile(t, row.level, "latest").Check(pod(t, strings.Replace(row.text, "initContainers:", users+"initContainers:", 1)))
			if err != nil {
				t.Fatal(err)
			}
			if ids := strings.Join(violated(got), " "); ids != row.want {
				t.Errorf("%s, %q: %q, want %q", row.reason, users, ids, row.want)
			}
			for _, v := range got.Violations {
				if len(v.Fields()) == 0 {
					t.Errorf("%s, %q: %s has no field", row.reason, users, v.ID)
				}
			}
		}
	}
}

func TestCompileErrors(t *testing.T) {
	excluding := func(e podsecurity.Exclusion) []podsecurity.Exclusion {
		return []podsecurity.Exclusion{{ControlName: "Host Namespaces"}, e}
	}
	for _, row := range []struct {
		name           string
		level, version string
		exclude        []podsecurity.Exclusion
		path, says     string
	}{
		{"no level", "", "latest", nil, "level", "baseline"},
		{"an unknown level", "strict", "latest", nil, "level", `"strict"`},
		{"a level in capitals", "Baseline", "latest", nil, "level", "baseline"},
		{"a version without v", "baseline", "1.29", nil, "version", "v1.x"},
		{"a version of another major", "baseline", "v2.0", nil, "version", "v1.x"},
		{"an unknown control", "baseline", "", excluding(podsecurity.Exclusion{ControlName: "Hostports"}), "exclude[1].controlName", "Host Ports"},
		{"a control of the other level", "baseline", "", excluding(podsecurity.Exclusion{ControlName: "Running as Non-root"}), "exclude[1].controlName", "level baseline: want one of Capabilities, Seccomp"},
		{"containers and no images", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "Capabilities"}), "exclude[1].images", "which images"},
		{"the pod and images", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "Sysctls", Images: []string{"*"}}), "exclude[1].images", "as a whole"},
		{"a field and no values", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "Sysctls", RestrictedField: "spec.securityContext.sysctls[*].name"}), "exclude[1].values", "which values"},
		{"values and no field", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "Sysctls", Values: []string{"a"}}), "exclude[1].restrictedField", "which field"},
		{"a field of another control", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "Sysctls", RestrictedField: "spec.hostPID", Values: []string{"true"}}), "exclude[1].restrictedField", "sysctls[*].name"},
		{"a field of containers and no images", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "SELinux", RestrictedField: "spec.containers[*].securityContext.seLinuxOptions.type", Values: []string{"a"}}),
			"exclude[1].images", "of which images"},
		{"a field of the pod and images", "restricted", "", excluding(podsecurity.Exclusion{ControlName: "SELinux", Images: []string{"*"}, RestrictedField: "spec.securityContext.seLinuxOptions.type", Values: []string{"a"}}),
			"exclude[1].images", "no image"},
		{"too many", "restricted", "", make([]podsecurity.Exclusion, 201), "exclude", "201"},
	} {
		_, err := podsecurity.Compile(row.level, row.version, row.exclude)
		wrong, ok := errors.AsType[*podsecurity.FieldError](err)
		if !ok || wrong.Path != row.path || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v; want %s about %q", row.name, err, row.path, row.says)
		}
	}
}

func TestPodOf(t *testing.T) {
	template := `{"metadata": {}, "spec": {"hostNetwork": true, "containers": []}}`
	for _, row := range []struct {
		name, kind, text string
		field            string // of the violation; empty: an error
	}{
		{"a pod", "Pod", template, "spec.hostNetwork"},
		{"a controller", "Deployment", `{"spec": {"template": ` + template + `}}`, "spec.template.spec.hostNetwork"},
		{"a controller of controllers", "CronJob", `{"spec": {"jobTemplate": {"spec": {"template": ` + template + `}}}}`, "spec.jobTemplate.spec.template.spec.hostNetwork"},
		{"a template", "PodTemplate", `{"template": ` + template + `}`, "template.spec.hostNetwork"},
		{"no pod", "ConfigMap", `{"data": {}}`, ""},
		{"a pod without spec", "Pod", `{"metadata": {}}`, ""},
		{"a spec that is a list", "Pod", `{"spec": []}`, ""},
		{"a controller without template", "Deployment", `{"spec": {}}`, ""},
		{"a template that is a text", "Deployment", `{"spec": {"template": "a"}}`, ""},
		{"metadata that are a text", "Pod", `{"metadata": "a", "spec": {}}`, ""},
	} {
		var content map[string]any
		if err := json.Unmarshal([]byte(row.text), &content); err != nil {
			t.Fatal(err)
		}
		p, err := podsecurity.PodOf(row.kind, content)
		if row.field == "" {
			if !errors.Is(err, podsecurity.ErrNoPod) {
				t.Errorf("%s: %v, want ErrNoPod", row.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		got, err := compile(t, "baseline", "").Check(p)
		if err != nil || len(got.Violations) != 1 || !slices.Equal(got.Violations[0].Fields(), []string{row.field}) {
			t.Errorf("%s: %v %v, want %s", row.name, got.Message("r"), err, row.field)
		}
	}
}

// TestUnreadablePodIsAnError: a pod that cannot be read is neither good nor bad.
func TestUnreadablePodIsAnError(t *testing.T) {
	for _, row := range []struct{ name, metadata, spec string }{
		{"a text for a bool", `{}`, `{"hostNetwork": "true"}`},
		{"an object for a list", `{}`, `{"containers": {"a": {}}}`},
		{"a container that is a text", `{}`, `{"containers": ["a"]}`},
		{"a text for an object", `{}`, `{"containers": [{"securityContext": "privileged"}]}`},
		{"a fraction for a number", `{}`, `{"securityContext": {"runAsUser": 0.5}}`},
		{"a number for a capability", `{}`, `{"containers": [{"securityContext": {"capabilities": {"add": [1]}}}]}`},
		{"an annotation that is a number", `{"annotations": {"a": 1}}`, `{}`},
		{"annotations that are a list", `{"annotations": ["a"]}`, `{}`},
	} {
		var metadata, spec map[string]any
		if err := errors.Join(json.Unmarshal([]byte(row.metadata), &metadata), json.Unmarshal([]byte(row.spec), &spec)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it is remembered
			p := podsecurity.NewPod(metadata, spec, "spec.template.")
			if got, err := compile(t, "baseline", "").Check(p); err == nil {
				t.Errorf("%s: no error, and %s", row.name, got.Message("r"))
			} else if !strings.Contains(err.Error(), "spec.template.") {
				t.Errorf("%s: %v does not say where", row.name, err)
			}
		}
	}
}

// TestFieldsNotRead: an unreadable pod is no error if the level allows everything, and fields
// without an effect on security are not read.
func TestFieldsNotRead(t *testing.T) {
	for _, row := range []struct {
		reason, level, spec string
		good                bool
	}{
		{"a bool, where all is allowed", "privileged", `{"hostNetwork": "true"}`, true},
		{"a bool, where not all is", "baseline", `{"hostNetwork": "true"}`, false},
		{"a container's environment", "baseline", `{"containers": [{"name": "a", "env": 7}]}`, true},
		{"a container's ports", "baseline", `{"containers": [{"name": "a", "ports": 7}]}`, false},
	} {
		var spec map[string]any
		if err := json.Unmarshal([]byte(row.spec), &spec); err != nil {
			t.Fatal(err)
		}
		got, err := compile(t, row.level, "").Check(podsecurity.NewPod(nil, spec, ""))
		if (err == nil) != row.good || row.good && !got.Met() {
			t.Errorf("%s: %v, %s", row.reason, err, got.Message("r"))
		}
	}
}

// TestWords compares message and properties with the words of Kyverno 1.19.
func TestWords(t *testing.T) {
	text := change(t, "securityContext: *safe\n", "securityContext: {privileged: true, capabilities: {add: [SYS_TIME, CHOWN]}}\n",
		"ports: [{containerPort: 80}]", "ports: [{hostPort: 8080}]", "RuntimeDefault", "Unconfined",
		"initContainers:", "hostPID: true\n  volumes: [{name: a, nfs: {server: s, path: /}}]\n  initContainers:")
	got, err := compile(t, "restricted", "v1.30").Check(pod(t, text))
	if err != nil {
		t.Fatal(err)
	}
	properties := got.Properties()
	out := fmt.Sprintf("%s\n\nstandard: %s\nversion: %s\ncontrols: %s\ncontrolsJSON: %s\n",
		strings.ReplaceAll(got.Message("restricted"), ")(", ")\n("), properties["standard"], properties["version"], properties["controls"], properties["controlsJSON"])
	const golden = "testdata/words.golden"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out != string(want) {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	met, err := compile(t, "restricted", "").Check(pod(t, strict))
	if err != nil {
		t.Fatal(err)
	}
	if met.Message("r") != "Validation rule 'r' passed." || met.Properties() != nil {
		t.Errorf("%s %v", met.Message("r"), met.Properties())
	}
}

// FuzzCheck: nothing that is written as a pod makes the checks panic, whatever is
// violated has a field, and excluding everything leaves nothing.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"spec": {"containers": [{"securityContext": null}]}}`, `{"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "x"}}, "spec": {}}`,
		`{"spec": {"volumes": [{"name": "a"}], "ephemeralContainers": [{"image": "x"}], "os": {"name": "windows"}, "hostUsers": false}}`} {
		f.Add([]byte(seed), uint8(19))
	}
	f.Fuzz(func(t *testing.T, data []byte, minor uint8) {
		var content map[string]any
		if json.Unmarshal(data, &content) != nil {
			return
		}
		p, err := podsecurity.PodOf("Pod", content)
		if err != nil {
			return
		}
		got, err := compile(t, "restricted", fmt.Sprintf("v1.%d", minor)).Check(p)
		if err != nil {
			return
		}
		for _, v := range got.Violations {
			if len(v.Fields()) == 0 {
				t.Errorf("%s: %s has no field", data, v.ID)
			}
			without, err := podsecurity.CompileExclusions(everywhere(v.Control), "exclude")
			if err != nil {
				t.Fatal(err)
			}
			got = got.Except(without)
		}
		if !got.Met() {
			t.Errorf("%s: %s", data, got.Message("r"))
		}
	})
}

func ExampleStandard_Check() {
	standard, err := podsecurity.Compile("baseline", "latest", []podsecurity.Exclusion{
		{ControlName: "Host Ports", Images: []string{"proxy:*"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	pod, err := podsecurity.PodOf("Pod", map[string]any{"spec": map[string]any{
		"hostNetwork": true,
		"containers":  []any{map[string]any{"name": "p", "image": "proxy:1", "ports": []any{map[string]any{"hostPort": 80.0}}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := standard.Check(pod)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Message("baseline"))
	// Output: Validation rule 'baseline' failed. It violates PodSecurity "baseline:latest": (Forbidden reason: host namespaces, field error list: [spec.hostNetwork is forbidden, forbidden values found: true])
}

func BenchmarkCheck(b *testing.B) {
	for _, row := range []struct{ name, text string }{{"good", strict}, {"bad", change(b, "runAsNonRoot: true, ", "", "RuntimeDefault", "Unconfined")}} {
		standard := compile(b, "restricted", "latest")
		b.Run(row.name, func(b *testing.B) {
			p := pod(b, row.text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := standard.Check(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	var content map[string]any
	text := strings.NewReplacer("&safe ", "", "*safe", "{allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}").Replace(strict)
	content = object(b, text)
	standard := compile(b, "baseline", "latest")
	b.ReportAllocs()
	for b.Loop() {
		p, err := podsecurity.PodOf("Pod", content)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := standard.Check(p); err != nil {
			b.Fatal(err)
		}
	}
}
