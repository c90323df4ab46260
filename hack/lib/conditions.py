"""Prints what kube-state-metrics tells of conditions (metrics on standard input), one resource a line: Kind/namespace/name Type=Status:Reason."""

import re
import sys

for line in sys.stdin:
    if line.startswith("kflare_resource_condition_info{"):
        label = dict(re.findall(r'(\w+)="([^"]*)"', line))
        resource = f"{label['customresource_kind']}/{label.get('namespace', '')}/{label['name']}"
        print(f"{resource} {label['type']}={label['status']}:{label['reason']}")
