#!/usr/bin/env python3
"""Packs each program with its manual, its completions and its licence, and writes a manifest for krew."""
import hashlib

from release_facts import DESCRIPTION, ROOT, read_arguments
from reproducible import ArchiveEntry, gzipped, tar

# What lies beside the program.
BESIDES = ["LICENSE", "README.md", "CHANGELOG.md"]

KREW = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: rollcall
spec:
  version: v{version}
  shortDescription: Says whether all children of an object are ready
  description: |
    {description}
    Works with your own kubeconfig and rights; no service needs to run in the cluster.
    Begin with `kubectl rollcall tree KIND/NAME`.
  platforms:
"""
KREW_PLATFORM = """\
    - selector:
        matchLabels:
          os: linux
          arch: {arch}
      uri: {url}/{name}
      sha256: {digest}
      files:
        - from: "*/rollcall"
          to: "."
        - from: "*/LICENSE"
          to: "."
      bin: rollcall
"""


def entries_of(facts, folder, binary):
    entries = [ArchiveEntry(f"{folder}/rollcall", binary.read_bytes(), 0o755)]
    entries += [ArchiveEntry(f"{folder}/{name}", (ROOT / name).read_bytes()) for name in BESIDES]
    for path in sorted(facts.texts.rglob("*")):
        if path.is_file():
            # kubectl runs a program to complete the words of a plugin.
            mode = 0o755 if path.name == "kubectl_complete-rollcall" else 0o644
            entries.append(ArchiveEntry(f"{folder}/{path.relative_to(facts.texts).as_posix()}", path.read_bytes(), mode))
    return entries


def main():
    facts = read_arguments()
    krew = KREW.format(version=facts.version, description=DESCRIPTION)
    for arch, binary in facts.binaries.items():
        folder = f"rollcall-{facts.version}-linux-{arch}"
        packed = gzipped(tar(entries_of(facts, folder, binary), facts.epoch))
        (facts.to / f"{folder}.tar.gz").write_bytes(packed)
        digest = hashlib.sha256(packed).hexdigest()
        krew += KREW_PLATFORM.format(arch=arch, url=facts.url, name=f"{folder}.tar.gz", digest=digest)
        print(f"archive {folder}.tar.gz: {len(packed) / 1e6:.1f} MB")
    (facts.to / "rollcall.yaml").write_text(krew)


main()
