"""Draws each kind of panel that the dashboards have, from what its queries answer."""
from field_display import duration, legend, number, series_colour, setting, shown
from svg_canvas import CHARACTER, shorten

LINE = 17
AXIS = 46


def draw_stat(canvas, panel, box, answers):
    x, y, width, height = box
    values = [(legend(target, labels), value) for target, series in answers for labels, value in series]
    if not values:
        canvas.text(x + width / 2, y + height / 2 + 8, setting(panel, "", "noValue", "–"), 20, "dim", "middle")
        return
    name, value = values[0]
    text, reached = shown(panel, name, value)
    # The name of what runs says more than that it is one.
    if len(values) == 1 and "name" in panel["options"].get("textMode", ""):
        text = name
    size = min(34, width / (max(len(text), 3) * CHARACTER) * 0.8)
    canvas.text(x + width / 2, y + height / 2 + size / 3, text, round(size), reached or "text", "middle", bold=True)


def table_rows(panel, answers):
    """The rows of a table as its transformations make them: the answers merged by their labels, columns renamed."""
    rows = {}
    for target, series in answers:
        for labels, value in series:
            key = tuple(sorted(labels.items()))
            rows.setdefault(key, dict(labels))[f"Value #{target['refId']}"] = value
            rows[key]["Value"] = value
    changes = [change["options"] for change in panel.get("transformations", []) if change["id"] == "organize"]
    rename = changes[0].get("renameByName", {}) if changes else {}
    order = changes[0].get("indexByName", {}) if changes else {}
    hidden = changes[0].get("excludeByName", {}) if changes else {}
    several = len(answers) > 1
    columns = []
    for key in {key: None for row in rows.values() for key in row}:
        own_value = key == "Value" and several or key.startswith("Value #") and not several
        if not own_value and not hidden.get(key):
            columns.append(key)
    columns.sort(key=lambda key: order.get(key, len(order)))
    table = [{rename.get(key, key): row.get(key, "") for key in columns} for row in rows.values()]
    for sort in reversed(panel["options"].get("sortBy", [])):
        table.sort(key=lambda row: (isinstance(row.get(sort["displayName"]), str), row.get(sort["displayName"]) or 0),
                   reverse=sort["desc"])
    return [rename.get(key, key) for key in columns], table


def draw_table(canvas, panel, box, answers):
    x, y, width, height = box
    columns, table = table_rows(panel, answers)
    if not table:
        canvas.text(x + width / 2, y + height / 2, setting(panel, "", "noValue", "No data"), 13, "dim", "middle")
        return
    # A few long words take no room from the others.
    longest = [min(24, 2 + max([len(name), *(len(shown(panel, name, row[name])[0]) for row in table)])) for name in columns]
    widths = [width * length / sum(longest) for length in longest]
    rows = min(len(table), int(height / LINE) - 1)
    rows -= rows < len(table)
    for at, line in enumerate([None, *table[:rows]]):
        left, base = x, y + (at + 1) * LINE - 4
        for name, own in zip(columns, widths):
            if line is None:
                canvas.text(left + 4, base, shorten(name, own, 11), 11, "dim", bold=True)
            else:
                draw_cell(canvas, panel, name, line[name], (left, base - LINE + 5, own, LINE - 1))
            left += own
    if rows < len(table):
        canvas.text(x + width - 4, y + height, f"and {len(table) - rows} more", 10, "dim", "end")


def draw_cell(canvas, panel, name, value, box):
    x, y, width, height = box
    text, reached = shown(panel, name, value)
    kind = (setting(panel, name, "custom.cellOptions") or {}).get("type")
    if kind == "gauge" and not isinstance(value, str):
        canvas.box(x + 4, y + 3, (width - 54) * value, height - 6, reached or "green", 2, 0.7)
        canvas.text(x + width - 6, y + height - 4, text, 11, reached or "text", "end")
        return
    if kind == "color-background" and reached:
        canvas.box(x, y, width - 2, height, reached, 2, 0.55)
    canvas.text(x + 4, y + height - 4, shorten(text, width - 6, 11), 11, reached if kind == "color-text" else "text")


def draw_axes(canvas, panel, box, span, top):
    """Draws the grid; returns how a moment and a value become a place."""
    x, y, width, height = box
    start, end = span
    for step in range(5):
        line = y + height * step / 4
        canvas.box(x, line, width, 0.6, "grid")
        canvas.text(x - 5, line + 4, number(top * (4 - step) / 4, setting(panel, "", "unit")), 9, "dim", "end")
    for step in range(1, 5):
        ago = (end - start) * step / 5
        canvas.text(x + width * (1 - step / 5), y + height + 12, f"{duration(-ago)}", 9, "dim", "middle")
    return lambda at, value: (x + width * (at - start) / (end - start), y + height * (1 - min(value / top, 1)))


