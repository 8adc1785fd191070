#!/usr/bin/env python3
"""Says which pictures are older than what they show, and notes in the picture of the page what it was taken of.

currency.py            prints what is not current; the exit code is 1 if anything is not
currency.py note FILE  writes the digest of the page's sources into a PNG
"""
import hashlib
import json
import pathlib
import struct
import sys
import xml.etree.ElementTree
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "deploy/pictures/page.png"
PAGE_SOURCES = ROOT / "crates/controller/src/page/assets"
BOARDS = ["fleet", "parent", "rollcall"]
# A README is read on slow connections, too.
MAX_BYTES = 150_000
KEYWORD = b"Source"
SVG = "{http://www.w3.org/2000/svg}"


def page_digest():
    digest = hashlib.sha256()
    for path in sorted(PAGE_SOURCES.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"page sha256:{digest.hexdigest()}"


def chunks(png):
    """Kind and content of each part of a PNG."""
    at = 8
    while at < len(png):
        length, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + length]
        at += 12 + length


def as_chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def note_source(path):
    png = path.read_bytes()
    parts = [(kind, content) for kind, content in chunks(png) if kind != b"tEXt"]
    parts.insert(1, (b"tEXt", KEYWORD + b"\0" + page_digest().encode()))
    path.write_bytes(png[:8] + b"".join(as_chunk(kind, content) for kind, content in parts))


def page_faults():
    if not PAGE.exists():
        return [f"{PAGE.name} is missing"]
    png = PAGE.read_bytes()
    notes = [content for kind, content in chunks(png) if kind == b"tEXt" and content.startswith(KEYWORD)]
    faults = [] if notes == [KEYWORD + b"\0" + page_digest().encode()] else [f"{PAGE.name} shows an older page"]
    return faults + ([f"{PAGE.name} has {len(png)} bytes, more than {MAX_BYTES}"] if len(png) > MAX_BYTES else [])


def board_faults(name):
    text, picture = (ROOT / f"dashboards/{name}.json").read_text(), ROOT / f"dashboards/pictures/{name}.svg"
    if not picture.exists():
        return [f"{name}.svg is missing"]
    drawn = xml.etree.ElementTree.parse(picture).getroot()
    digest = f"dashboard sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    faults = [] if drawn.findtext(f"{SVG}desc") == digest else [f"{name}.svg shows an older dashboard"]
    texts = {element.text for element in drawn.iter(f"{SVG}text")}
    titles = {panel["title"] for panel in json.loads(text)["panels"]}
    faults += [f"{name}.svg lacks the panel {title!r}" for title in sorted(titles - texts)]
    size = picture.stat().st_size
    return faults + ([f"{name}.svg has {size} bytes, more than {MAX_BYTES}"] if size > MAX_BYTES else [])


def main():
    if sys.argv[1:2] == ["note"]:
        note_source(pathlib.Path(sys.argv[2]))
        return
    faults = page_faults() + [fault for name in BOARDS for fault in board_faults(name)]
    for fault in faults:
        print(fault)
    if faults:
        sys.exit("deploy/pictures/run makes them again")
    print("all pictures are current")


if __name__ == "__main__":
    main()
