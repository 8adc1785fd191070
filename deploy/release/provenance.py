#!/usr/bin/env python3
"""Writes how the release was built, as the predicate of a SLSA provenance: what signs it binds it to an image by digest."""
import hashlib
import json
import os

from release_facts import ROOT, read_arguments

# What decides what is built, besides the sources of the commit itself.
INPUTS = ["Cargo.lock", "deploy/release/requirements.txt"]


def main():
    facts = read_arguments()
    repository = "/".join([os.environ.get("GITHUB_SERVER_URL", ""), os.environ.get("GITHUB_REPOSITORY", "")]).strip("/")
    run = os.environ.get("GITHUB_RUN_ID")
    dependencies = [{"uri": f"git+{repository}" if repository else "git", "digest": {"gitCommit": facts.commit}}]
    for name in INPUTS:
        digest = hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        dependencies.append({"uri": f"file:{name}", "digest": {"sha256": digest}})
    predicate = {
        "buildDefinition": {
            "buildType": "https://rollcall.dev/release/v1",
            "externalParameters": {"version": facts.version},
            "internalParameters": {"command": "deploy/release/run", "sourceDateEpoch": facts.epoch},
            "resolvedDependencies": dependencies,
        },
        "runDetails": {
            "builder": {"id": f"{repository}/.github/workflows/release.yml" if repository else "local"},
            "metadata": {"invocationId": f"{repository}/actions/runs/{run}" if run else "local"},
        },
    }
    (facts.to / "provenance.json").write_text(json.dumps(predicate, indent=2) + "\n")


main()
