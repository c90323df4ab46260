#!/usr/bin/env python3
"""Writes the trimmed API description of the simulator (crates/kflare-sim/api/).

    hack/sim-api-description.py OPENAPI.json OPERATIONS.tsv [SDK-OPERATIONS.jsonl SDK-DEFS.json]

OPENAPI.json is Cloudflare's OpenAPI file, OPERATIONS.tsv a list of operations (columns method and path first), the
two SDK files an extract of Cloudflare's TypeScript SDK: one operation a line, and its type definitions as JSON schema.

Two files are written:

- routes.tsv: every method and path template that Cloudflare publishes. The simulator answers 501 to those it does not
  model, and Cloudflare's 7003/7000 to everything else.
- description.json: for the routes that the simulator models, the schemas of a good answer, every reference resolved into
  `$defs`: `openapi` judges the whole body, `sdk` judges `result` (or each entry of it, where `sdk_list` is set).
"""

import json
import pathlib
import re
import sys

# The modelled routes. A test compares this list, as it stands in description.json, with the router table.
MODELLED = [
    ("GET", "/accounts"),
    ("GET", "/accounts/{account_id}"),
    ("GET", "/accounts/{account_id}/tokens/verify"),
    ("GET", "/user/tokens/verify"),
    ("GET", "/zones"),
    ("POST", "/zones"),
    ("GET", "/zones/{zone_id}"),
    ("PATCH", "/zones/{zone_id}"),
    ("DELETE", "/zones/{zone_id}"),
    ("PUT", "/zones/{zone_id}/activation_check"),
    ("GET", "/zones/{zone_id}/dns_records"),
    ("POST", "/zones/{zone_id}/dns_records"),
    ("POST", "/zones/{zone_id}/dns_records/batch"),
    ("GET", "/zones/{zone_id}/dns_records/export"),
    ("GET", "/zones/{zone_id}/dns_records/{dns_record_id}"),
    ("PUT", "/zones/{zone_id}/dns_records/{dns_record_id}"),
    ("PATCH", "/zones/{zone_id}/dns_records/{dns_record_id}"),
    ("DELETE", "/zones/{zone_id}/dns_records/{dns_record_id}"),
    ("GET", "/accounts/{account_id}/cfd_tunnel"),
    ("POST", "/accounts/{account_id}/cfd_tunnel"),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}"),
    ("PATCH", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}"),
    ("DELETE", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}"),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/token"),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations"),
    ("PUT", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations"),
    ("GET", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/connections"),
    ("DELETE", "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/connections"),
]

# Keywords that describe but do not constrain.
NOISE = {"description", "example", "examples", "title", "default", "deprecated", "readOnly", "writeOnly", "in"}
DROPPED_PREFIX = "x-"


class Schemas:
    """Copies schemas and what they refer to into one `$defs`, in JSON Schema 2020-12."""

    def __init__(self, definitions, prefix):
        self.definitions = definitions
        self.prefix = prefix
        self.copied = {}

    def name(self, reference):
        key = reference.removeprefix("#/components/schemas/")
        return key, self.prefix + re.sub(r"[^A-Za-z0-9_.-]", "_", key)

    def copy(self, node, in_properties=False):
        if isinstance(node, list):
            return [self.copy(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node and not in_properties:
            key, name = self.name(node["$ref"])
            if name not in self.copied:
                self.copied[name] = True  # breaks cycles
                self.copied[name] = self.copy(self.definitions[key])
            target = {"$ref": "#/$defs/" + name}
            return {"anyOf": [target, {"type": "null"}]} if node.get("nullable") else target
        copied = {}
        for key, value in node.items():
            if in_properties:
                copied[key] = self.copy(value)
            elif key in NOISE or key == "nullable" or key.startswith(DROPPED_PREFIX):
                continue
            elif key == "properties":
                copied[key] = self.copy(value, in_properties=True)
            else:
                copied[key] = self.copy(value)
        if not in_properties and node.get("nullable"):
            return {"anyOf": [copied, {"type": "null"}]}
        return copied


def ok_schema(operation):
    """The JSON schema of the first 2xx answer, or None (an answer that is not JSON)."""
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2"):
            return answer.get("content", {}).get("application/json", {}).get("schema")
    return None


def main(arguments):
    if len(arguments) not in (2, 4):
        sys.exit(__doc__)
    openapi = json.loads(pathlib.Path(arguments[0]).read_text())
    lines = pathlib.Path(arguments[1]).read_text().splitlines()[1:]
    target = pathlib.Path(__file__).resolve().parent.parent / "crates" / "kflare-sim" / "api"

    templates = {tuple(line.split("\t")[:2]) for line in lines if line.strip()}
    for path, operations in openapi["paths"].items():
        templates.update(
            (method.upper(), path) for method in operations if method in ("get", "post", "put", "patch", "delete")
        )
    sdk_operations = {}
    if len(arguments) == 4:
        for line in pathlib.Path(arguments[2]).read_text().splitlines():
            operation = json.loads(line)
            sdk_operations[(operation["method"], operation["path"])] = operation
            templates.add((operation["method"], operation["path"]))
    # One template a shape: the sources name parameters differently, and only the shape routes.
    shapes = {}
    for method, path in sorted(templates, key=lambda route: (route not in MODELLED, route[1], route[0])):
        path = path.split("?")[0]
        shapes.setdefault((method, re.sub(r"\{[^}]*\}", "{}", path)), (method, path))
    routes = sorted(shapes.values(), key=lambda route: (route[1], route[0]))
    header = "# Generated by hack/sim-api-description.py from Cloudflare's published API description. Do not edit.\n"
    (target / "routes.tsv").write_text(header + "".join(f"{method}\t{path}\n" for method, path in routes))

    whole = Schemas(openapi["components"]["schemas"], "")
    sdk = Schemas(json.loads(pathlib.Path(arguments[3]).read_text()) if len(arguments) == 4 else {}, "sdk.")
    described = []
    for method, path in MODELLED:
        if (method, path) not in templates:
            sys.exit(f"{method} {path} is not a route that Cloudflare publishes")
        entry = {"method": method, "path": path}
        operation = openapi["paths"].get(path, {}).get(method.lower())
        schema = operation and ok_schema(operation)
        if schema:
            entry["openapi"] = whole.copy(schema)
        newer = sdk_operations.get((method, path))
        if newer and newer.get("result", {}).get("type") != "string":
            result = newer["result"]
            if "list" in result:
                entry["sdk_list"] = True
                result = result["list"]
            entry["sdk"] = sdk.copy(result)
        described.append(entry)
    document = {
        "$comment": "Generated by hack/sim-api-description.py from Cloudflare's published API description. Do not edit.",
        "routes": described,
        "$defs": dict(sorted({**whole.copied, **sdk.copied}.items())),
    }
    (target / "description.json").write_text(json.dumps(document, indent=1, sort_keys=False) + "\n")


main(sys.argv[1:])
