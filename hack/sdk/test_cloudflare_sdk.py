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
                {"value": f"{WORD}-stores", "account": ACCOUNT, "permissions": ["kv.write", "r2.write", "d1.write"]},
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


try:
    main()
except AssertionError as failure:
    sys.exit(f"FAILED {failure}")
