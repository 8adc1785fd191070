#!/usr/bin/env python3
"""Draws the dashboards from a Prometheus that scrapes the demo's crowd, each panel by its own queries.

dashboard_picture.py BINARY FOLDER SECONDS: what BINARY shows after so many seconds, one SVG a dashboard.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import panels
from prometheus import ScrapingPrometheus, free_port
from svg_canvas import SvgCanvas

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOARDS = ["fleet", "parent", "rollcall"]
CELL_WIDTH, CELL_HEIGHT, GAP, HEAD = 42, 27, 6, 20
# What somebody chose: on the dashboard of one parent that parent, on the others everything.
CHOICE = {"policy": "shops", "namespace": "america", "name": "maps"}
POINTS = 75


def expression(board, text):
    """A query as Grafana would ask it."""
    text = text.replace("$__rate_interval", "30s")
    for name in ["namespace", "instance", "policy", "name"]:
        text = text.replace(f"${name}", CHOICE.get(name, ".*") if board == "parent" else ".*")
    return text


def draw_panel(canvas, prometheus, board, panel, box, span):
    kind, (start, end) = panel["type"], span
    asked = [
        ({**target, "legendFormat": expression(board, target.get("legendFormat") or "")}, expression(board, target["expr"]))
        for target in panel.get("targets", [])
    ]
    if kind == "text":
        panels.draw_text(canvas, expression(board, panel["options"]["content"]), box)
    elif kind in ("stat", "table"):
        answers = [(target, prometheus.instant(query)) for target, query in asked]
        (panels.draw_stat if kind == "stat" else panels.draw_table)(canvas, panel, box, answers)
    else:
        step = max(1, round((end - start) / POINTS))
        answers = [(target, prometheus.over_time(query, start, end, step)) for target, query in asked]
        draw = {"timeseries": panels.draw_timeseries, "heatmap": panels.draw_heatmap,
                "state-timeline": panels.draw_state_timeline}[kind]
        draw(canvas, panel, box, answers, span)


def draw_board(prometheus, name, folder, span):
    text = (ROOT / f"dashboards/{name}.json").read_text()
    board = json.loads(text)
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    # A test compares the digest: where the dashboard has changed, its picture is old.
    digest = hashlib.sha256(text.encode()).hexdigest()
    canvas = SvgCanvas(24 * CELL_WIDTH + GAP, rows * CELL_HEIGHT + GAP + 34, board["title"], f"dashboard sha256:{digest}")
    canvas.text(12, 24, board["title"], 16, "text", bold=True)
    for panel in board["panels"]:
        grid = panel["gridPos"]
        x, y = grid["x"] * CELL_WIDTH + GAP, grid["y"] * CELL_HEIGHT + 34
        width, height = grid["w"] * CELL_WIDTH - GAP, grid["h"] * CELL_HEIGHT - GAP
        if panel["type"] == "row":
            canvas.text(x + 4, y + 15, panel["title"], 13, "text", bold=True)
            continue
        canvas.box(x, y, width, height, "panel", 3)
        canvas.text(x + 8, y + 15, panel["title"], 11, "text", bold=True)
        inner = (x + 4, y + HEAD, width - 8, height - HEAD - 6)
        draw_panel(canvas, prometheus, name, panel, inner, span)
    canvas.write(folder / f"{name}.svg")


def main():
    binary, folder, seconds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    address = f"127.0.0.1:{free_port()}"
    demo = subprocess.Popen([binary, "demo", "--crowd", "--listen", address], stderr=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            rules = ROOT / "dashboards/rules/rollcall.rules.yaml"
            with ScrapingPrometheus(pathlib.Path(scratch) / "prometheus", address, rules) as prometheus:
                start = time.time()
                time.sleep(seconds)
                for name in BOARDS:
                    draw_board(prometheus, name, folder, (int(start), int(time.time())))
                    print(f"dashboards/pictures/{name}.svg", flush=True)
    finally:
        demo.terminate()
        demo.wait()


if __name__ == "__main__":
    main()
