"""Charts of an experiment, as SVG: the best f so far against what was spent, and what is left of a model against its size."""

import math
import statistics

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 400, 60, 40, 20, 150
ONE_SHOT = 2  # evaluations at full fidelity, at most, of a method that is drawn as a point
POINTS = 200
LEAST = 1e-3  # what is smaller, or not above 0, is drawn here


def best_at(curve, spent):
    """The best f after so many tokens; none before the first candidate."""
    found = [objective for tokens, objective in curve if tokens <= spent]
    return found[-1] if found else None


def medians(runs, most):
    """(tokens, median over runs) where every run has a candidate."""
    for i in range(POINTS + 1):
        spent = most * i / POINTS
        values = [best_at(run["search"]["curve"], spent) for run in runs]
        if None not in values:
            yield spent, statistics.median(values)


def search_progress(path, methods):
    """`methods`: {label: runs}.  One-shot methods are points, the others lines, medians over seeds; f on a logarithmic scale, because methods differ
    by factors."""
    most = max(run["search"]["tokens_spent"] for runs in methods.values() for run in runs)
    lines = {}
    for label, runs in methods.items():
        one_shot = all(len(run["search"]["curve"]) < ONE_SHOT and run["search"]["tokens_spent"] < most / 2 for run in runs)
        ends = (statistics.median(run["search"]["tokens_spent"] for run in runs), statistics.median(run["search"]["searched_objective"] for run in runs))
        lines[label] = [ends] if one_shot else list(medians(runs, most))
    draw(path, lines, [(most * i / 4, f"{most * i / 4000:.0f} k") for i in range(5)], "tokens spent", "best f so far", stepped=True)


def trade_off(path, lines, what):
    """`lines`: {label: [(share of the parameters removed, value above the whole model)]}."""
    sizes = sorted({size for line in lines.values() for size, _ in line})
    draw(path, lines, [(size, f"-{100 * size:.0f} %") for size in sizes], "parameters removed", what, stepped=False)


def ticks(low, high):
    """Of a logarithmic axis, fewer where it is long."""
    steps = (1, 2, 5) if high > 50 * low else (1, 1.5, 2, 3, 4, 5, 7)
    return [tick for tick in (step * 10.0**power for power in range(-3, 3) for step in steps) if low <= tick <= high]


def draw(path, lines, x_ticks, x_label, y_label, stepped):
    """The first and the last of `x_ticks`, [(place, text)], are the ends of the axis; y is logarithmic."""
    values = [max(value, LEAST) for line in lines.values() for _, value in line]
    low, high = math.log(min(values)), math.log(max(values))
    span = (high - low) or 1
    first, last = x_ticks[0][0], x_ticks[-1][0]

    def x(place):
        return LEFT + (place - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)

    def y(value):
        return TOP + (high - math.log(max(value, LEAST))) / span * (HEIGHT - TOP - BOTTOM)

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for place, text in x_ticks:
        svg.append(f'<line x1="{x(place):.1f}" x2="{x(place):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(place):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{text}</text>')
    below = any(value < LEAST for line in lines.values() for _, value in line)
    for value in ticks(min(values), max(values)):
        svg.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{"≤ " if below and value == LEAST else ""}{value:g}</text>')
    svg.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{x_label}</text><text x="{LEFT - 40}" y="{TOP - 6}">{y_label}</text>')
    for number, (label, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        svg.append(mark(line, x, y, colour, stepped))
        svg.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 18 * number}" fill="{colour}">{"●" if len(line) == 1 else "━"} {label}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(svg) + "\n</svg>\n", encoding="utf-8")


def mark(line, x, y, colour, stepped):
    """A point, steps, or points joined by straight lines."""
    points = [(f"{x(place):.1f}", f"{y(value):.1f}") for place, value in line]
    circles = "".join(f'<circle cx="{across}" cy="{down}" r="{5 if len(line) == 1 else 3}" fill="{colour}"/>' for across, down in points)
    if len(line) == 1:
        return circles
    way = f"M{points[0][0]} {points[0][1]}" + "".join(f"H{across}V{down}" if stepped else f"L{across} {down}" for across, down in points[1:])
    return f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="2"/>' + ("" if stepped else circles)
