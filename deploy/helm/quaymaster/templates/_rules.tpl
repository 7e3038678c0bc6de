{{/* What every process of the gateway reads: all that a decision rests on. */}}
{{- define "quaymaster.rules.read" -}}
# Policies, exceptions and the objects that policies depend on; watched.
- apiGroups: [kyverno.io]
  resources: [clusterpolicies, policies, policyexceptions, globalcontextentries]
  verbs: [get, list, watch]
- apiGroups: [policies.kyverno.io]
  resources:
    - imagevalidatingpolicies
    - namespacedimagevalidatingpolicies
    - validatingpolicies
    - namespacedvalidatingpolicies
    - mutatingpolicies
    - namespacedmutatingpolicies
    - generatingpolicies
    - namespacedgeneratingpolicies
    - policyexceptions
  verbs: [get, list, watch]
# Policies that delete objects on a schedule; watched.
- apiGroups: [kyverno.io]
  resources: [cleanuppolicies, clustercleanuppolicies]
  verbs: [get, list, watch]
- apiGroups: [policies.kyverno.io]
  resources: [deletingpolicies, namespaceddeletingpolicies]
  verbs: [get, list, watch]
- apiGroups: [policy.sigstore.dev]
  resources: [clusterimagepolicies, trustroots]
  verbs: [get, list, watch]
# ImageOverrides; watched.
- apiGroups: [quaymaster.dev]
  resources: [imageoverrides]
  verbs: [get, list, watch]
# Mirrors, which are watched: our own, and OpenShift's where mirrors.openShift is on.
- apiGroups: [quaymaster.dev]
  resources: [registrymirrors]
  verbs: [get, list, watch]
- apiGroups: [config.openshift.io]
  resources: [imagedigestmirrorsets, imagetagmirrorsets]
  verbs: [get, list, watch]
# The definitions of policy kinds, the fields that the API server prunes from them, and
# changes of the kinds that a policy names.
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
# Labels of namespaces, for policies that select by them.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
# Events for denials, failures and audited violations.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* What the process needs that answers the API server. */}}
{{- define "quaymaster.rules.admission" -}}
# Roles of users, for policies that match on roles; watched only if a policy does.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings, clusterrolebindings]
  verbs: [list, watch]
# The condition Ready of policies (policies.writeStatus), and whether Kyverno or
# policy-controller runs, which writes it itself.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list]
- apiGroups: [kyverno.io]
  resources:
    - clusterpolicies/status
    - policies/status
    - cleanuppolicies/status
    - clustercleanuppolicies/status
    - globalcontextentries/status
  verbs: [patch]
- apiGroups: [policies.kyverno.io]
  resources:
    - imagevalidatingpolicies/status
    - namespacedimagevalidatingpolicies/status
    - validatingpolicies/status
    - namespacedvalidatingpolicies/status
    - mutatingpolicies/status
    - namespacedmutatingpolicies/status
    - deletingpolicies/status
    - namespaceddeletingpolicies/status
    - generatingpolicies/status
    - namespacedgeneratingpolicies/status
  verbs: [patch]
- apiGroups: [policy.sigstore.dev]
  resources: [clusterimagepolicies/status, trustroots/status]
  verbs: [patch]
# Whether an override is in force, whether a mirror is active, and which of its targets
# answer. OpenShift's are not written to.
- apiGroups: [quaymaster.dev]
  resources: [imageoverrides/status]
  verbs: [patch]
- apiGroups: [quaymaster.dev]
  resources: [registrymirrors/status]
  verbs: [patch]
# The two webhook configurations, which always have the name quaymaster. A resourceName
# does not restrict create, list and watch; it restricts changes.
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  verbs: [get, list, watch, create]
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [quaymaster]
  verbs: [update]
# The UID of this role, for the owner reference.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [clusterroles]
  resourceNames: [{{ include "quaymaster.fullname" . }}]
  verbs: [get]
{{- if .Values.breakGlass.enabled }}
# The label of an open namespace, which is taken off when its time is over. The
# ValidatingAdmissionPolicy that ends in -break-glass-closing allows nothing else.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [patch]
{{- end }}
{{- end -}}

{{/*
Binds a ClusterRole. Give (dict "root" . "role" "quaymaster" "to" (list "admission")), and
namespaces for bindings in each of them alone.
*/}}
{{- define "quaymaster.binding" -}}
{{- $root := .root -}}
{{- $role := .role -}}
{{- $to := .to -}}
{{- if .namespaces }}
{{- range .namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $role }}
  namespace: {{ . }}
  labels:
    {{- include "quaymaster.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  {{- include "quaymaster.subjects" (dict "root" $root "to" $to) | trim | nindent 2 }}
{{- end }}
{{- else }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $role }}
  labels:
    {{- include "quaymaster.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $role }}
subjects:
  {{- include "quaymaster.subjects" (dict "root" $root "to" $to) | trim | nindent 2 }}
{{- end }}
{{- end -}}
