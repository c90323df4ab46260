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
                {"value": f"{WORD}-user", "permissions": [zone, "dns.write", "account.read", "tunnel.write"]},
                {"value": f"{WORD}-account", "account": ACCOUNT, "permissions": [zone, "dns.write"]},
                {"value": f"{WORD}-reader", "permissions": ["zone.read", "dns.read"]},
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
    tunnels(base)
    print("OK tunnels are created, configured, connected, renamed, listed and deleted")


try:
    main()
except AssertionError as failure:
    sys.exit(f"FAILED {failure}")
