{{/*
The gateway's configuration: what values say in plain words, over the rest of it. What
only the chart knows (names, ports, files) is not for values to say; the schema refuses
it.
*/}}
{{- define "quaymaster.configuration" -}}
{{- $name := include "quaymaster.fullname" . -}}
{{- $own := dict
  "apiVersion" "quaymaster.dev/v1alpha1"
  "kind" "Configuration"
  "namespace" .Release.Namespace
  "webhooks" (dict "service" $name "owner" $name "excludedNamespaces" .Values.excludedNamespaces)
  "certificate" (dict "secret" (printf "%s-certificate" $name))
  "trust" (dict "cacheFolder" "/var/cache/quaymaster")
-}}
{{- if ne .Values.mode "enforce" -}}
{{- $_ := set $own "mode" .Values.mode -}}
{{- end -}}
{{- with .Values.failurePolicy -}}
{{- $_ := set $own.webhooks "failurePolicy" . -}}
{{- end -}}
{{- if .Values.breakGlass.enabled -}}
{{- $_ := set $own.webhooks "breakGlass" true -}}
{{- end -}}
{{- if include "quaymaster.certificateSecret" . -}}
{{- if dig "certificate" "names" list .Values.configuration -}}
{{- fail "configuration.certificate.names is for the gateway's own certificate: with certificates.mode certManager or secret, the names are the certificate's" -}}
{{- end -}}
{{- $_ := merge $own.certificate (dict
  "certificateFile" "/etc/quaymaster-certificate/tls.crt"
  "keyFile" "/etc/quaymaster-certificate/tls.key"
  "caFile" "/etc/quaymaster-certificate/ca.crt") -}}
{{- end -}}
{{- if and .Values.dashboard.enabled .Values.dashboard.expose (eq .Values.certificates.mode "own") -}}
{{- $names := dig "certificate" "names" list .Values.configuration -}}
{{- $_ := set $own.certificate "names" (append $names (printf "%s-dashboard.%s.svc" $name .Release.Namespace)) -}}
{{- end -}}
{{- $policies := dict -}}
{{- with .Values.policies.selector -}}
{{- $_ := set $policies "selector" . -}}
{{- end -}}
{{- if ne (toString .Values.policies.writeStatus) "auto" -}}
{{- $_ := set $policies "writeStatus" .Values.policies.writeStatus -}}
{{- end -}}
{{- with include "quaymaster.native" . -}}
{{- $_ := set $policies "nativePolicies" . -}}
{{- end -}}
{{- if .Values.policies.configMaps -}}
{{- $folders := list -}}
{{- range .Values.policies.configMaps -}}
{{- $folders = append $folders (printf "/etc/quaymaster-policies/%s" .) -}}
{{- end -}}
{{- with .Values.configuration.policies -}}
{{- $folders = concat $folders (.folders | default list) -}}
{{- end -}}
{{- $_ := set $policies "folders" $folders -}}
{{- end -}}
{{- if $policies -}}
{{- $_ := set $own "policies" $policies -}}
{{- end -}}
{{- with .Values.policies.exceptionNamespaces -}}
{{- $_ := set $own "exceptions" (dict "namespaces" .) -}}
{{- end -}}
{{- if not .Values.scan.enabled -}}
{{- $_ := set $own "scan" (dict "disabled" true) -}}
{{- end -}}
{{- if .Values.cleanup.ttl -}}
{{- if not .Values.cleanup.enabled -}}
{{- fail "cleanup.ttl needs cleanup.enabled: nothing would be deleted, and the webhook would ask for each label" -}}
{{- end -}}
{{- $_ := set $own "cleanup" (dict "ttl" true) -}}
{{- end -}}
{{- if not .Values.reports.enabled -}}
{{- $_ := set $own "reports" (dict "apis" list) -}}
{{- end -}}
{{- if not .Values.dashboard.enabled -}}
{{- $_ := set $own "dashboard" (dict "disabled" true) -}}
{{- else -}}
{{- $dashboard := dict -}}
{{- if .Values.dashboard.expose -}}
{{- $dashboard = dict "address" ":8001" "tokenReview" true -}}
{{- end -}}
{{- if .Values.dashboard.playground -}}
{{- $_ := set $dashboard "playground" true -}}
{{- end -}}
{{- if $dashboard -}}
{{- $_ := set $own "dashboard" $dashboard -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite (deepCopy .Values.configuration) $own | toYaml -}}
{{- end -}}

{{/*
The limit of memory for Go's runtime: 86 % of the container's. Give a quantity; of one in a
unit that nobody uses for memory, nothing comes.
*/}}
{{- define "quaymaster.memory" -}}
{{- $quantity := kindIs "float64" . | ternary (printf "%.0f" .) (toString .) -}}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $quantity -}}
{{- $units := dict "" 1 "k" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 "T" 1000000000000 "Ti" 1099511627776 -}}
{{- $unit := trimPrefix $number $quantity -}}
{{- if and $number (hasKey $units $unit) -}}
{{ divf (mulf (float64 $number) (get $units $unit) 0.86) 1048576 | floor }}MiB
{{- end -}}
{{- end -}}
