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
    ("GET", "/accounts/{account_id}/storage/kv/namespaces"),
    ("POST", "/accounts/{account_id}/storage/kv/namespaces"),
    ("GET", "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}"),
    ("PUT", "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}"),
    ("DELETE", "/accounts/{account_id}/storage/kv/namespaces/{namespace_id}"),
    ("GET", "/accounts/{account_id}/r2/buckets"),
    ("POST", "/accounts/{account_id}/r2/buckets"),
    ("GET", "/accounts/{account_id}/r2/buckets/{bucket_name}"),
    ("PATCH", "/accounts/{account_id}/r2/buckets/{bucket_name}"),
    ("DELETE", "/accounts/{account_id}/r2/buckets/{bucket_name}"),
    ("GET", "/accounts/{account_id}/r2/buckets/{bucket_name}/cors"),
    ("PUT", "/accounts/{account_id}/r2/buckets/{bucket_name}/cors"),
    ("DELETE", "/accounts/{account_id}/r2/buckets/{bucket_name}/cors"),
    ("GET", "/accounts/{account_id}/r2/buckets/{bucket_name}/lifecycle"),
    ("PUT", "/accounts/{account_id}/r2/buckets/{bucket_name}/lifecycle"),
    ("GET", "/accounts/{account_id}/d1/database"),
    ("POST", "/accounts/{account_id}/d1/database"),
    ("GET", "/accounts/{account_id}/d1/database/{database_id}"),
    ("PUT", "/accounts/{account_id}/d1/database/{database_id}"),
    ("PATCH", "/accounts/{account_id}/d1/database/{database_id}"),
    ("DELETE", "/accounts/{account_id}/d1/database/{database_id}"),
    ("GET", "/accounts/{account_id}/queues"),
    ("POST", "/accounts/{account_id}/queues"),
    ("GET", "/accounts/{account_id}/queues/{queue_id}"),
    ("PUT", "/accounts/{account_id}/queues/{queue_id}"),
    ("PATCH", "/accounts/{account_id}/queues/{queue_id}"),
    ("DELETE", "/accounts/{account_id}/queues/{queue_id}"),
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
    ("GET", "/zones/{zone_id}/rulesets"),
    ("POST", "/zones/{zone_id}/rulesets"),
    ("GET", "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint"),
    ("PUT", "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint"),
    ("GET", "/zones/{zone_id}/rulesets/{ruleset_id}"),
    ("PUT", "/zones/{zone_id}/rulesets/{ruleset_id}"),
    ("DELETE", "/zones/{zone_id}/rulesets/{ruleset_id}"),
    ("POST", "/zones/{zone_id}/rulesets/{ruleset_id}/rules"),
    ("PATCH", "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}"),
    ("DELETE", "/zones/{zone_id}/rulesets/{ruleset_id}/rules/{rule_id}"),
    ("GET", "/accounts/{account_id}/rules/lists"),
    ("POST", "/accounts/{account_id}/rules/lists"),
    ("GET", "/accounts/{account_id}/rules/lists/{list_id}"),
    ("PUT", "/accounts/{account_id}/rules/lists/{list_id}"),
    ("DELETE", "/accounts/{account_id}/rules/lists/{list_id}"),
    ("GET", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("POST", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("PUT", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("DELETE", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("GET", "/accounts/{account_id}/rules/lists/{list_id}/items/{item_id}"),
    ("GET", "/accounts/{account_id}/rules/lists/bulk_operations/{operation_id}"),
    ("GET", "/zones/{zone_id}/managed_headers"),
    ("PATCH", "/zones/{zone_id}/managed_headers"),
    ("DELETE", "/zones/{zone_id}/managed_headers"),
    ("GET", "/accounts/{account_id}/workers/scripts"),
    ("PUT", "/accounts/{account_id}/workers/scripts/{script_name}"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}"),
    ("DELETE", "/accounts/{account_id}/workers/scripts/{script_name}"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}/content/v2"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}/settings"),
    ("PATCH", "/accounts/{account_id}/workers/scripts/{script_name}/settings"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}/schedules"),
    ("PUT", "/accounts/{account_id}/workers/scripts/{script_name}/schedules"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}/subdomain"),
    ("POST", "/accounts/{account_id}/workers/scripts/{script_name}/subdomain"),
    ("DELETE", "/accounts/{account_id}/workers/scripts/{script_name}/subdomain"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}/secrets"),
    ("PUT", "/accounts/{account_id}/workers/scripts/{script_name}/secrets"),
    ("GET", "/accounts/{account_id}/workers/scripts/{script_name}/secrets/{secret_name}"),
    ("DELETE", "/accounts/{account_id}/workers/scripts/{script_name}/secrets/{secret_name}"),
    ("GET", "/zones/{zone_id}/workers/routes"),
    ("POST", "/zones/{zone_id}/workers/routes"),
    ("GET", "/zones/{zone_id}/workers/routes/{route_id}"),
    ("PUT", "/zones/{zone_id}/workers/routes/{route_id}"),
    ("DELETE", "/zones/{zone_id}/workers/routes/{route_id}"),
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

# The extract of the SDK has no result for these: they answer as the named one does, with the whole ruleset.
SAME_RESULT = {
    "rulesets.create": "rulesets.get",
    "rulesets.update": "rulesets.get",
    "rulesets.phases.update": "rulesets.get",
    "rulesets.rules.create": "rulesets.get",
    "rulesets.rules.edit": "rulesets.get",
    "rulesets.rules.delete": "rulesets.get",
}

# The SDK leaves the action of each type of rule open in its extract, so that any rule would fit some type; its
# documentation ties each type to one.
ACTION_OF_RULE = {
    "BlockRule": "block",
    "ChallengeRule": "challenge",
    "DDoSDynamicRule": "ddos_dynamic",
    "ExecuteRule": "execute",
    "ForceConnectionCloseRule": "force_connection_close",
    "JavaScriptChallengeRule": "js_challenge",
    "LogCustomFieldRule": "log_custom_field",
    "LogRule": "log",
    "ManagedChallengeRule": "managed_challenge",
    "RedirectRule": "redirect",
    "ResponseCompressionRule": "compress_response",
    "RewriteRule": "rewrite",
    "RouteRule": "route",
    "ScoreRule": "score",
    "ServeErrorRule": "serve_error",
    "SetCacheControlRule": "set_cache_control",
    "SetCacheSettingsRule": "set_cache_settings",
    "SetCacheTagsRule": "set_cache_tags",
    "SetConfigurationRule": "set_config",
    "SkipRule": "skip",
    "TransformResponseHTMLRule": "transform_response_html",
}

# Routes whose schema in the OpenAPI file no answer can fit: it asks that the result be an array and an object, or an object
# and a text, or that the envelope have the fields of the result. The SDK's schema judges them alone.
CONTRADICTORY = {
    ("GET", "/accounts/{account_id}/queues"),
    ("POST", "/accounts/{account_id}/queues"),
    ("GET", "/accounts/{account_id}/queues/{queue_id}"),
    ("PUT", "/accounts/{account_id}/queues/{queue_id}"),
    ("POST", "/accounts/{account_id}/rules/lists"),
    ("GET", "/accounts/{account_id}/rules/lists/{list_id}"),
    ("PUT", "/accounts/{account_id}/rules/lists/{list_id}"),
    ("DELETE", "/accounts/{account_id}/rules/lists/{list_id}"),
    ("GET", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("POST", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("PUT", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("DELETE", "/accounts/{account_id}/rules/lists/{list_id}/items"),
    ("GET", "/accounts/{account_id}/rules/lists/{list_id}/items/{item_id}"),
}

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


def with_actions(definitions):
    """The definitions of the SDK, each type of rule in a ruleset tied to its action."""
    for name, definition in definitions.items():
        owner, _, kind = name.rpartition(".")
        if owner.startswith("rulesets_") and owner.endswith("GetResponse") and kind in ACTION_OF_RULE:
            definition["properties"]["action"] = {"const": ACTION_OF_RULE[kind]}
    return definitions


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
        by_id = {operation["id"]: operation for operation in sdk_operations.values()}
        for operation in by_id.values():
            if operation["id"] in SAME_RESULT:
                operation["result"] = by_id[SAME_RESULT[operation["id"]]]["result"]
            # The same for accounts and zones, with a path that begins with a parameter.
            shared = operation["path"].removeprefix("/{account_or_zone}/{account_or_zone_id}/")
            if shared != operation["path"]:
                sdk_operations.setdefault((operation["method"], "/zones/{zone_id}/" + shared), operation)
    # One template a shape: the sources name parameters differently, and only the shape routes.
    shapes = {}
    for method, path in sorted(templates, key=lambda route: (route not in MODELLED, route[1], route[0])):
        path = path.split("?")[0]
        shapes.setdefault((method, re.sub(r"\{[^}]*\}", "{}", path)), (method, path))
    routes = sorted(shapes.values(), key=lambda route: (route[1], route[0]))
    header = "# Generated by hack/sim-api-description.py from Cloudflare's published API description. Do not edit.\n"
    (target / "routes.tsv").write_text(header + "".join(f"{method}\t{path}\n" for method, path in routes))

    whole = Schemas(openapi["components"]["schemas"], "")
    definitions = json.loads(pathlib.Path(arguments[3]).read_text()) if len(arguments) == 4 else {}
    sdk = Schemas(with_actions(definitions), "sdk.")
    described = []
    for method, path in MODELLED:
        if (method, path) not in templates:
            sys.exit(f"{method} {path} is not a route that Cloudflare publishes")
        entry = {"method": method, "path": path}
        operation = openapi["paths"].get(path, {}).get(method.lower())
        schema = operation and (method, path) not in CONTRADICTORY and ok_schema(operation)
        if schema:
            entry["openapi"] = whole.copy(schema)
        newer = sdk_operations.get((method, path))
        if newer and not newer.get("unwrap") and "list" not in newer.get("result", {}):
            newer = None  # the SDK hands out the envelope, and its schema is of that
        if newer and newer.get("result", {}).get("type") != "string" and newer.get("result") != {"x": "void"}:
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
