{{/* Labels of every policy. */}}
{{- define "policies.labels" -}}
app.kubernetes.io/name: quaymaster-policies
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/part-of: quaymaster
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The objects that a rule matches: Pods, and so the workloads that create them. */}}
{{- define "policies.match" -}}
match:
  any:
    - resources:
        kinds: [Pod]
{{- with .Values.excludedNamespaces }}
exclude:
  any:
    - resources:
        namespaces: {{ toJson . }}
{{- end }}
{{- end -}}

{{/*
Names of images that lie in a registry or a part of it, as globs in JSON; a part that is a
repository means that repository, too. Give the list.
*/}}
{{- define "policies.images" -}}
{{- $globs := list -}}
{{- range . -}}
{{- $globs = append $globs (printf "%s/*" .) -}}
{{- if contains "/" . -}}
{{- $globs = concat $globs (list . (printf "%s:*" .) (printf "%s@*" .)) -}}
{{- end -}}
{{- end -}}
{{- toJson $globs -}}
{{- end -}}
