"""What every part of a release is made from, and where it is put."""
import argparse
import pathlib
from dataclasses import dataclass
from datetime import datetime, timezone

ROOT = pathlib.Path(__file__).resolve().parents[2]
TITLE = "rollcall"
DESCRIPTION = "Are all children of a custom resource ready, and if not, which one, and why?"


@dataclass(frozen=True)
class ReleaseFacts:
    """Version, commit and date of a release, and its folder."""

    version: str
    commit: str
    epoch: int
    to: pathlib.Path
    # The program of each architecture.
    binaries: dict
    certificates: pathlib.Path
    # Manual pages and completions, as the program prints them.
    texts: pathlib.Path
    # Where archives will be found, and the repository of the image; empty where nothing is to be published.
    url: str
    image: str

    @property
    def date(self):
        return datetime.fromtimestamp(self.epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def annotations(self):
        """Annotations of everything that a registry is to hold."""
        return {
            "org.opencontainers.image.created": self.date,
            "org.opencontainers.image.description": DESCRIPTION,
            "org.opencontainers.image.licenses": "Apache-2.0",
            "org.opencontainers.image.revision": self.commit,
            "org.opencontainers.image.title": TITLE,
            "org.opencontainers.image.version": self.version,
        }


def read_arguments():
    """Reads the facts that `deploy/release/run` passes to each part."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--release-version", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--epoch", type=int, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    parser.add_argument("--binary", action="append", default=[], metavar="ARCH=PATH")
    parser.add_argument("--certificates", type=pathlib.Path)
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--url", default="")
    parser.add_argument("--image", default="")
    read = parser.parse_args()
    binaries = dict(binary.split("=", 1) for binary in read.binary)
    return ReleaseFacts(
        read.release_version, read.commit, read.epoch, read.to,
        {arch: pathlib.Path(path) for arch, path in sorted(binaries.items())},
        read.certificates, read.texts, read.url, read.image,
    )
