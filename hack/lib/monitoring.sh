# Sourced by hack/chart-steps, after processes.sh: Prometheus and kube-state-metrics beside the release, with rights of their own.
# Needs OPENSSL and KUBE_STATE_METRICS, and PROMETHEUS and PROMTOOL for prometheus_says.

# access FILE NAMESPACE SERVICE_ACCOUNT: a kubeconfig that has the token of a ServiceAccount and nothing else.
access() {
  cp "$KUBECONFIG" "$1"
  kube --kubeconfig "$1" config unset users
  kube --kubeconfig "$1" config set-credentials it --token="$(kubectl --namespace "$2" create token "$3")"
  kube --kubeconfig "$1" config set-context --current --user=it
}

# authority NAME: makes a certificate authority.
authority() {
  "$OPENSSL" req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj "/CN=$1" \
    -keyout "$WORK/$1.key" -out "$WORK/$1.crt" 2>"$WORK/openssl.log" || die "no authority $1"
}

# certificate_secret AUTHORITY: puts a new certificate of that authority, for the chart's Service, into the Secret that the release
# names. ca.crt stays that of the first.
certificate_secret() {
  local name=kflare-metrics.$system.svc
  "$OPENSSL" req -x509 -CA "$WORK/$1.crt" -CAkey "$WORK/$1.key" -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 \
    -subj "/CN=$name" -addext "subjectAltName=DNS:$name" -addext basicConstraints=critical,CA:FALSE \
    -keyout "$WORK/tls.key" -out "$WORK/tls.crt" 2>"$WORK/openssl.log" || die "no certificate of $1"
  [[ -f $WORK/ca.crt ]] || cp "$WORK/$1.crt" "$WORK/ca.crt"
  kubectl --namespace "$system" create secret generic kflare-metrics-tls --dry-run=client --output=yaml \
    --from-file="$WORK/tls.crt" --from-file="$WORK/tls.key" --from-file="$WORK/ca.crt" | kube apply --filename -
}

# mount_certificate: what the Deployment's volume has of that Secret, put in place as a kubelet does: a new folder, and a link to it
# that is swapped.
mount_certificate() {
  local folder secret key path
  mkdir -p "$WORK/certificate"
  folder=$(mktemp -d "$WORK/certificate/..XXXXXX")
  secret=$(kubectl --namespace "$system" get deployment kflare --output=jsonpath='{.spec.template.spec.volumes[?(@.name=="metrics-certificate")].secret.secretName}')
  while read -r key path; do
    kubectl --namespace "$system" get secret "$secret" --output=json |
      python3 -c 'import base64, json, sys; sys.stdout.buffer.write(base64.b64decode(json.load(sys.stdin)["data"][sys.argv[1]]))' "$key" >"$folder/$path"
    ln -sfn "..data/$path" "$WORK/certificate/$path"
  done < <(kubectl --namespace "$system" get deployment kflare \
    --output=jsonpath='{range .spec.template.spec.volumes[?(@.name=="metrics-certificate")].secret.items[*]}{.key} {.path}{"\n"}{end}')
  ln -sfn "$(basename "$folder")" "$WORK/certificate/..new"
  mv -T "$WORK/certificate/..new" "$WORK/certificate/..data"
}

