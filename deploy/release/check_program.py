#!/usr/bin/env python3
"""Fails unless a program is for this architecture and, with --static, needs nothing to run."""
import argparse
import pathlib
import sys

from elf import read_program


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--static", action="store_true")
    parser.add_argument("arch")
    parser.add_argument("path", type=pathlib.Path)
    read = parser.parse_args()
    try:
        arch, needs = read_program(read.path.read_bytes())
    except (OSError, ValueError) as error:
        sys.exit(f"{read.path}: {error}")
    if arch != read.arch:
        sys.exit(f"{read.path} is for {arch}, and not for {read.arch}")
    if read.static and needs:
        sys.exit(f"{read.path} is not static: {needs}")
    print(f"{read.arch}: {'static' if needs is None else needs}")


main()
