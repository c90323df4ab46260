{{/* Name of the chart, as it stands in labels. */}}
{{- define "kflare.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* What the names of all objects begin with: the release's name, with the chart's where that is not in it. At most 40 characters, so that
what is added fits. */}}
{{- define "kflare.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := include "kflare.name" . }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kflare.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kflare.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kflare.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "kflare.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "kflare.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "kflare.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "kflare.metricsName" -}}
{{ include "kflare.fullname" . }}-metrics
{{- end }}

{{- define "kflare.image" -}}
{{- $image := printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- if .Values.image.digest }}
{{- $image = printf "%s@%s" $image .Values.image.digest }}
{{- end }}
{{- $image }}
{{- end }}

{{/* The rules of one role of files/rbac, as a YAML list. Takes a list: the root, the file, the role's name. */}}
{{- define "kflare.rules" -}}
{{- $file := printf "files/rbac/%s" (index . 1) }}
{{- $name := index . 2 }}
{{- $rules := list }}
{{- range splitList "\n---\n" ((index . 0).Files.Get $file) }}
{{- $object := fromYaml . }}
{{- if and (has $object.kind (list "Role" "ClusterRole")) (eq (dig "metadata" "name" "" $object) $name) }}
{{- $rules = $object.rules }}
{{- end }}
{{- end }}
{{- if not $rules }}
{{- fail (printf "%s has no rules of a role %s" $file $name) }}
{{- end }}
{{- toYaml $rules }}
{{- end }}

{{/* Plural names of the kinds that belong to no namespace, as a YAML list. */}}
{{- define "kflare.clusterScoped" -}}
{{- $found := list }}
{{- range $path, $content := .Files.Glob "files/crds/*.yaml" }}
{{- $crd := fromYaml ($.Files.Get $path) }}
{{- if eq $crd.spec.scope "Cluster" }}
{{- $found = append $found $crd.spec.names.plural }}
{{- end }}
{{- end }}
{{- toYaml $found }}
{{- end }}

{{/* The controller's rules, parted by where they are needed: `cluster`, and `namespaces` (each of watchNamespaces). */}}
{{- define "kflare.controllerRules" -}}
{{- $cluster := list }}
{{- $namespaces := list }}
{{- $clusterScoped := include "kflare.clusterScoped" . | fromYamlArray }}
{{- range include "kflare.rules" (list . "controller.yaml" "kflare-controller") | fromYamlArray }}
{{- $group := first .apiGroups }}
{{- if and (has $group (list "authentication.k8s.io" "authorization.k8s.io")) (not (and $.Values.metrics.enabled $.Values.metrics.secure)) }}
{{- /* Nobody's token is ever looked at. */}}
{{- else if not $.Values.watchNamespaces }}
{{- $cluster = append $cluster . }}
{{- else if eq $group "kflare.dev" }}
{{- $wide := list }}
{{- $narrow := list }}
{{- range .resources }}
{{- if has (first (splitList "/" .)) $clusterScoped }}
{{- $wide = append $wide . }}
{{- else }}
{{- $narrow = append $narrow . }}
{{- end }}
{{- end }}
{{- if $wide }}
{{- $cluster = append $cluster (set (deepCopy .) "resources" $wide) }}
{{- end }}
{{- if $narrow }}
{{- $namespaces = append $namespaces (set (deepCopy .) "resources" $narrow) }}
{{- end }}
{{- else if and (eq $group "") (not (has "watch" .verbs)) }}
{{- $namespaces = append $namespaces . }}
{{- else }}
{{- $cluster = append $cluster . }}
{{- end }}
{{- end }}
{{- toYaml (dict "cluster" $cluster "namespaces" $namespaces) }}
{{- end }}

{{/* What the schema cannot say. */}}
{{- define "kflare.validate" -}}
{{- $most := ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled | int }}
{{- if and (not .Values.leaderElection.enabled) (gt $most 1) }}
{{- fail "leaderElection.enabled=false lets every replica write: set autoscaling.enabled=false and replicaCount=1 too" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas is more than autoscaling.maxReplicas" }}
{{- end }}
{{- range list "serviceMonitor" "prometheusRule" "dashboard" }}
{{- if and (get $.Values.metrics .).enabled (not $.Values.metrics.enabled) }}
{{- fail (printf "metrics.%s.enabled needs metrics.enabled" .) }}
{{- end }}
{{- end }}
{{- if and .Values.metrics.certSecret (not .Values.metrics.secure) }}
{{- fail "metrics.certSecret has no use without metrics.secure" }}
{{- end }}
{{- if and .Values.kinds (not (has "CloudflareAccount" .Values.kinds)) }}
{{- fail "kinds: CloudflareAccount must be among them" }}
{{- end }}
{{- end }}
