#!/usr/bin/env python3
"""Packs the Helm chart under the version of the release: as an archive, and as an OCI layout."""
import re

from oci_layout import OciLayout, as_json
from release_facts import ROOT, read_arguments
from reproducible import ArchiveEntry, gzipped, tar

CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
CHART = ROOT / "deploy/helm/rollcall"


def chart_yaml(version):
    """Chart.yaml with the version of the release, for the chart and for what it installs."""
    text = (CHART / "Chart.yaml").read_text()
    text, count = re.subn(r"^(version|appVersion): .*$", rf"\1: {version}", text, flags=re.MULTILINE)
    if count != 2:
        raise ValueError("Chart.yaml names its two versions in another way")
    return text


def as_config(text):
    """What a registry knows of a chart: the fields of Chart.yaml, which has none but scalars and one list of words."""
    config = {}
    for line in text.splitlines():
        key, value = line.split(": ", 1)
        value = value.strip('"')
        config[key] = value.strip("[]").split(", ") if value.startswith("[") else value
    return config


def values_yaml(image):
    """values.yaml, with the repository of the image where the release names one."""
    text = (CHART / "values.yaml").read_text()
    return re.sub(r"^  repository: rollcall$", f"  repository: {image}", text, flags=re.MULTILINE) if image else text


def main():
    facts = read_arguments()
    own = {"Chart.yaml": chart_yaml(facts.version).encode(), "values.yaml": values_yaml(facts.image).encode()}
    entries = []
    # Links lead to files that the chart shares with the rest of the repository: what is packed is their content.
    for path in sorted(CHART.rglob("*")):
        name = path.relative_to(CHART).as_posix()
        if path.is_file():
            entries.append(ArchiveEntry(f"rollcall/{name}", own.get(name) or path.read_bytes()))
    packed = gzipped(tar(entries, facts.epoch))
    (facts.to / f"rollcall-{facts.version}.tgz").write_bytes(packed)
    layout = OciLayout(facts.to / "chart")
    config = layout.add_blob(as_json(as_config(own["Chart.yaml"].decode())), CONFIG)
    manifest = layout.add_manifest(config, [layout.add_blob(packed, CONTENT)], facts.annotations)
    layout.name(manifest, facts.version)
    (facts.to / "chart.digest").write_text(manifest["digest"] + "\n")
    print(f"chart {manifest['digest']}: {len(entries)} files")


main()