# served_by AUTHORITY: whether who asks for the chart's Service by its name gets a certificate of that authority.
served_by() {
  local address=${METRICS#https://} name=kflare-metrics.$system.svc
  curl --silent --output /dev/null --max-time 10 --cacert "$WORK/$1.crt" --connect-to "$name:443:${address%/metrics}" "https://$name/metrics"
}

# start_kube_state_metrics: with the configuration and the rights of config/kube-state-metrics.
start_kube_state_metrics() {
  kube apply --filename config/kube-state-metrics/role.yaml
  kube --namespace "$tenant" create serviceaccount kube-state-metrics
  kube create clusterrolebinding kube-state-metrics --clusterrole=kflare-kube-state-metrics --serviceaccount="$tenant:kube-state-metrics"
  access "$WORK/kube-state-metrics.access" "$tenant" kube-state-metrics
  in_background kube-state-metrics "$KUBE_STATE_METRICS" --kubeconfig "$WORK/kube-state-metrics.access" --custom-resource-state-only \
    --custom-resource-state-config-file config/kube-state-metrics/config.yaml \
    --host 127.0.0.1 --port 0 --telemetry-host 127.0.0.1 --telemetry-port 0
  eventually "a line for the condition of every resource" told_as_they_are
}

# It has two servers, and its log does not say which is which.
kube_state_metrics_addresses() { sed -nE 's/.*"Listening on" address="([0-9.:]+)".*/\1/p' "$WORK/kube-state-metrics.log"; }

# Whether kube-state-metrics tells of every resource what its condition says, and of no other.
told_as_they_are() {
  local address
  kubectl get kflare --all-namespaces --output=jsonpath='{range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{range .status.conditions[*]} {.type}={.status}:{.reason}{end}{"\n"}{end}' |
    sort >"$WORK/conditions"
  for address in $(kube_state_metrics_addresses); do
    curl --silent --max-time 10 "http://$address/metrics"
  done | python3 hack/lib/conditions.py | sort | diff "$WORK/conditions" - >"$WORK/told-otherwise.log" && [[ -s $WORK/conditions ]]
}

# start_prometheus: with what the chart's ServiceMonitor and PrometheusRule say, and the token of the ServiceAccount `prometheus`.
start_prometheus() {
  local address targets
  kube --namespace "$tenant" create serviceaccount prometheus
  kubectl --namespace "$tenant" create token prometheus >"$WORK/prometheus.token"
  kubectl --namespace "$system" get prometheusrules.monitoring.coreos.com kflare --output=json |
    python3 -c 'import json, sys; json.dump(json.load(sys.stdin)["spec"], sys.stdout)' >"$WORK/rules.yaml"
  address=${METRICS#https://}
  mapfile -t targets < <(kube_state_metrics_addresses)
  kubectl get services,servicemonitors.monitoring.coreos.com --all-namespaces --output=json |
    python3 hack/lib/scrape.py "$WORK/prometheus.token" "$WORK/ca.crt" "$WORK/rules.yaml" \
      "${address%/metrics}" "${targets[@]}" >"$WORK/prometheus.yaml"
  "$PROMTOOL" check config "$WORK/prometheus.yaml" >"$WORK/promtool.log" 2>&1 || die "Prometheus cannot be set so: $(cat "$WORK/promtool.log")"
  in_background prometheus "$PROMETHEUS" --config.file="$WORK/prometheus.yaml" --storage.tsdb.path="$WORK/tsdb" --web.listen-address=127.0.0.1:0
  PROMETHEUS_URL=http://$(logged prometheus '[Ll]istening on.*127\.0\.0\.1:[1-9][0-9]*' | grep -oE '127\.0\.0\.1:[0-9]+')
}

# prometheus_says QUERY: whether it has a result now.
prometheus_says() { "$PROMTOOL" query instant "$PROMETHEUS_URL" "$1" | grep -q .; }
prometheus_is_silent_on() { [[ -z $("$PROMTOOL" query instant "$PROMETHEUS_URL" "$1") ]]; }

# Whether the scrapes of the chart's Service fail, and for that reason.
scrapes_fail_with() {
  prometheus_says 'up{job="kflare-metrics",namespace="kflare-system"} == 0' &&
    curl --silent --fail --max-time 10 "$PROMETHEUS_URL/api/v1/targets?state=active" | grep -qF "$1"
}

# What the functions above have made in the cluster.
forget_monitoring() {
  kube --namespace "$system" delete secret/kflare-metrics-tls
  kube delete clusterrole/kflare-kube-state-metrics clusterrolebinding/kube-state-metrics
  kube --namespace "$tenant" delete serviceaccount/kube-state-metrics
  [[ -n $PROMETHEUS ]] || return 0
  kube --namespace "$tenant" delete serviceaccount/prometheus
}