def draw_timeseries(canvas, panel, box, answers, span):
    x, y, width, height = box
    series = [(legend(target, labels), points) for target, found in answers for labels, points in found]
    if not series:
        canvas.text(x + width / 2, y + height / 2, "No data", 13, "dim", "middle")
        return
    series.sort(key=lambda named: -named[1][-1][1])
    custom = panel["fieldConfig"]["defaults"].get("custom", {})
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    moments = sorted({at for _, points in series for at, _ in points})
    totals = {at: 0.0 for at in moments}
    for _, points in series:
        for at, value in points:
            totals[at] = totals[at] + value if stacked else max(totals[at], value)
    top = max(totals.values()) * 1.05 or 1
    legend_lines = min(len(series), 4)
    plot = (x + AXIS, y + 4, width - AXIS - 8, height - 22 - legend_lines * 13)
    place = draw_axes(canvas, panel, plot, span, top)
    base = {at: 0.0 for at in moments}
    for at, (name, points) in enumerate(series):
        drawn = series_colour(panel, name, at)
        for stretch in stretches(points, moments):
            upper = [place(moment, value + base[moment]) for moment, value in stretch]
            if custom.get("fillOpacity") or stacked:
                lower = [place(moment, base[moment]) for moment, _ in reversed(stretch)]
                canvas.area(upper + lower, drawn, max(custom.get("fillOpacity", 10), 8) / 100)
            if custom.get("lineWidth", 1):
                canvas.path(upper, drawn)
        if stacked:
            base.update({moment: value + base[moment] for moment, value in points})
        draw_legend(canvas, panel, (x, y, width, height), at, len(series), legend_lines, (name, points[-1][1], drawn))


def stretches(points, moments):
    """The points, apart where the series did not exist meanwhile."""
    after, found = dict(zip(moments, moments[1:])), []
    for point in points:
        if found and after.get(found[-1][-1][0]) == point[0]:
            found[-1].append(point)
        else:
            found.append([point])
    return found


def draw_legend(canvas, panel, box, at, count, lines, entry):
    x, y, width, height = box
    name, value, drawn = entry
    per_line = -(-count // lines)
    column, own = at % per_line, (width - 16) / per_line
    left, base = x + 8 + column * own, y + height - (lines - 1 - at // per_line) * 13 - 2
    canvas.box(left, base - 6, 10, 4, drawn)
    text = f"{name}  {number(value, setting(panel, name, 'unit'))}"
    canvas.text(left + 14, base, shorten(text, own - 16, 10), 10, "dim")


def draw_heatmap(canvas, panel, box, answers, span):
    x, y, width, height = box
    bounds = {}
    for _, found in answers:
        for labels, points in found:
            bounds[float(labels["le"].replace("+Inf", "inf"))] = dict(points)
    if not bounds:
        canvas.text(x + width / 2, y + height / 2, "No data", 13, "dim", "middle")
        return
    # A bucket counts what the smaller ones count, too.
    order, cells, below = sorted(bounds), {}, {}
    for bound in order:
        cells[bound] = {at: max(0, value - below.get(at, 0)) for at, value in bounds[bound].items()}
        below = bounds[bound]
    most = max(max(row.values(), default=0) for row in cells.values()) or 1
    moments = sorted({at for row in cells.values() for at in row})
    plot_x, plot_width, cell = x + AXIS, width - AXIS - 8, (height - 20) / len(order)
    wide = plot_width / max(len(moments), 1)
    for row, bound in enumerate(order):
        top = y + 4 + (len(order) - 1 - row) * cell
        canvas.text(plot_x - 5, top + cell / 2 + 3, "∞" if bound == float("inf") else number(bound, "s"), 8, "dim", "end")
        for at, value in cells[bound].items():
            if value > 0.01:
                canvas.box(plot_x + moments.index(at) * wide, top, wide, cell - 1, "blue", 0, 0.15 + 0.85 * (value / most) ** 0.5)


def draw_state_timeline(canvas, panel, box, answers, span):
    x, y, width, height = box
    start, end = span
    series = [(legend(target, labels), points) for target, found in answers for labels, points in found]
    if not series:
        canvas.text(x + width / 2, y + height / 2, setting(panel, "", "noValue", "No data"), 13, "dim", "middle")
        return
    series = series[: max(1, int((height - 14) / 13))]
    named = min(max(len(name) for name, _ in series) * 9 * CHARACTER + 12, width / 2)
    step, high = (width - named - 8) / (end - start), min((height - 14) / len(series), 30)
    for row, (name, points) in enumerate(series):
        top = y + 4 + row * high
        canvas.text(x + named - 6, top + high / 2 + 2, shorten(name, named - 8, 9), 9, "dim", "end")
        for begin, until, value in runs(points):
            text, reached = shown(panel, name, value)
            left, wide = x + named + (begin - start) * step, (until - begin) * step
            canvas.box(left, top, max(wide, 1), high * 0.8, reached or "green", 0, 0.8)
            if panel["options"].get("showValue") != "never" and wide > len(text) * 10 * CHARACTER:
                canvas.text(left + wide / 2, top + high * 0.4 + 4, text, 10, "page", "middle", bold=True)


def runs(points):
    """Begin, end and value of each stretch of equal values without a gap."""
    step = min((later[0] - earlier[0] for earlier, later in zip(points, points[1:])), default=1)
    found = []
    for at, value in points:
        if found and found[-1][2] == value and at - found[-1][1] < 0.5 * step:
            found[-1][1] = at + step
        else:
            found.append([at, at + step, value])
    return found


def draw_text(canvas, text, box):
    x, y, width, height = box
    lines = [line for line in text.splitlines() if line and not line.startswith("```")]
    for at, line in enumerate(lines[: int(height / 15)]):
        canvas.text(x + 8, y + 14 + at * 15, shorten(line, width - 16, 11), 11, "dim")
