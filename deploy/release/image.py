#!/usr/bin/env python3
"""Builds the image of every architecture as one OCI layout: the program, and whom its clients trust. No base, no daemon."""
import hashlib

from oci_layout import OciLayout, as_json
from release_facts import read_arguments
from reproducible import ArchiveEntry, gzipped, tar

CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
# As deploy/Dockerfile has it, which a test compares.
USER = "65532:65532"
PORTS = ["8080/tcp", "8081/tcp"]
ENVIRONMENT = ["MIMALLOC_PURGE_DELAY=0", "MIMALLOC_ALLOW_THP=0"]
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def add_platform(layout, facts, arch, binary):
    """Adds the image of one architecture; returns its descriptor."""
    # The certificates have a layer of their own: it is the same for each architecture.
    layers, diffs = [], []
    for entry in [ArchiveEntry(CERTIFICATES, facts.certificates.read_bytes()),
                  ArchiveEntry("rollcall", binary.read_bytes(), 0o755)]:
        plain = tar([entry], facts.epoch)
        diffs.append("sha256:" + hashlib.sha256(plain).hexdigest())
        layers.append(layout.add_blob(gzipped(plain), LAYER))
    config = {
        "created": facts.date, "os": "linux", "architecture": arch,
        "config": {
            "User": USER, "ExposedPorts": {port: {} for port in PORTS}, "Env": ENVIRONMENT,
            "Entrypoint": ["/rollcall"], "Cmd": ["run"], "Labels": facts.annotations,
        },
        "rootfs": {"type": "layers", "diff_ids": diffs},
        "history": [{"created": facts.date, "created_by": f"deploy/release/run: {what}"}
                    for what in ["certificates", "rollcall"]],
    }
    if arch == "arm64":
        config["variant"] = "v8"
    descriptor = layout.add_manifest(layout.add_blob(as_json(config), CONFIG), layers, facts.annotations)
    platform = {"os": "linux", "architecture": arch}
    if arch == "arm64":
        platform["variant"] = "v8"
    return {**descriptor, "platform": platform}


def main():
    facts = read_arguments()
    layout = OciLayout(facts.to / "image")
    manifests = [add_platform(layout, facts, arch, binary) for arch, binary in facts.binaries.items()]
    index = layout.add_index(manifests, facts.annotations)
    layout.name(index, facts.version)
    (facts.to / "image.digest").write_text(index["digest"] + "\n")
    print(f"image {index['digest']}: {', '.join(facts.binaries)}")


main()
