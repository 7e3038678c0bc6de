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

{{/* Who a role is bound to. Give (dict "root" . "to" (list "admission" "controller")). */}}
{{- define "quaymaster.subjects" -}}
{{- $root := .root -}}
{{- $subjects := list -}}
{{- if or (not $root.Values.roles.separate) (has "admission" .to) -}}
{{- $subjects = append $subjects (include "quaymaster.serviceAccount" $root) -}}
{{- end -}}
{{- if and $root.Values.roles.separate (has "controller" .to) -}}
{{- $subjects = append $subjects (include "quaymaster.controllerAccount" $root) -}}
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
