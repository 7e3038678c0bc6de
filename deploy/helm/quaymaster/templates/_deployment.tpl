{{/*
A Deployment. Give (dict "root" . "name" "component" "account" "replicas" "resources"
"priorityClassName" "roles"), where no roles are all of them.
*/}}
{{- define "quaymaster.deployment" -}}
{{- $root := .root -}}
{{- $values := .root.Values -}}
{{- $admission := eq .component "admission" -}}
{{- /* Who reports serves the dashboard, too. */ -}}
{{- $dashboard := and $values.dashboard.enabled $values.dashboard.expose (or (not .roles) (has "report" .roles)) -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "quaymaster.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .replicas }}
  selector:
    matchLabels:
      {{- include "quaymaster.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  strategy:
    # A new replica is ready before an old one stops.
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels:
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- include "quaymaster.selector" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
      annotations:
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        # The configuration is read at the start: another one means other pods.
        quaymaster.dev/configuration: {{ include "quaymaster.configuration" $root | sha256sum }}
    spec:
      serviceAccountName: {{ .account }}
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      {{- with .priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      enableServiceLinks: false
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if gt (int .replicas) 1 }}
      topologySpreadConstraints:
        {{- range list (list "kubernetes.io/hostname" $values.spread.nodes) (list "topology.kubernetes.io/zone" $values.spread.zones) }}
        - topologyKey: {{ index . 0 }}
          maxSkew: 1
          whenUnsatisfiable: {{ index . 1 }}
          # Only pods of one version are counted; they stay spread during an update.
          matchLabelKeys: [pod-template-hash]
          labelSelector:
            matchLabels:
              {{- include "quaymaster.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ $.component }}
        {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        {{- if $values.fixedUser }}
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        {{- end }}
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: gateway
          image: {{ include "quaymaster.image" $root }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            - serve
            - --config=/etc/quaymaster/gateway.yaml
            {{- with .roles }}
            - --roles={{ join "," . }}
            {{- end }}
          env:
            - name: POD_NAME
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
            - name: POD_IP
              valueFrom: {fieldRef: {fieldPath: status.podIP}}
            {{- with include "quaymaster.memory" (dig "limits" "memory" "" .resources) }}
            # Below the limit: garbage collection must run before the OOM killer.
            - name: GOMEMLIMIT
              value: {{ . }}
            {{- end }}
            {{- with $values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- if $admission }}
            - name: webhook
              containerPort: 9443
            {{- end }}
            - name: plain
              containerPort: 8000
            {{- if $dashboard }}
            - name: dashboard
              containerPort: 8001
            {{- end }}
          startupProbe:
            httpGet: {path: /healthz, port: plain}
            periodSeconds: 1
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /healthz, port: plain}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: plain}
            periodSeconds: 2
            timeoutSeconds: 2
            failureThreshold: 1
          {{- with .resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            privileged: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - name: configuration
              mountPath: /etc/quaymaster
              readOnly: true
            # Cached metadata of TUF repositories (trust.cacheFolder).
            - name: cache
              mountPath: /var/cache/quaymaster
            {{- if include "quaymaster.certificateSecret" $root }}
            - name: certificate
              mountPath: /etc/quaymaster-certificate
              readOnly: true
            {{- end }}
            {{- range $values.policies.configMaps }}
            - name: policies-{{ . }}
              mountPath: /etc/quaymaster-policies/{{ . }}
              readOnly: true
            {{- end }}
            {{- with $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: configuration
          configMap:
            name: {{ include "quaymaster.fullname" $root }}
        - name: cache
          emptyDir: {sizeLimit: 64Mi}
        {{- with include "quaymaster.certificateSecret" $root }}
        - name: certificate
          secret:
            secretName: {{ . }}
        {{- end }}
        {{- range $values.policies.configMaps }}
        - name: policies-{{ . }}
          configMap:
            name: {{ . }}
        {{- end }}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}
