{{/* The name of most objects: the release's, with gemmd in it. */}}
{{- define "gemmd.name" -}}
{{- if contains "gemmd" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-gemmd" (.Release.Name | trunc 46 | trimSuffix "-") }}{{ end -}}
{{- end }}

{{/* What selects the pods. Never changes: a Deployment's selector cannot. */}}
{{- define "gemmd.selector" -}}
app.kubernetes.io/name: gemmd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gemmd.labels" -}}
{{ include "gemmd.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end }}

{{- define "gemmd.image" -}}
{{- $tag := .Values.image.tag | default (ternary "gpu" "host" (eq .Values.device "cuda")) -}}
{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ $tag }}{{ end }}
{{- end }}

{{- define "gemmd.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gemmd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Refuses values that do not fit each other, which the schema cannot say clearly. */}}
{{- define "gemmd.check" -}}
{{- with .Values }}
{{- if and (not .tls.secret) (not (has .insecure (list "plaintext" "all"))) }}
{{- fail (printf "tls.secret is empty and insecure is %s: name a secret with tls.crt and tls.key, or set insecure to plaintext or all" .insecure) }}
{{- end }}
{{- if and (not .callers.secret) (not (has .insecure (list "anonymous" "all"))) }}
{{- fail (printf "callers.secret is empty and insecure is %s: name a secret with the key callers, or set insecure to anonymous or all" .insecure) }}
{{- end }}
{{- if and .tls.clientCa (not .tls.secret) }}
{{- fail (printf "tls.clientCa is %s and tls.secret is empty: the CA is a key of that secret" .tls.clientCa) }}
{{- end }}
{{- if and .callers.quotas (not .callers.secret) }}
{{- fail (printf "callers.quotas is %s and callers.secret is empty: the quotas are a key of that secret" .callers.quotas) }}
{{- end }}
{{- if eq .image.tag "latest" }}
{{- fail "image.tag is latest, which may be any version: name one" }}
{{- end }}
{{- range .extraArgs }}
{{- $flag := . | splitList "=" | first | trimPrefix "--" }}
{{- if has $flag (list "devices" "drain-delay" "drain-timeout" "tls-certificate" "tls-key" "tls-client-ca" "tls-client-certificates" "callers-file" "quotas-file" "insecure") }}
{{- fail (printf "extraArgs has --%s, which the chart sets by its other values" $flag) }}
{{- end }}
{{- if has $flag (list "address" "metrics-address") }}
{{- fail (printf "extraArgs has --%s: probes and services ask at the ports 50051 and 9464" $flag) }}
{{- end }}
{{- end }}
{{- range .extraVolumes }}
{{- if has .name (list "tls" "callers") }}
{{- fail (printf "extraVolumes has %s, a name that the chart uses" .name) }}
{{- end }}
{{- end }}
{{- if and .autoscaling.enabled (gt (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) }}
{{- fail (printf "autoscaling.minReplicas is %d: at most maxReplicas, %d" (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) }}
{{- end }}
{{- end }}
{{- end }}
