"""Writes the SLSA provenance of a release, version 1, as the predicate that cosign signs.

    provenance.py

What it says comes from the environment of the GitHub workflow that runs it: which workflow, of which commit, in which run. The form is
GitHub's own, https://actions.github.io/buildtypes/workflow/v1.
"""

import hashlib
import json
import os
import sys


def environment(name):
    value = os.environ.get(name)
    if not value:
        sys.exit(f"provenance: {name} is not set")
    return value


def main():
    server = environment("GITHUB_SERVER_URL")
    repository = f"{server}/{environment('GITHUB_REPOSITORY')}"
    # OWNER/REPOSITORY/PATH@REF
    workflow = environment("GITHUB_WORKFLOW_REF")
    path, ref = workflow.removeprefix(environment("GITHUB_REPOSITORY") + "/").rsplit("@", 1)
    materials = [{"uri": f"git+{repository}@{environment('GITHUB_REF')}", "digest": {"gitCommit": environment("GITHUB_SHA")}}]
    for name in ("Cargo.lock", "rust-toolchain.toml", "hack/image-roots.txt"):
        with open(name, "rb") as file:
            materials.append({"name": name, "digest": {"sha256": hashlib.sha256(file.read()).hexdigest()}})
    predicate = {
        "buildDefinition": {
            "buildType": "https://actions.github.io/buildtypes/workflow/v1",
            "externalParameters": {"workflow": {"ref": ref, "repository": repository, "path": path}},
            "internalParameters": {
                "github": {
                    "event_name": environment("GITHUB_EVENT_NAME"),
                    "repository_id": environment("GITHUB_REPOSITORY_ID"),
                    "repository_owner_id": environment("GITHUB_REPOSITORY_OWNER_ID"),
                    "runner_environment": environment("RUNNER_ENVIRONMENT"),
                }
            },
            "resolvedDependencies": materials,
        },
        "runDetails": {
            "builder": {"id": f"{server}/{workflow}"},
            "metadata": {"invocationId": f"{repository}/actions/runs/{environment('GITHUB_RUN_ID')}/attempts/{environment('GITHUB_RUN_ATTEMPT')}"},
        },
    }
    json.dump(predicate, sys.stdout, indent=2)
    print()


main()
