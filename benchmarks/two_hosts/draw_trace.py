#!/usr/bin/env python3
"""Draws a step of one rank, from what distill_step --trace wrote: what it computed, what moved, what it waited for.

usage: benchmarks/two_hosts/draw_trace.py TRACE.json [TRACE.json ...] > FILE.svg        (rank 0, its last whole step)

Traces stand below each other on one scale, each under its file's name.  Standard library only.
"""

import json
import sys
from pathlib import Path

WIDTH, LEFT, ROW, GAP, TOP = 1000, 110, 22, 10, 26
ROWS = ("computing", "transfers", "waiting")
COLOURS = {
    "student_forward": "#4c78a8", "teacher_forward": "#9ecae9", "head": "#72b7b2", "backward": "#1f4e79", "update": "#b279a2",
    "replica": "#f58518", "shard": "#ffbf79", "world": "#bab0ac", "waits": "#e45756"}


def colour(event):
    if event["tid"] == "waiting":
        return COLOURS["waits"]
    return next((colour for name, colour in COLOURS.items() if name in event["name"]), "#dddddd")


def last_step(path):
    """Events from the last beginning of an update but one up to the last, in seconds from there."""
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["pid"] == 0]
    updates = sorted(event["ts"] for event in events if event["name"] == "update" and event["dur"] > 1000)
    begin, end = updates[-2], updates[-1]
    step = []
    for event in events:
        start, stop = max(event["ts"], begin), min(event["ts"] + event["dur"], end)
        if stop > start:
            step.append((event, (start - begin) / 1e6, (stop - begin) / 1e6))
    return step, (end - begin) / 1e6


def drawn(path, top, scale):
    step, seconds = last_step(path)
    lines = [f'<text x="0" y="{top + 14}" font-weight="bold">{path.stem}: {seconds:.2f} s</text>']
    for number, row in enumerate(ROWS):
        y = top + TOP + number * (ROW + 2)
        lines.append(f'<text x="0" y="{y + 16}">{row}</text>')
        lines.append(f'<rect x="{LEFT}" y="{y}" width="{seconds * scale:.1f}" height="{ROW}" fill="#f4f4f4"/>')
        for event, begin, end in step:
            if event["tid"] == row:
                lines.append(
                    f'<rect x="{LEFT + begin * scale:.2f}" y="{y}" width="{max(0.3, (end - begin) * scale):.2f}" height="{ROW}" '
                    f'fill="{colour(event)}"><title>{event["name"]}, {end - begin:.3f} s</title></rect>')
    return lines


def legend(top):
    lines, x = [], LEFT
    for name, label in (
            ("teacher_forward", "teacher"), ("student_forward", "student forward"), ("head", "head"), ("backward", "backward"),
            ("update", "update"), ("replica", "across hosts"), ("shard", "within a host"), ("waits", "waiting")):
        lines.append(f'<rect x="{x}" y="{top}" width="12" height="12" fill="{COLOURS[name]}"/>')
        lines.append(f'<text x="{x + 16}" y="{top + 11}">{label}</text>')
        x += 16 + 7 * len(label) + 22
    return lines


def main():
    paths = [Path(name) for name in sys.argv[1:]]
    if not paths:
        sys.exit(__doc__)
    scale = (WIDTH - LEFT) / max(last_step(path)[1] for path in paths)
    height = TOP + len(ROWS) * (ROW + 2) + GAP
    lines = [line for number, path in enumerate(paths) for line in drawn(path, number * height, scale)]
    lines += legend(len(paths) * height)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {len(paths) * height + 20}" '
          'font-family="sans-serif" font-size="13">')
    print('<rect width="100%" height="100%" fill="white"/>')
    print("\n".join(lines))
    print("</svg>")


if __name__ == "__main__":
    main()
