"""What the header of a program says: the platform that it is for, and whether it needs anything to run."""
import struct

MACHINES = {62: "amd64", 183: "arm64"}
PT_DYNAMIC, PT_INTERP = 2, 3
DT_NULL, DT_NEEDED = 0, 1


def read_program(content):
    """Returns the architecture of an ELF program, and why it is not static, or None if it is."""
    if content[:4] != b"\x7fELF" or content[4:6] != b"\x02\x01":
        raise ValueError("no program for a 64-bit little-endian machine")
    machine, = struct.unpack_from("<H", content, 18)
    start, = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    needs = None
    for at in range(start, start + size * count, size):
        kind, = struct.unpack_from("<I", content, at)
        offset, = struct.unpack_from("<Q", content, at + 8)
        length, = struct.unpack_from("<Q", content, at + 32)
        if kind == PT_INTERP:
            interpreter = content[offset : offset + length].rstrip(b"\0").decode()
            needs = f"it is loaded by {interpreter}"
        if kind == PT_DYNAMIC and needs is None and has_needed(content, offset, length):
            needs = "it needs shared libraries"
    return MACHINES.get(machine, f"machine {machine}"), needs


def has_needed(content, offset, length):
    for at in range(offset, offset + length, 16):
        tag, = struct.unpack_from("<Q", content, at)
        if tag == DT_NULL:
            return False
        if tag == DT_NEEDED:
            return True
    return False
