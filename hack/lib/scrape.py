"""Turns a ServiceMonitor into a configuration of Prometheus, as the Prometheus Operator does.

    scrape.py TOKEN CA RULES ADDRESS [TARGET...]

Standard input is a list (JSON) of the ServiceMonitor and the Services of its namespace. Debian's Prometheus does not look for targets in
Kubernetes: it is handed what it would find out about each port of a Service, and chooses by the Operator's rules. TOKEN and CA
are files that stand for the token of Prometheus' own pod and for what the ServiceMonitor takes out of a Secret. RULES is a file of
rules. ADDRESS is where the endpoint of the chart's Service really is. TARGETs are kube-state-metrics.
"""

import json
import re
import sys

token, ca, rules, address, *targets = sys.argv[1:]
POD_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
items = json.load(sys.stdin)["items"]
[monitor] = [it for it in items if it["kind"] == "ServiceMonitor"]
spec, meta = monitor["spec"], monitor["metadata"]


def label(name):
    """A name of Kubernetes as Prometheus has it."""
    return re.sub(r"\W", "_", name)


def found(service, port):
    """What discovery says of a port of a Service."""
    about = {
        "__meta_kubernetes_namespace": service["metadata"]["namespace"],
        "__meta_kubernetes_service_name": service["metadata"]["name"],
        "__meta_kubernetes_endpoint_port_name": port["name"],
    }
    for name, value in service["metadata"].get("labels", {}).items():
        about[f"__meta_kubernetes_service_label_{label(name)}"] = value
        about[f"__meta_kubernetes_service_labelpresent_{label(name)}"] = "true"
    return {"targets": [address], "labels": about}


def rule(source, target=None, **more):
    """A relabelling from one label, or several."""
    made = {"source_labels": source if isinstance(source, list) else [source]} if source else {}
    return {**made, **({"target_label": target} if target else {}), **more}


def tls(settings):
    """What there is of TLS settings here; a setting that is not known must not go unnoticed."""
    names = {"serverName": "server_name", "insecureSkipVerify": "insecure_skip_verify"}
    made = {names[name]: value for name, value in settings.items() if name != "ca"}
    return made | ({"ca_file": ca} if "ca" in settings else {})


def job(number, endpoint):
    """One endpoint."""
    service = "__meta_kubernetes_service_label_"
    present = "__meta_kubernetes_service_labelpresent_"
    relabel = []
    for name, value in spec["selector"]["matchLabels"].items():
        sources = [service + label(name), present + label(name)]
        relabel.append(rule(sources, regex=f"({re.escape(value)});true", action="keep"))
    relabel += [
        rule("__meta_kubernetes_endpoint_port_name", regex=endpoint["port"], action="keep"),
        rule("__meta_kubernetes_namespace", "namespace"),
        rule("__meta_kubernetes_service_name", "service"),
        rule("__meta_kubernetes_service_name", "job"),
        rule(None, "endpoint", replacement=endpoint["port"]),
    ]
    made = {
        "job_name": f"serviceMonitor/{meta['namespace']}/{meta['name']}/{number}",
        "metrics_path": endpoint["path"],
        "scheme": endpoint["scheme"],
        "static_configs": [
            found(service, port)
            for service in items
            if service["kind"] == "Service" and service["metadata"]["namespace"] in spec["namespaceSelector"]["matchNames"]
            for port in service["spec"]["ports"]
        ],
        "relabel_configs": relabel,
        "tls_config": tls(endpoint["tlsConfig"]),
        "scrape_interval": endpoint["interval"],
        "scrape_timeout": endpoint["interval"],
    }
    if endpoint["bearerTokenFile"] != POD_TOKEN:
        sys.exit(f"scrape: another token than that of Prometheus' pod: {endpoint['bearerTokenFile']}")
    return made | {"authorization": {"type": "Bearer", "credentials_file": token}}


jobs = [job(number, endpoint) for number, endpoint in enumerate(spec["endpoints"])]
state = {"job_name": "kube-state-metrics", "honor_labels": True, "static_configs": [{"targets": targets}]}
every = spec["endpoints"][0]["interval"]
json.dump(
    {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [rules],
        "scrape_configs": [*jobs, state],
    },
    sys.stdout,
    indent=1,
)
