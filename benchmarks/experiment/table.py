#!/usr/bin/env python3
"""Reads the directory of an experiment and prints RESULTS.md's tables; with --curves FOLDER also writes a chart for each setting.

usage: benchmarks/experiment/table.py OUT [--curves FOLDER] [--against EARLIER]
"""

import argparse
import json
import statistics
from pathlib import Path

import curves
import paired

LABELS = {"tabu": "Tabu", "greedy": "greedy", "staged": "the paper's order", "evolution": "evolution", "additive": "additive",
          "influence": "block influence", "random": "random"}
PRIMARY = ("europa-5m", "per_layer", 0.6)
CLOSE = ("tabu", "greedy", "staged")
BASELINES = ("greedy", "staged", "evolution")
PRIMARY_SEEDS = 5
GAIN = 0.01  # nat


def load(out):
    """{(model, space, keep): {method: {seed: result}}}, in the order of the runs."""
    settings = {}
    for path in sorted(out.glob("*/*/keep-*/*/seed-*/result.json")):
        result = json.loads(path.read_text())
        methods = settings.setdefault((result["model"], result["space"], result["keep"]), {})
        methods.setdefault(result["method"], {})[result["seed"]] = result
    for setting, methods in settings.items():
        settings[setting] = {method: methods[method] for method in LABELS if method in methods}
    return settings


def span(values, digits):
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f}" if low == high else f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def ranked_before(result, reference):
    dense = paired.nll(reference["dense"])
    return paired.nll(result["before"]) <= (dense + reference["unigram"]) / 2


