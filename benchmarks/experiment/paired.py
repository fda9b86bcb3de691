"""Comparing models by the losses of the same documents.

Scores are {source: [[targets, summed NLL] of each document]}.  NLL is the mean over sources of summed NLL / targets, in nats.
"""

import random

RESAMPLES = 2000


def nll(scores):
    return sum(sum(loss for _, loss in rows) / sum(targets for targets, _ in rows) for rows in scores.values()) / len(scores)


def interval(pairs, resamples=RESAMPLES):
    """(low, mean, high) of NLL(first) - NLL(second), the mean over pairs (one for each seed): 95 % by bootstrap over documents,
    drawn within each source, the same for both of a pair and for all pairs."""
    rng = random.Random(0)
    sources = list(pairs[0][0])
    means = []
    # Of each source its document's summed difference over all pairs, and its targets; both models score the same targets.
    rows = {}
    for source in sources:
        documents = zip(*(zip(first[source], second[source]) for first, second in pairs))
        rows[source] = [(sum(a[1] - b[1] for a, b in document) / len(pairs), document[0][0][0]) for document in documents]
        if any(a[0] != b[0] for first, second in pairs for a, b in zip(first[source], second[source])):
            raise ValueError(f"{source}: the models were measured on different documents")
    for _ in range(resamples):
        total = 0.0
        for source in sources:
            drawn = rng.choices(rows[source], k=len(rows[source]))
            total += sum(difference for difference, _ in drawn) / sum(targets for _, targets in drawn)
        means.append(total / len(sources))
    means.sort()
    mean = sum(nll(first) - nll(second) for first, second in pairs) / len(pairs)
    return means[int(0.025 * resamples)], mean, means[int(0.975 * resamples)]


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
