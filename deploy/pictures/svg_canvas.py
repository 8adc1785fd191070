"""Draws into an SVG: boxes, lines and text of a dark page."""
from html import escape

COLOURS = {
    "green": "#73bf69", "yellow": "#f2cc0c", "red": "#f2495c", "dark-red": "#c4162a", "orange": "#ff9830", "blue": "#5794f2",
    "light-blue": "#8ab8ff", "purple": "#b877d9", "text": "#d0d3e0", "dim": "#8b90a5", "panel": "#1f2430", "page": "#161a23",
    "grid": "#323847",
}
# What series are drawn in that have no colour of their own.
PALETTE = ["#73bf69", "#f2cc0c", "#8ab8ff", "#ff9830", "#f2495c", "#5794f2", "#b877d9", "#37872d", "#fade2a", "#705da0"]
# Width of a character of the font, as a share of its size.
CHARACTER = 0.55


def colour(name):
    return COLOURS.get(name, name)


def shorten(text, width, size):
    """The text, cut to what fits."""
    fits = max(1, int(width / (size * CHARACTER)))
    return text if len(text) <= fits else text[: fits - 1] + "…"


def places(points):
    """Points as an SVG writes them, without those between two others at the same height."""
    points = [(round(x, 1), round(y, 1)) for x, y in points]
    kept = [
        point for at, point in enumerate(points)
        if at in (0, len(points) - 1) or not points[at - 1][1] == point[1] == points[at + 1][1]
    ]
    return " ".join(f"{x:g},{y:g}" for x, y in kept)


class SvgCanvas:
    """An SVG that grows by what is drawn."""

    def __init__(self, width, height, title, description):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="system-ui, Helvetica, Arial, sans-serif">',
            f"<title>{escape(title)}</title>", f"<desc>{escape(description)}</desc>",
        ]
        self.box(0, 0, width, height, "page")

    def box(self, x, y, width, height, fill, radius=0, opacity=1.0):
        rounded = f' rx="{radius}"' if radius else ""
        seen = f' fill-opacity="{opacity:g}"' if opacity < 1 else ""
        self.parts.append(
            f'<rect x="{round(x, 1):g}" y="{round(y, 1):g}" width="{round(width, 1):g}" height="{round(height, 1):g}" fill="{colour(fill)}"{rounded}{seen}/>')

    def text(self, x, y, text, size=11, fill="text", anchor="start", bold=False):
        weight = ' font-weight="600"' if bold else ""
        align = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.parts.append(
            f'<text x="{round(x, 1):g}" y="{round(y, 1):g}" font-size="{size}" fill="{colour(fill)}"{align}{weight}>{escape(text)}</text>')

    def path(self, points, stroke, width=1.5):
        self.parts.append(f'<polyline points="{places(points)}" fill="none" stroke="{colour(stroke)}" stroke-width="{width}"/>')

    def area(self, points, fill, opacity):
        self.parts.append(f'<polygon points="{places(points)}" fill="{colour(fill)}" fill-opacity="{opacity:g}"/>')

    def write(self, path):
        path.write_text("\n".join([*self.parts, "</svg>", ""]))
