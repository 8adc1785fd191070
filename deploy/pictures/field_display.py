"""How Grafana shows a field: its unit, its mappings, its thresholds, and what an override changes."""
import re

from svg_canvas import PALETTE, colour


def setting(panel, name, key, default=None):
    """A setting of a field of this name: that of an override, or that of the panel."""
    config = panel.get("fieldConfig", {})
    found = config.get("defaults", {}).get(key, default)
    for override in config.get("overrides", []):
        kind, wanted = override["matcher"]["id"], override["matcher"]["options"]
        if (kind == "byName" and wanted == name) or (kind == "byRegexp" and re.fullmatch(wanted.strip("/"), name)):
            for property in override["properties"]:
                if property["id"] == key:
                    found = property["value"]
    return found


def duration(seconds):
    """Seconds in the largest unit that leaves a number of one digit or more before the point."""
    for unit, size in [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]:
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1_000:.3g} ms" if seconds else "0 s"


def number(value, unit):
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        return duration(value)
    if unit == "bytes":
        steps = [step for step in range(4) if abs(value) >= 1024**step]
        step = steps[-1] if steps else 0
        return f"{value / 1024**step:.3g} {['B', 'KiB', 'MiB', 'GiB'][step]}"
    suffix = {"cps": " /s", "wps": " /s", "ops": " /s"}.get(unit, "")
    return (f"{value:.0f}" if value == int(value) else f"{value:.3g}") + suffix


def shown(panel, name, value):
    """Text and colour of a value: what a mapping says of it, else its number and threshold."""
    for mapping in setting(panel, name, "mappings", []):
        if mapping["type"] == "value":
            key = value if isinstance(value, str) else f"{value:g}"
            if key in mapping["options"]:
                return mapping["options"][key].get("text", key), mapping["options"][key].get("color")
    if isinstance(value, str):
        return value, None
    reached = None
    for step in setting(panel, name, "thresholds", {}).get("steps", []):
        if step["value"] is None or value >= step["value"]:
            reached = step["color"]
    return number(value, setting(panel, name, "unit")), reached


def series_colour(panel, name, at):
    fixed = setting(panel, name, "color", {})
    return colour(fixed["fixedColor"]) if fixed.get("mode") == "fixed" else PALETTE[at % len(PALETTE)]


def legend(target, labels):
    """The name of a series: the target's own form, or its labels."""
    form = target.get("legendFormat") or ""
    if not form or form == "__auto":
        return " ".join(labels.values()) or "value"
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), form)
