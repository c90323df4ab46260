"""Compares the rights that a role gives with the requests that were made, as `kubectl proxy -v=6` logs them.

    rights.py RULES LOG...

RULES is a JSON list of RBAC rules. Fails when a request was refused (403), and when a right was not used.
"""

import json
import re
import sys
from urllib.parse import parse_qs, urlsplit

REQUEST = re.compile(r'verb="?([A-Z]+)"? url="([^"]+)" status="?(\d+)')
PATH = re.compile(
    r"^/(?:api|apis/(?P<group>[^/]+))/v[^/]+"
    r"(?:/namespaces/[^/]+(?=/[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>[^/]+))?)?$"
)
WRITES = {"PUT": "update", "PATCH": "patch", "POST": "create"}


def right(method, url):
    """The right that a request needs, as (group, resource, verb); none for what is no resource."""
    parts = urlsplit(url)
    found = PATH.match(parts.path)
    if found is None:
        return None
    resource = found["resource"]
    if found["subresource"]:
        resource += "/" + found["subresource"]
    if method == "GET":
        watches = parse_qs(parts.query).get("watch") in (["1"], ["true"])
        verb = "watch" if watches else "get" if found["name"] else "list"
    elif method == "DELETE":
        verb = "delete" if found["name"] else "deletecollection"
    else:
        verb = WRITES[method]
    return found["group"] or "", resource, verb


def granted(rules):
    """What the rules allow, one by one."""
    for rule in rules:
        for group in rule.get("apiGroups", []):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        allowed = set(granted(json.load(file)))
    used, refused, requests = set(), set(), 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                found = REQUEST.search(line)
                if found is None:
                    continue
                requests += 1
                method, url, status = found.groups()
                needed = right(method, url)
                if status == "403":
                    refused.add(needed or (method, urlsplit(url).path))
                elif needed:
                    used.add(needed)
    wildcards = {it for it in allowed if "*" in it}
    unused = allowed - used - wildcards
    for title, rights in (("refused", refused), ("given and not used", unused), ("given as a wildcard", wildcards)):
        for it in sorted(rights):
            print("rights:", title + ":", *(part or "core" for part in it), file=sys.stderr)
    if not requests:
        sys.exit("rights: the log holds no request")
    if refused or unused or wildcards:
        sys.exit(1)
    print(f"{requests} requests, none refused; all {len(allowed)} rights were used")


main()
