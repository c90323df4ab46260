"""Takes the dashboard out of a rendered chart (standard input) and prints its queries as a file of rules, for promtool.

Fails when the dashboard is no JSON, or a query does not name the release.
"""

import json
import sys

lines = iter(sys.stdin)
for line in lines:
    if line == "  kflare.json: |\n":
        break
text = ""
for line in lines:
    if line == "---\n":
        break
    text += line
queries = [target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]]
for query in queries:
    if query.count("{") != query.count('{namespace="kflare-system",job="kflare-metrics"'):
        sys.exit(f"dashboard: a query that does not name the release: {query}")
rules = [
    {"record": f"query:{number}", "expr": query.replace("$__rate_interval", "5m")} for number, query in enumerate(queries)
]
json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, sys.stdout)