def setting_table(setting, methods, reference):
    model, space, keep = setting
    dense = paired.nll(reference["dense"])
    print(f"\n### {model}, {space}, {100 * (keep - 1):+.0f} % of the parameters\n")
    print(f"NLL in nats per token on the measured documents: {dense:.4f} of the whole model, {reference['unigram']:.4f} of token frequencies.  A cell is the "
          "median over seeds, in brackets the least and the greatest; f is that of the search.  The last columns compare means over the seeds; their 95 % "
          "intervals are over documents, for these seeds, and each is on its own.\n")
    print("| method | seeds | parameters removed | tokens spent | f | NLL before distillation | NLL after | after, minus the best method | |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    best = min(methods, key=lambda method: statistics.fmean(paired.nll(run["after"]) for run in methods[method].values()))
    for method, runs in methods.items():
        results = runs.values()
        removed = [100 * (1 - run["search"]["parameters_after"] / run["search"]["parameters_before"]) for run in results]
        before = span([paired.nll(run["before"]) for run in results], 4)
        if not all(ranked_before(run, reference) for run in results):
            before += ", not ranked"
        gap = tied = ""
        common = sorted(runs.keys() & methods[best].keys())
        if method != best and common:
            mean, interval = paired.gap([(runs[seed]["after"], methods[best][seed]["after"]) for seed in common])
            gap, tied = paired.written(mean, interval), "tied" if interval and interval[0] <= 0 <= interval[1] else ""
        print(f"| {LABELS[method]} | {len(runs)} | {span(removed, 2)} % | {span([run['search']['tokens_spent'] / 1000 for run in results], 0)} k | "
              f"{span([run['search']['searched_objective'] for run in results], 4)} | {before} | {span([paired.nll(run['after']) for run in results], 4)} | {gap} | {tied} |")
    for what, value in (("by f of the search", lambda run: run["search"]["searched_objective"]),
                        ("before distillation", lambda run: paired.nll(run["before"]))):
        print_tau(methods, reference, what, value)
    makers = dict.fromkeys(run["retort"] for runs in methods.values() for run in runs.values())
    made = {version: [LABELS[method] for method, runs in methods.items() if any(run["retort"] == version for run in runs.values())] for version in makers}
    print("\nMade by " + "; ".join(f"{version}: {', '.join(labels)}" for version, labels in made.items()) + ".")


def print_tau(methods, reference, what, value):
    """Of all methods, and of those alone that look at whole candidates from a good start."""
    parts = []
    for names, chosen in (("all", methods), ("Tabu, greedy and the paper's order", {name: methods[name] for name in CLOSE if name in methods})):
        agreements = [tau for tau in (tau_of(chosen, seed, reference, value) for seed in seeds_of(chosen)) if tau is not None]
        if agreements:
            parts.append(f"{span(agreements, 2)} of {names} ({len(agreements)} seeds)")
    if parts:
        print(f"\nKendall's tau between the ranks of the methods {what} and after distillation, seed by seed: {'; '.join(parts)}.")


def seeds_of(methods):
    return sorted({seed for runs in methods.values() for seed in runs})


def tau_of(methods, seed, reference, value):
    """Of `value` and the NLL of the student.  None with fewer than three methods that are ranked."""
    runs = [runs[seed] for runs in methods.values() if seed in runs and ranked_before(runs[seed], reference)]
    if len(runs) < 3:
        return None
    return paired.kendall_tau([value(run) for run in runs], [paired.nll(run["after"]) for run in runs])


def verdict(gains):
    """Of Tabu over a baseline, by the rule of README.md; `gains` are NLL of the baseline minus that of Tabu, seed by seed."""
    if all(gain > 0 for gain in gains) and statistics.median(gains) > GAIN:
        return "win"
    if all(gain < 0 for gain in gains) and statistics.median(gains) < -GAIN:
        return "loss"
    return "tie"


def primary_table(methods):
    print("\n## The primary test: Tabu against greedy, the paper's order and evolution\n")
    print("Gain: test NLL of the baseline minus that of Tabu after distillation, in nats per token.  The interval is that of the mean over seeds, by "
          "paired bootstrap over documents.\n")
    print("| against | gain, seed by seed | median | mean [95 %] | verdict |")
    print("|---|---|---:|---:|---|")
    for method in BASELINES:
        common = sorted(methods.get("tabu", {}).keys() & methods.get(method, {}).keys())
        if not common:
            continue
        pairs = [(methods[method][seed]["after"], methods["tabu"][seed]["after"]) for seed in common]
        gains = [paired.nll(baseline) - paired.nll(tabu) for baseline, tabu in pairs]
        said = verdict(gains) if len(common) >= PRIMARY_SEEDS else f"not finished, {len(common)} of {PRIMARY_SEEDS} seeds"
        print(f"| {LABELS[method]} | {', '.join(f'{gain:+.4f}' for gain in gains)} | {statistics.median(gains):+.4f} | "
              f"{paired.written(*paired.gap(pairs))} | {said} |")


def trade_offs(settings, references, folder):
    """Size against loss and KL, a chart of each, where there are three sizes; with several seeds their median."""
    for model, space in dict.fromkeys((model, space) for model, space, _ in settings):
        sizes = sorted((keep for other, part, keep in settings if (other, part) == (model, space)), reverse=True)
        if len(sizes) < 3:
            continue
        dense = paired.nll(references[model]["dense"])
        print(f"\n## {model}, {space}: size against loss and KL\n")
        for name, what, value in (("student", "test NLL of the students, above the whole model", lambda run: paired.nll(run["after"]) - dense),
                                  ("pruned", "test NLL before distillation, above the whole model", lambda run: paired.nll(run["before"]) - dense),
                                  ("kl", "KL from the whole model before distillation, search text", lambda run: run["search"]["kl"])):
            lines = {}
            for keep in sizes:
                for method, runs in settings[model, space, keep].items():
                    lines.setdefault(LABELS[method], []).append((1 - keep, statistics.median(value(run) for run in runs.values())))
            path = folder / f"{model}-{space}-{name}.svg"
            curves.trade_off(path, lines, what)
            print(f"![{what}]({folder.name}/{path.name})")


def against_table(settings, others):
    """The same methods and seeds in another directory, made by another version of the program."""
    print("\n## Against the earlier runs\n")
    print("NLL after distillation, median over seeds; the gain is earlier minus now, paired by seed and document.\n")
    print("| model | space | size | method | seeds | earlier | now | gain [95 %] |\n|---|---|---:|---|---:|---:|---:|---:|")
    for (model, space, keep), methods in settings.items():
        for method, runs in methods.items():
            earlier = others.get((model, space, keep), {}).get(method, {})
            common = sorted(runs.keys() & earlier.keys())
            if not common:
                continue
            pairs = [(earlier[seed]["after"], runs[seed]["after"]) for seed in common]
            before, now = (statistics.median(paired.nll(pair[i]) for pair in pairs) for i in (0, 1))
            print(f"| {model} | {space} | {100 * (keep - 1):+.0f} % | {LABELS[method]} | {len(common)} | {before:.4f} | {now:.4f} | "
                  f"{paired.written(*paired.gap(pairs))} |")


def seconds_table(settings):
    print("\n## Time\n\n| model | space | method | search, s | distillation, s |\n|---|---|---|---:|---:|")
    for (model, space, keep), methods in settings.items():
        if keep not in (0.9, 0.8, 0.7, 0.5):
            for method, runs in methods.items():
                print(f"| {model} | {space} | {LABELS[method]} | {span([run['search']['seconds'] for run in runs.values()], 0)} | "
                      f"{span([run['distill_seconds'] for run in runs.values()], 0)} |")
    runs = [run for methods in settings.values() for runs in methods.values() for run in runs.values()]
    print(f"\nAll {len(runs)} runs: {sum(run['seconds'] for run in runs) / 3600:.1f} hours of one core, without what an interruption cost.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--curves", type=Path)
    parser.add_argument("--against", type=Path, help="directory of an earlier experiment, to compare with")
    options = parser.parse_args()
    settings = load(options.out)
    references = {model: json.loads((options.out / model / "reference.json").read_text()) for model, _, _ in settings}
    if PRIMARY in settings:
        primary_table(settings[PRIMARY])
    print("\n## Every setting")
    for setting, methods in settings.items():
        setting_table(setting, methods, references[setting[0]])
        if options.curves:
            name = f"{setting[0]}-{setting[1]}-keep-{setting[2]:g}.svg"
            curves.search_progress(options.curves / name, {LABELS[method]: list(runs.values()) for method, runs in methods.items()})
            print(f"\n![best f so far against tokens spent]({options.curves.name}/{name})")
    if options.curves:
        trade_offs(settings, references, options.curves)
    if options.against:
        against_table(settings, load(options.against))
    seconds_table(settings)


if __name__ == "__main__":
    main()
