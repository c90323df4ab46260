"""Prints a policy of config/kyverno for another repository, with a key.

    policy.py POLICY REPOSITORY PUBLIC_KEY
"""

import sys


def main(path, repository, key_path):
    with open(path, encoding="utf-8") as file:
        policy = file.read()
    with open(key_path, encoding="utf-8") as file:
        key = file.read().strip().splitlines()
    lines = []
    inside = False
    for line in policy.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        if "-----BEGIN PUBLIC KEY-----" in line:
            lines.extend(indent + it for it in key)
            inside = True
        if not inside:
            lines.append(line.replace("ghcr.io/kflare/kflare", repository))
        if "-----END PUBLIC KEY-----" in line:
            inside = False
    print("\n".join(lines))


main(*sys.argv[1:])
