"""Tar archives that depend on their content alone: entries in order, one date, one owner, no names of this machine."""
import gzip
import io
import tarfile
from dataclasses import dataclass


@dataclass(frozen=True)
class ArchiveEntry:
    """A file of an archive."""

    path: str
    content: bytes
    mode: int = 0o644


def folders_of(entries):
    """Paths of the folders above the entries, each before what it holds."""
    found = set()
    for entry in entries:
        parts = entry.path.split("/")[:-1]
        found.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    return sorted(found)


def tar(entries, epoch):
    """The bytes of a tar archive of these entries."""
    out = io.BytesIO()
    # The plainest format has fields for all that is kept here, and no header that says when it was written.
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in folders_of(entries):
            folder = tarfile.TarInfo(path)
            folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o755, epoch
            archive.addfile(folder)
        for entry in sorted(entries, key=lambda entry: entry.path):
            file = tarfile.TarInfo(entry.path)
            file.size, file.mode, file.mtime = len(entry.content), entry.mode, epoch
            archive.addfile(file, io.BytesIO(entry.content))
    return out.getvalue()


def gzipped(content):
    """The bytes, compressed without a name and a date."""
    return gzip.compress(content, compresslevel=6, mtime=0)
