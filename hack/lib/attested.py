"""Checks what `cosign verify-attestation` printed.

    attested.py DIGEST provenance COMMIT    it is about DIGEST, and says that it was built from COMMIT
    attested.py DIGEST list FILE            it is about DIGEST, and is the list of parts in FILE
"""

import base64
import json
import sys


def main(digest, kind, expected):
    statements = []
    for line in sys.stdin:
        if line.strip():
            statements.append(json.loads(base64.b64decode(json.loads(line)["payload"])))
    if not statements:
        sys.exit("attested: nothing")
    for statement in statements:
        subjects = [f"sha256:{it['digest']['sha256']}" for it in statement["subject"]]
        if subjects != [digest]:
            sys.exit(f"attested: it is about {subjects}, not {digest}")
        predicate = statement["predicate"]
        if kind == "provenance":
            commits = [it["digest"].get("gitCommit") for it in predicate["buildDefinition"]["resolvedDependencies"]]
            if expected not in commits:
                sys.exit(f"attested: {expected} is not among {commits}")
        else:
            with open(expected, encoding="utf-8") as file:
                if predicate != json.load(file):
                    sys.exit(f"attested: it is not {expected}")


main(*sys.argv[1:])
