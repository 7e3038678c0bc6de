{{/* The name that everything is called by. */}}
{{- define "quaymaster.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains "quaymaster" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-quaymaster" (.Release.Name | trunc 29 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* Labels that pods are selected by, which can never change. */}}
{{- define "quaymaster.selector" -}}
app.kubernetes.io/name: quaymaster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "quaymaster.labels" -}}
{{ include "quaymaster.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: quaymaster
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "quaymaster.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "quaymaster.fullname" .) -}}
{{- end -}}

{{- define "quaymaster.controllerAccount" -}}
{{- include "quaymaster.serviceAccount" . }}-controller
{{- end -}}

{{- define "quaymaster.cleanupAccount" -}}
{{- include "quaymaster.serviceAccount" . }}-cleanup
{{- end -}}

{{/* Which policies are native; empty for none. Without quotes off is false in YAML. */}}
{{- define "quaymaster.native" -}}
{{- ternary "off" .Values.native.policies (eq (toString .Values.native.policies) "false") -}}
{{- end -}}

{{- define "quaymaster.nativeAccount" -}}
{{- include "quaymaster.serviceAccount" . }}-native
{{- end -}}

{{/* Whether the role cleanup has a Deployment of its own; empty if not. */}}
{{- define "quaymaster.cleanupAlone" -}}
{{- if and .Values.cleanup.enabled .Values.cleanup.separate }}true{{ end -}}
{{- end -}}

{{/* The account that a role is bound to. Give (dict "root" . "to" (list "admission" "controller" "cleanup" "native")). */}}
{{- define "quaymaster.subjects" -}}
{{- $root := .root -}}
{{- $subjects := list -}}
{{- $alone := include "quaymaster.cleanupAlone" $root -}}
{{- $others := or (has "admission" .to) (has "controller" .to) (and (not $alone) (has "cleanup" .to)) -}}
{{- if or (has "admission" .to) (and $others (not $root.Values.roles.separate)) -}}
{{- $subjects = append $subjects (include "quaymaster.serviceAccount" $root) -}}
{{- end -}}
{{- if and $root.Values.roles.separate (or (has "controller" .to) (and (not $alone) (has "cleanup" .to))) -}}
{{- $subjects = append $subjects (include "quaymaster.controllerAccount" $root) -}}
{{- end -}}
{{- if and $alone (has "cleanup" .to) -}}
{{- $subjects = append $subjects (include "quaymaster.cleanupAccount" $root) -}}
{{- end -}}
{{- if has "native" .to -}}
{{- $subjects = append $subjects (include "quaymaster.nativeAccount" $root) -}}
{{- end -}}
{{- range $subjects }}
- kind: ServiceAccount
  name: {{ . }}
  namespace: {{ $root.Release.Namespace }}
{{- end }}
{{- end -}}

{{/* The image; a digest wins. Tags of releases begin with v. */}}
{{- define "quaymaster.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" (trimPrefix "v" .Chart.AppVersion)) }}
{{- end -}}
{{- end -}}

{{/* The Secret of a certificate from elsewhere; empty for the gateway's own. */}}
{{- define "quaymaster.certificateSecret" -}}
{{- if eq .Values.certificates.mode "certManager" -}}
{{ include "quaymaster.fullname" . }}-tls
{{- else if eq .Values.certificates.mode "secret" -}}
{{ required "certificates.secretName is required with certificates.mode secret" .Values.certificates.secretName }}
{{- end -}}
{{- end -}}
