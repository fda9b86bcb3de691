"""A chart of the best f so far against what was spent, as SVG; f on a logarithmic scale, because methods differ by factors."""

import math
import statistics

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 720, 400, 60, 40, 20, 150
ONE_SHOT = 2  # evaluations at full fidelity, at most, of a method that is drawn as a point
POINTS = 200
TICKS = [step * 10.0**power for power in range(-4, 3) for step in (1, 1.5, 2, 3, 4, 5, 7)]


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


def write(path, methods):
    """`methods`: {label: runs}.  One-shot methods are points, the others lines, medians over seeds."""
    most = max(run["search"]["tokens_spent"] for runs in methods.values() for run in runs)
    lines = {}
    for label, runs in methods.items():
        one_shot = all(len(run["search"]["curve"]) < ONE_SHOT and run["search"]["tokens_spent"] < most / 2 for run in runs)
        ends = (statistics.median(run["search"]["tokens_spent"] for run in runs), statistics.median(run["search"]["searched_objective"] for run in runs))
        lines[label] = [ends] if one_shot else list(medians(runs, most))
    values = [value for line in lines.values() for _, value in line]
    low, high = math.log(min(values)), math.log(max(values))
    span = (high - low) or 1

    def x(tokens):
        return LEFT + tokens / most * (WIDTH - LEFT - RIGHT)

    def y(value):
        return TOP + (high - math.log(value)) / span * (HEIGHT - TOP - BOTTOM)

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for tokens in (most * i / 4 for i in range(5)):
        svg.append(f'<line x1="{x(tokens):.1f}" x2="{x(tokens):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x(tokens):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tokens / 1000:.0f} k</text>')
    for value in (tick for tick in TICKS if low <= math.log(tick) <= high):
        svg.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    svg.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">tokens spent</text><text x="{LEFT - 40}" y="{TOP - 6}">best f so far</text>')
    for number, (label, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        if len(line) == 1:
            svg.append(f'<circle cx="{x(line[0][0]):.1f}" cy="{y(line[0][1]):.1f}" r="5" fill="{colour}"/>')
        else:
            steps = f"M{x(line[0][0]):.1f} {y(line[0][1]):.1f}" + "".join(f"H{x(tokens):.1f}V{y(value):.1f}" for tokens, value in line[1:])
            svg.append(f'<path d="{steps}" fill="none" stroke="{colour}" stroke-width="2"/>')
        svg.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 18 * number}" fill="{colour}">{"●" if len(line) == 1 else "━"} {label}</text>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(svg) + "\n</svg>\n", encoding="utf-8")
