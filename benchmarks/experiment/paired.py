"""Comparing models by the losses of the same documents.

Scores are {source: [[targets, summed NLL] of each document]}.  NLL is the mean over sources of summed NLL / targets, in nats.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import bootstrap  # noqa: E402


def nll(scores):
    return sum(sum(loss for _, loss in rows) / sum(targets for targets, _ in rows) for rows in scores.values()) / len(scores)


def gap(pairs):
    """NLL(first) - NLL(second), the mean over pairs (one for each seed), and its 95 % interval over documents: (low, high), or
    None where a source has too few.  Documents are drawn within each source, the same for both of a pair and for all pairs."""
    groups = []  # of each source its documents' mean differences over pairs, and their targets; both models score the same targets
    for source in pairs[0][0]:
        if any([a[0] for a in first[source]] != [b[0] for b in second[source]] for first, second in pairs):
            raise ValueError(f"{source}: the models were measured on different documents")
        documents = zip(*(zip(first[source], second[source]) for first, second in pairs))
        groups.append([(sum(a[1] - b[1] for a, b in document) / len(pairs), document[0][0][0]) for document in documents])
    mean = sum(nll(first) - nll(second) for first, second in pairs) / len(pairs)
    return mean, bootstrap.interval(groups)


def written(mean, interval):
    return f"{mean:+.4f} [{interval[0]:+.4f}, {interval[1]:+.4f}]" if interval else f"{mean:+.4f} [–]"


def kendall_tau(a, b):
    """tau-b, which allows for ties; None where one side is all ties."""
    concordant = discordant = only_a = only_b = 0
    for i in range(len(a)):
        for j in range(i):
            x, y = (a[i] > a[j]) - (a[i] < a[j]), (b[i] > b[j]) - (b[i] < b[j])
            concordant += x * y > 0
            discordant += x * y < 0
            only_a += x != 0 and y == 0  # tied in b
            only_b += x == 0 and y != 0
    pairs = concordant + discordant
    scale = ((pairs + only_a) * (pairs + only_b)) ** 0.5
    return (concordant - discordant) / scale if scale else None
