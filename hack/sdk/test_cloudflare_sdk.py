#!/usr/bin/env python3
"""Drives a running simulator with Cloudflare's official Python SDK.

    hack/sdk/test_cloudflare_sdk.py [http://127.0.0.1:8080]

The simulator's URL is the argument or KFLARE_SIM_URL. Everything the script needs it seeds through the control API, so it
resets the simulator first. Prints one OK line for each scenario; ends with status 1 at the first that fails.
"""

import json
import os
import sys
import urllib.request

import cloudflare
from cloudflare import Cloudflare

ACCOUNT = "a" * 32
WORD = "-".join(["sim", "sdk", "token"])
# What the user's token may do besides zones and records.
MORE = [
    "lists.write",
    "managed_headers.write",
    "waf.write",
    "transform.write",
    "redirect.write",
]


def control(base, method, path, body=None):
    """One call of the control API."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{base}/_sim/{path}", data=data, method=method)
    request.add_header("content-type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def seed(base):
    control(base, "POST", "reset")
    zone = {"permission": "zone.write"}
    control(
        base,
        "POST",
        "seed",
        {
            "accounts": [{"id": ACCOUNT, "name": "SDK test"}],
            "tokens": [
                {"value": f"{WORD}-user", "permissions": [zone, "dns.write", "account.read", "tunnel.write", *MORE]},
                {"value": f"{WORD}-account", "account": ACCOUNT, "permissions": [zone, "dns.write"]},
                {"value": f"{WORD}-reader", "permissions": ["zone.read", "dns.read"]},
                {"value": f"{WORD}-stores", "account": ACCOUNT, "permissions": ["kv.write", "r2.write", "d1.write", "queues.write"]},
                {"value": f"{WORD}-workers", "permissions": ["workers_scripts.write", "workers_routes.write"]},
            ],
        },
    )


def client(base, kind):
    return Cloudflare(api_token=f"{WORD}-{kind}", base_url=f"{base}/client/v4", max_retries=0)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def refused(call, status, code):
    """Makes a call that has to be refused with this status and this code, at the root of the error."""
    try:
        call()
    except cloudflare.APIStatusError as error:
        body = error.response.json()["errors"][0]
        root = body.get("error_chain", [body])[-1]
        expect(error.status_code == status, f"status {error.status_code}, not {status}: {body}")
        expect(root["code"] == code, f"code {root['code']}, not {code}: {body}")
        return
    raise AssertionError(f"not refused with {code}")


def verify_tokens(base):
    expect(client(base, "user").user.tokens.verify().status == "active", "the user token verifies")
    account = client(base, "account")
    expect(account.accounts.tokens.verify(account_id=ACCOUNT).status == "active", "the account token verifies")
    refused(account.user.tokens.verify, 401, 1000)
    refused(client(base, "unknown").user.tokens.verify, 401, 1000)


def zones(base):
    sdk = client(base, "user")
    zone = sdk.zones.create(account={"id": ACCOUNT}, name="Example.com", type="full")
    expect((zone.name, zone.status, zone.plan.legacy_id) == ("example.com", "pending", "free"), "a new zone")
    expect(len(zone.name_servers) == 2, "a new zone has name servers")
    refused(lambda: sdk.zones.create(account={"id": ACCOUNT}, name="example.com"), 400, 1061)
    for number in range(60):
        sdk.zones.create(account={"id": ACCOUNT}, name=f"zone{number:02}.example")
    names = {entry.name for entry in sdk.zones.list()}
    expect(len(names) == 61, f"61 zones over pages of 20, not {len(names)}")
    found = list(sdk.zones.list(name="zone42.example", account={"id": ACCOUNT}))
    expect([entry.name for entry in found] == ["zone42.example"], "a zone by name and account")
    sdk.zones.activation_check.trigger(zone_id=zone.id)
    expect(sdk.zones.get(zone_id=zone.id).status == "active", "active after the check")
    expect(sdk.zones.edit(zone_id=zone.id, paused=True).paused, "paused")
    sdk.zones.delete(zone_id=found[0].id)
    refused(lambda: sdk.zones.get(zone_id=found[0].id), 400, 9109)
    return zone.id


def records(base, zone):
    sdk = client(base, "user")
    made = sdk.dns.records.create(zone_id=zone, type="CNAME", name="WWW", content="Target.Example.NET.", ttl=300)
    expect((made.name, made.content) == ("www.example.com", "target.example.net"), "a normalised record")
    refused(
        lambda: sdk.dns.records.create(zone_id=zone, type="A", name="www", content="192.0.2.1", ttl=1), 400, 81054
    )
    refused(lambda: sdk.dns.records.create(zone_id=zone, type="A", name="x", content="::1", ttl=1), 400, 9005)
    refused(
        lambda: client(base, "reader").dns.records.create(
            zone_id=zone, type="A", name="x", content="192.0.2.1", ttl=1
        ),
        403,
        10000,
    )
    changed = sdk.dns.records.edit(
        dns_record_id=made.id, zone_id=zone, type="CNAME", name="www", content="other.example.net", ttl=300
    )
    expect(changed.content == "other.example.net", "a changed record")
    put = sdk.dns.records.update(
        dns_record_id=made.id, zone_id=zone, type="CNAME", name="www", content="other.example.net", ttl=1, proxied=True
    )
    expect((put.proxied, put.ttl) == (True, 1), "a proxied record")
    srv = sdk.dns.records.create(
        zone_id=zone,
        type="SRV",
        name="_xmpp._tcp",
        ttl=1,
        data={"priority": 10, "weight": 0, "port": 5222, "target": "talk.example.net"},
    )
    expect(srv.content == "0 5222 talk.example.net", f"content of SRV: {srv.content}")
    for entry in (made, srv):
        sdk.dns.records.delete(dns_record_id=entry.id, zone_id=zone)
    refused(lambda: sdk.dns.records.get(dns_record_id=made.id, zone_id=zone), 404, 81044)


def batches(base, zone):
    sdk = client(base, "user")
    control(base, "PUT", f"zones/{zone}/plan", {"plan": "pro"})
    posts = [
        {"type": "A", "name": f"h{number:03}", "content": f"192.0.2.{number}", "ttl": 300} for number in range(250)
    ]
    done = sdk.dns.records.batch(zone_id=zone, posts=posts)
    expect(len(done.posts) == 250, "250 records in one batch")
    seen = [entry.name for entry in sdk.dns.records.list(zone_id=zone)]
    expect(len(seen) == len(set(seen)) == 250, f"250 records over pages, not {len(seen)}")
    first = done.posts[0].id
    refused(
        lambda: sdk.dns.records.batch(
            zone_id=zone,
            deletes=[{"id": first}],
            posts=[{"type": "A", "name": "h001", "content": "192.0.2.1", "ttl": 1}],
        ),
        400,
        81058,
    )
    expect(sdk.dns.records.get(dns_record_id=first, zone_id=zone).id == first, "a refused batch has no effect")
    mixed = sdk.dns.records.batch(
        zone_id=zone,
        deletes=[{"id": first}],
        posts=[{"type": "TXT", "name": "t", "content": "a b", "ttl": 1}],
    )
    expect((len(mixed.deletes), mixed.posts[0].content) == (1, '"a b"'), "a mixed batch")
    some = list(sdk.dns.records.list(zone_id=zone, name={"startswith": "h00"}, type="A"))
    expect(len(some) == 9, f"9 records that start with h00, not {len(some)}")
    expect("h001.example.com.\t300\tIN\tA\t192.0.2.1" in sdk.dns.records.export(zone_id=zone), "an export")


def kv_namespaces(base):
    sdk = client(base, "stores")
    made = sdk.kv.namespaces.create(account_id=ACCOUNT, title="sessions")
    expect(made.supports_url_encoding, "a new namespace")
    refused(lambda: sdk.kv.namespaces.create(account_id=ACCOUNT, title="sessions"), 400, 10014)
    for number in range(30):
        sdk.kv.namespaces.create(account_id=ACCOUNT, title=f"n{number:02}")
    ids = [entry.id for entry in sdk.kv.namespaces.list(account_id=ACCOUNT)]
    expect(len(ids) == 31 and ids == sorted(ids), f"31 namespaces by id over pages of 20, not {len(ids)}")
    renamed = sdk.kv.namespaces.update(namespace_id=made.id, account_id=ACCOUNT, title="carts")
    expect((renamed.id, renamed.title) == (made.id, "carts"), "a renamed namespace")
    expect(sdk.kv.namespaces.get(namespace_id=made.id, account_id=ACCOUNT).title == "carts", "a namespace by id")
    sdk.kv.namespaces.delete(namespace_id=made.id, account_id=ACCOUNT)
    refused(lambda: sdk.kv.namespaces.get(namespace_id=made.id, account_id=ACCOUNT), 404, 10013)


def r2_buckets(base):
    sdk = client(base, "stores")
    eu = {"account_id": ACCOUNT, "cf_r2_jurisdiction": "eu"}
    made = sdk.r2.buckets.create(name="assets", location_hint="weur", **eu)
    expect((made.jurisdiction, made.storage_class) == ("eu", "Standard"), "a new bucket")
    refused(lambda: sdk.r2.buckets.create(name="assets", **eu), 409, 10004)
    refused(lambda: sdk.r2.buckets.get(bucket_name="assets", account_id=ACCOUNT), 404, 10006)
    for number in range(5):
        sdk.r2.buckets.create(name=f"bk{number}", **eu)
    first = sdk.r2.buckets.list(per_page=4, **eu)
    expect([entry.name for entry in first.buckets] == ["assets", "bk0", "bk1", "bk2"], "buckets by name")
    rest = sdk.r2.buckets.list(start_after="bk2", **eu)
    expect([entry.name for entry in rest.buckets] == ["bk3", "bk4"], "buckets after a name")
    sdk.r2.buckets.edit(bucket_name="assets", storage_class="InfrequentAccess", **eu)
    expect(sdk.r2.buckets.get(bucket_name="assets", **eu).storage_class == "InfrequentAccess", "a changed class")
    refused(lambda: sdk.r2.buckets.cors.get(bucket_name="assets", **eu), 404, 10059)
    rule = {"allowed": {"methods": ["GET"], "origins": ["https://www.example.com"]}, "max_age_seconds": 3600}
    sdk.r2.buckets.cors.update(bucket_name="assets", rules=[rule], **eu)
    (seen,) = sdk.r2.buckets.cors.get(bucket_name="assets", **eu).rules
    expect((seen.allowed.methods, seen.max_age_seconds) == (["GET"], 3600), "a CORS rule")
    sdk.r2.buckets.cors.delete(bucket_name="assets", **eu)
    (default,) = sdk.r2.buckets.lifecycle.get(bucket_name="assets", **eu).rules
    expect(default.abort_multipart_uploads_transition.condition.max_age == 604800, "the rule of a new bucket")
    logs = {
        "id": "logs",
        "enabled": True,
        "conditions": {"prefix": "logs/"},
        "delete_objects_transition": {"condition": {"type": "Age", "max_age": 86400}},
    }
    sdk.r2.buckets.lifecycle.update(bucket_name="assets", rules=[logs], **eu)
    (seen,) = sdk.r2.buckets.lifecycle.get(bucket_name="assets", **eu).rules
    expect(seen.delete_objects_transition.condition.max_age == 86400, "a lifecycle rule")
    objects = f"accounts/{ACCOUNT}/r2/assets/objects"
    control(base, "PUT", objects, {"count": 1, "jurisdiction": "eu"})
    refused(lambda: sdk.r2.buckets.delete(bucket_name="assets", **eu), 409, 10008)
    control(base, "PUT", objects, {"count": 0, "jurisdiction": "eu"})
    sdk.r2.buckets.delete(bucket_name="assets", **eu)
    refused(lambda: sdk.r2.buckets.get(bucket_name="assets", **eu), 404, 10006)


def d1_databases(base):
    sdk = client(base, "stores")
    made = sdk.d1.database.create(account_id=ACCOUNT, name="shop", primary_location_hint="weur")
    expect((made.version, made.read_replication.mode) == ("production", "disabled"), "a new database")
    refused(lambda: sdk.d1.database.create(account_id=ACCOUNT, name="shop"), 400, 7502)
    refused(lambda: sdk.d1.database.create(account_id=ACCOUNT, name="x", jurisdiction="mars"), 400, 7400)
    sdk.d1.database.create(account_id=ACCOUNT, name="other")
    names = {entry.name for entry in sdk.d1.database.list(account_id=ACCOUNT)}
    expect(names == {"shop", "other"}, f"two databases, not {names}")
    found = list(sdk.d1.database.list(account_id=ACCOUNT, name="shop"))
    expect([entry.uuid for entry in found] == [made.uuid], "a database by name")
    one = {"database_id": made.uuid, "account_id": ACCOUNT}
    changed = sdk.d1.database.edit(read_replication={"mode": "auto"}, **one)
    expect(changed.read_replication.mode == "auto", "replicas")
    expect(sdk.d1.database.get(**one).read_replication.mode == "auto", "a database by id")
    sdk.d1.database.delete(**one)
    refused(lambda: sdk.d1.database.get(**one), 404, 7404)


def queues(base):
    sdk = client(base, "stores").queues
    made = sdk.create(account_id=ACCOUNT, queue_name="jobs")
    expect((made.settings.delivery_delay, made.settings.message_retention_period) == (0, 86400), "a new queue")
    refused(lambda: sdk.create(account_id=ACCOUNT, queue_name="jobs"), 409, 11009)
    refused(lambda: sdk.create(account_id=ACCOUNT, queue_name="Bad Name!"), 400, 11003)
    sdk.create(account_id=ACCOUNT, queue_name="mails")
    names = {entry.queue_name for entry in sdk.list(account_id=ACCOUNT)}
    expect(names == {"jobs", "mails"}, f"two queues, not {names}")
    one = {"queue_id": made.queue_id, "account_id": ACCOUNT}
    changed = sdk.edit(settings={"delivery_delay": 5, "delivery_paused": True}, **one)
    expect((changed.settings.delivery_delay, changed.settings.delivery_paused) == (5, True), "changed settings")
    seen = sdk.get(**one)
    expect((seen.settings.message_retention_period, seen.producers, seen.consumers) == (86400, [], []), "a queue by id")
    refused(lambda: sdk.edit(settings={"message_retention_period": 59}, **one), 400, 100128)
    reset = sdk.update(queue_name="tasks", **one)
    expect((reset.queue_name, reset.settings.delivery_delay) == ("tasks", 0), "replaced as a whole")
    sdk.delete(**one)
    refused(lambda: sdk.get(**one), 404, 11000)


def ended(base, operation):
    """Lets an operation on list items end, and returns how it did."""
    sdk = client(base, "user")
    for _ in range(10):
        state = sdk.rules.lists.bulk_operations.get(operation_id=operation, account_id=ACCOUNT)
        if state.status not in ("pending", "running"):
            return state
        control(base, "POST", "clock/advance", {"seconds": 1})
    raise AssertionError(f"the operation is still {state.status}")


def lists(base):
    sdk = client(base, "user")
    made = sdk.rules.lists.create(account_id=ACCOUNT, kind="ip", name="office", description="ours")
    expect((made.num_items, made.num_referencing_filters) == (0, 0), "a new list is empty")
    refused(lambda: sdk.rules.lists.create(account_id=ACCOUNT, kind="ip", name="office"), 400, 10021)
    body = [{"ip": f"192.0.2.{number}/32", "comment": f"host {number}"} for number in range(60)]
    write = sdk.rules.lists.items.create(list_id=made.id, account_id=ACCOUNT, body=body)
    try:
        sdk.rules.lists.items.create(list_id=made.id, account_id=ACCOUNT, body=body)
        raise AssertionError("a second write while the first one is under way")
    except cloudflare.RateLimitError:
        pass
    expect(ended(base, write.operation_id).status == "completed", "the items are added")
    items = list(sdk.rules.lists.items.list(list_id=made.id, account_id=ACCOUNT, per_page=25))
    expect([entry.ip for entry in items] == [f"192.0.2.{number}" for number in range(60)], "60 items over pages of 25")
    one = sdk.rules.lists.items.get(items[7].id, account_id=ACCOUNT, list_id=made.id)
    expect(one.comment == "host 7", f"an item with its comment: {one}")
    write = sdk.rules.lists.items.update(list_id=made.id, account_id=ACCOUNT, body=[{"ip": "2001:DB8::/32"}])
    expect(ended(base, write.operation_id).status == "completed", "the items are replaced")
    expect(sdk.rules.lists.get(list_id=made.id, account_id=ACCOUNT).num_items == 1, "one item is left")
    control(base, "PUT", f"accounts/{ACCOUNT}/bulk_operations/failure", {"error": "it did not work"})
    write = sdk.rules.lists.items.update(list_id=made.id, account_id=ACCOUNT, body=[{"ip": "192.0.2.1"}])
    failed = ended(base, write.operation_id)
    expect((failed.status, failed.error) == ("failed", "it did not work"), "an operation that failed")
    expect(sdk.rules.lists.update(list_id=made.id, account_id=ACCOUNT, description="theirs").description == "theirs", "")
    control(base, "PUT", f"accounts/{ACCOUNT}/expressions", ["ip.src in $office"])
    refused(lambda: sdk.rules.lists.delete(list_id=made.id, account_id=ACCOUNT), 400, 10031)
    control(base, "PUT", f"accounts/{ACCOUNT}/expressions", [])
    sdk.rules.lists.delete(list_id=made.id, account_id=ACCOUNT)
    expect([entry.name for entry in sdk.rules.lists.list(account_id=ACCOUNT)] == [], "the list is gone")
    refused(lambda: sdk.rules.lists.get(list_id=made.id, account_id=ACCOUNT), 404, 10001)


def managed_transforms(base, zone):
    sdk = client(base, "user")
    before = sdk.managed_transforms.list(zone_id=zone)
    known = {entry.id for entry in [*before.managed_request_headers, *before.managed_response_headers]}
    expect({"add_visitor_location_headers", "add_security_headers"} <= known, f"known transforms: {known}")
    one = {"id": "add_security_headers", "enabled": True}
    sdk.managed_transforms.edit(zone_id=zone, managed_request_headers=[], managed_response_headers=[one])
    other = {"id": "add_visitor_location_headers", "enabled": True}
    after = sdk.managed_transforms.edit(zone_id=zone, managed_request_headers=[other], managed_response_headers=[])
    on = {entry.id for entry in [*after.managed_request_headers, *after.managed_response_headers] if entry.enabled}
    expect(on == {"add_security_headers", "add_visitor_location_headers"}, f"an edit merges: {on}")
    unknown = {"id": "remove_x_powered_by_headers", "enabled": True}
    refused(
        lambda: sdk.managed_transforms.edit(
            zone_id=zone, managed_request_headers=[], managed_response_headers=[unknown]
        ),
        404,
        10001,
    )
    sdk.managed_transforms.delete(zone_id=zone)
    after = sdk.managed_transforms.list(zone_id=zone)
    on = [entry.id for entry in [*after.managed_request_headers, *after.managed_response_headers] if entry.enabled]
    expect(on == [], f"a delete turns all off: {on}")


def plain(answer):
    """An answer as a dict: the SDK has models for rulesets that are read, and none for those that are written."""
    return answer if isinstance(answer, dict) else answer.to_dict()


def rulesets(base, zone):
    sdk = client(base, "user").rulesets
    phase = "http_request_firewall_custom"
    managed = {entry.name: entry.id for entry in sdk.list(zone_id=zone) if entry.kind == "managed"}
    expect("Cloudflare Managed Ruleset" in managed, f"managed rulesets, not {managed}")
    refused(lambda: sdk.phases.get(phase, zone_id=zone), 404, 10003)

    block = {"ref": "first", "action": "block", "expression": "ip.src eq 192.0.2.1", "description": "first"}
    made = plain(sdk.create(zone_id=zone, kind="zone", name="rules", phase=phase, rules=[block]))
    whole, first = made["id"], made["rules"][0]
    expect((made["version"], first["ref"], first["action"]) == ("1", "first", "block"), f"a new ruleset: {made}")
    refused(lambda: sdk.create(zone_id=zone, kind="zone", name="again", phase=phase, rules=[]), 400, 20217)
    read = sdk.get(whole, zone_id=zone)
    expect((read.phase, read.rules[0].id) == (phase, first["id"]), "a ruleset by its id")
    changed = plain(sdk.update(whole, zone_id=zone, description="mine", rules=[block]))
    expect((changed["description"], changed["rules"][0]["id"]) == ("mine", first["id"]), "a put keeps the id of a ref")
    refused(lambda: sdk.update(whole, zone_id=zone, rules=[block, block]), 400, 20021)
    expect(whole in {entry.id for entry in sdk.list(zone_id=zone)}, "it is listed")

    added = plain(
        sdk.rules.create(
            whole,
            zone_id=zone,
            action="skip",
            action_parameters={"phases": ["http_ratelimit"], "products": ["bic"]},
            expression='http.host eq "www.example.com"',
            ref="second",
            position={"before": first["id"]},
        )
    )
    expect([rule["ref"] for rule in added["rules"]] == ["second", "first"], "put before the first")
    second = added["rules"][0]["id"]
    expect(sdk.get(whole, zone_id=zone).rules[0].logging.enabled, "what skips is logged")
    edited = plain(
        sdk.rules.edit(
            second,
            ruleset_id=whole,
            zone_id=zone,
            action="managed_challenge",
            expression="cf.client.bot",
            ref="second",
            enabled=False,
            position={"index": 2},
        )
    )
    rule = edited["rules"][1]
    seen = (rule["id"], rule["action"], rule["enabled"], rule["version"])
    expect(seen == (second, "managed_challenge", False, "2"), f"changed and moved: {edited}")
    refused(lambda: sdk.rules.create(whole, zone_id=zone, action="block", expression="(ip.src eq"), 400, 20127)
    refused(lambda: sdk.rules.delete("f" * 32, ruleset_id=whole, zone_id=zone), 404, 10003)
    left = plain(sdk.rules.delete(second, ruleset_id=whole, zone_id=zone))
    expect([rule["ref"] for rule in left["rules"]] == ["first"], "deleted")

    target = {"target_url": {"value": "https://example.net/"}, "status_code": 301}
    redirect = {"action": "redirect", "expression": "true", "action_parameters": {"from_value": target}}
    phase = "http_request_dynamic_redirect"
    entry = plain(sdk.phases.update(phase, zone_id=zone, rules=[redirect]))
    read = sdk.phases.get(phase, zone_id=zone)
    expect(read.rules[0].action_parameters.from_value.status_code == 301, "a put makes the entry point")
    expect((read.id, read.rules[0].ref) == (entry["id"], entry["rules"][0]["id"]), "and it is read")
    refused(lambda: sdk.phases.update(phase, zone_id=zone, rules=[redirect] * 26), 400, 50001)
    refused(lambda: sdk.phases.update("http_request_origin", zone_id=zone, rules=[]), 403, 10000)
    for made in (whole, entry["id"]):
        sdk.delete(made, zone_id=zone)
    refused(lambda: sdk.get(whole, zone_id=zone), 404, 10003)
def workers(base, zone):
    sdk = client(base, "workers")
    scripts = sdk.workers.scripts
    here = {"account_id": ACCOUNT}
    code = b"export default { async fetch(request, env) { return new Response(env.TEXT) } }"

    def upload(name, bindings, **metadata):
        files = [("index.js", code, "application/javascript+module")]
        metadata = {"main_module": "index.js", "compatibility_date": "2026-01-01", "bindings": bindings, **metadata}
        return scripts.update(name, metadata=metadata, files=files, **here)

    text = {"name": "TEXT", "type": "plain_text", "text": "hello"}
    key = {"name": "KEY", "type": "secret_text", "text": "a secret"}
    made = upload("web", [text, key])
    expect((made.id, made.entry_point, made.handlers) == ("web", "index.js", ["fetch"]), f"a new Worker: {made}")
    refused(lambda: upload("web", [{"name": "JOBS", "type": "queue", "queue_name": "none"}]), 400, 11000)
    again = upload("web", [text], keep_bindings=["secret_text"])
    expect(again.created_on == made.created_on and again.modified_on != made.modified_on, "an upload")
    expect([entry.id for entry in scripts.list(**here)] == ["web"], "the list of Workers")
    settings = scripts.script_and_version_settings.get("web", **here)
    kept = {binding.name: binding for binding in settings.bindings}
    expect(set(kept) == {"TEXT", "KEY"} and getattr(kept["KEY"], "text", None) is None, "bindings without secrets")
    changed = scripts.script_and_version_settings.edit("web", settings={"logpush": True}, **here)
    expect(changed.logpush and len(changed.bindings) == 2, "a changed setting")
    scripts.secrets.update("web", name="LATE", text="another", type="secret_text", **here)
    expect({entry.name for entry in scripts.secrets.list("web", **here)} == {"KEY", "LATE"}, "secrets by name")
    scripts.secrets.delete("LATE", script_name="web", **here)
    crons = scripts.schedules.update("web", body=[{"cron": "0 3 * * *"}], **here)
    expect([entry.cron for entry in crons.schedules] == ["0 3 * * *"], "a schedule")
    expect(scripts.subdomain.create("web", enabled=True, **here).previews_enabled, "workers.dev with previews")
    stored = scripts.content.get("web", **here).read()
    expect(code in stored and b"application/javascript+module" in stored, "the code as it was sent")

    routes = sdk.workers.routes
    route = routes.create(zone_id=zone, pattern="example.com/*", script="web")
    refused(lambda: routes.create(zone_id=zone, pattern="example.com/*"), 409, 10020)
    refused(lambda: routes.create(zone_id=zone, pattern="example.com/x", script="none"), 400, 10019)
    routes.update(route.id, zone_id=zone, pattern="*.example.com/*", script="web")
    expect(routes.get(route.id, zone_id=zone).pattern == "*.example.com/*", "a changed route")
    expect([entry.id for entry in routes.list(zone_id=zone)] == [route.id], "the list of routes")

    upload("caller", [{"name": "WEB", "type": "service", "service": "web"}])
    refused(lambda: scripts.delete("web", **here), 400, 10142)
    scripts.delete("web", force=True, **here)
    expect(list(routes.list(zone_id=zone)) == [], "routes go with their Worker")
    refused(lambda: scripts.script_and_version_settings.get("web", **here), 404, 10007)
    refused(lambda: client(base, "reader").workers.routes.list(zone_id=zone), 403, 10000)
def tunnels(base):
    sdk = client(base, "user").zero_trust.tunnels.cloudflared
    made = sdk.create(account_id=ACCOUNT, name="edge", config_src="cloudflare")
    expect((made.name, made.status, made.config_src) == ("edge", "inactive", "cloudflare"), "a new tunnel")
    refused(lambda: sdk.create(account_id=ACCOUNT, name="edge", config_src="cloudflare"), 409, 1013)
    token = sdk.token.get(made.id, account_id=ACCOUNT)
    expect(token == sdk.token.get(made.id, account_id=ACCOUNT), "the token can be read again")
    first = sdk.configurations.get(made.id, account_id=ACCOUNT)
    expect((first.version, first.config) == (0, None), "no configuration yet")
    rule = {"hostname": "a.example.com", "service": "http://web:80", "origin_request": {"connect_timeout": 10}}
    last = {"hostname": "", "service": "http_status:404"}
    second = sdk.configurations.update(made.id, account_id=ACCOUNT, config={"ingress": [rule, last]})
    expect(second.version == 1, "a configuration")
    expect(second.config.ingress[0].origin_request.connect_timeout == 10, "with its settings")
    refused(lambda: sdk.configurations.update(made.id, account_id=ACCOUNT, config={"ingress": [rule]}), 400, 1056)
    expect(sdk.edit(made.id, account_id=ACCOUNT, name="edge-2").name == "edge-2", "a new name")
    connector = control(base, "POST", f"tunnels/{made.id}/connectors")["id"]
    connected = list(sdk.connections.get(made.id, account_id=ACCOUNT))
    expect([entry.id for entry in connected] == [connector] and len(connected[0].conns) == 4, "a connector")
    expect(sdk.get(made.id, account_id=ACCOUNT).status == "healthy", "a healthy tunnel")
    refused(lambda: sdk.delete(made.id, account_id=ACCOUNT), 400, 1022)
    control(base, "DELETE", f"tunnels/{made.id}/connectors/{connector}")
    sdk.connections.delete(made.id, account_id=ACCOUNT)
    expect(sdk.delete(made.id, account_id=ACCOUNT).deleted_at is not None, "deleted")
    expect(sdk.get(made.id, account_id=ACCOUNT).deleted_at is not None, "and still readable")
    for number in range(3):
        sdk.create(account_id=ACCOUNT, name=f"tunnel-{number}", config_src="cloudflare")
    live = [entry.name for entry in sdk.list(account_id=ACCOUNT, is_deleted=False)]
    expect(sorted(live) == ["tunnel-0", "tunnel-1", "tunnel-2"], f"the live ones: {live}")
    expect(len(list(sdk.list(account_id=ACCOUNT))) == 4, "the deleted one is listed unless told otherwise")
    refused(lambda: sdk.token.get(made.id, account_id=ACCOUNT), 404, 1054)
    refused(lambda: client(base, "reader").zero_trust.tunnels.cloudflared.get(made.id, account_id=ACCOUNT), 403, 10000)


def main():
    base = (sys.argv[1] if len(sys.argv) > 1 else os.environ.get("KFLARE_SIM_URL", "http://127.0.0.1:8080")).rstrip("/")
    seed(base)
    verify_tokens(base)
    print("OK tokens verify, or are refused")
    zone = zones(base)
    print("OK zones are created, listed over pages, found, activated, paused and deleted")
    records(base, zone)
    print("OK records are normalised, changed, refused on conflict and deleted")
    batches(base, zone)
    print("OK 250 records in a batch, listed over pages; a refused batch has no effect")
    kv_namespaces(base)
    print("OK KV namespaces are created, listed over pages, renamed, refused on conflict and deleted")
    r2_buckets(base)
    print("OK buckets are seen in their jurisdiction only, have rules, and stay while they hold objects")
    d1_databases(base)
    print("OK databases are created, listed, found, changed, refused on conflict and deleted")
    queues(base)
    print("OK queues are created, listed, changed, replaced, refused on conflict and deleted")
    lists(base)
    print("OK lists: items are written by operations, one at a time, and read over pages; a list in use is not deleted")
    managed_transforms(base, zone)
    print("OK managed transforms are merged, refused where unknown, and turned off")
    rulesets(base, zone)
    print("OK rulesets, rules and phases are made, read, moved, edited, refused and deleted")
    workers(base, zone)
    print("OK Workers are uploaded, bound, configured, routed to and deleted, or refused")
    tunnels(base)
    print("OK tunnels are created, configured, connected, renamed, listed and deleted")


try:
    main()
except AssertionError as failure:
    sys.exit(f"FAILED {failure}")
