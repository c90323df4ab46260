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
                {"value": f"{WORD}-user", "permissions": [zone, "dns.write", "account.read"]},
                {"value": f"{WORD}-account", "account": ACCOUNT, "permissions": [zone, "dns.write"]},
                {"value": f"{WORD}-reader", "permissions": ["zone.read", "dns.read"]},
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
    workers(base, zone)
    print("OK Workers are uploaded, bound, configured, routed to and deleted, or refused")


try:
    main()
except AssertionError as failure:
    sys.exit(f"FAILED {failure}")
