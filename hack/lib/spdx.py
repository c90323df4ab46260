"""Checks a list of parts (SPDX 2.3, JSON) against what must be in it.

    spdx.py LIST CARGO_LOCK

Every crate of the list is in the lock file with that version, kflare and what it cannot be without are there, and so are the
certificate authorities.
"""

import json
import sys
import tomllib

NEEDED = {"kflare", "kflare-engine", "kflare-cloudflare", "kflare-kinds", "kube", "reqwest", "ring", "rustls", "tokio"}


def main(list_path, lock_path):
    with open(list_path, encoding="utf-8") as file:
        document = json.load(file)
    with open(lock_path, "rb") as file:
        locked = {(it["name"], it["version"]) for it in tomllib.load(file)["package"]}
    if document["spdxVersion"] != "SPDX-2.3":
        sys.exit(f"spdx: {document['spdxVersion']}")
    crates, others = set(), set()
    for package in document["packages"]:
        purls = [it["referenceLocator"] for it in package.get("externalRefs", []) if it["referenceType"] == "purl"]
        part = (package["name"], package.get("versionInfo", ""))
        (crates if any(it.startswith("pkg:cargo/") for it in purls) else others).add(part)
    wrong = sorted(crates - locked)
    if wrong:
        sys.exit(f"spdx: not in Cargo.lock: {wrong}")
    missing = NEEDED - {name for name, _ in crates}
    if "certifi" not in {name for name, _ in others}:
        missing.add("certifi")
    if missing:
        sys.exit(f"spdx: not in the list: {sorted(missing)}")
    print(f"parts {len(crates)} crates, {len(others)} others: {list_path}")


main(*sys.argv[1:])
