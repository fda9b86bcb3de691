"""Intervals over documents, the same numbers as the program's (retort/eval/bootstrap.h).

A group (a source) is a list of (numerator, denominator), one for each document, for example nats and tokens.  The estimate is
sum of numerators / sum of denominators, averaged over groups with equal weights.
"""

import functools
import math

LEAST_DOCUMENTS = 8  # of each group; from fewer the level cannot be kept
STREAM = 0x88EE1BA3DEFF7B91  # of the random numbers: XXH3 64-bit of "bootstrap over documents"


def philox4x32(counter, key):
    """Philox4x32-10.  Source: Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3"."""
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = p1 >> 32 ^ b ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ d ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return a, b, c, d


def numbers(seed):
    """Yields 64-bit numbers without end: those of the program's base::Random."""
    low, high = STREAM & 0xFFFFFFFF, STREAM >> 32
    block = 0
    while True:
        words = philox4x32((block & 0xFFFFFFFF, block >> 32, low, high), (seed & 0xFFFFFFFF, seed >> 32))
        yield words[1] << 32 | words[0]
        yield words[3] << 32 | words[2]
        block += 1


@functools.lru_cache(maxsize=4)
def draws(sizes, resamples, seed):
    """Of each resample and group the documents that are drawn: they depend on the sizes alone, so models see the same."""
    largest = 2**64 - 1
    source = numbers(seed)

    def below(bound):
        limit = largest - largest % bound
        return next(number for number in source if number < limit) % bound

    return [[[below(size) for _ in range(size)] for size in sizes] for _ in range(resamples)]


def ratio(terms):
    """The ratio, and its variance by leaving out one document after the other."""
    above, below, count = sum(n for n, _ in terms), sum(d for _, d in terms), len(terms)
    found = above / below
    changes = [(found * denominator - numerator) / (below - denominator) for numerator, denominator in terms]
    mean = sum(changes) / count
    return found, (count - 1) / count * max(sum(change * change for change in changes) - count * mean * mean, 0.0)


def estimate(groups):
    """The mean over groups and its variance."""
    found = [ratio(terms) for terms in groups]
    return sum(value for value, _ in found) / len(found), sum(variance for _, variance in found) / len(found) ** 2


def quantile(ordered, share):
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    if place == below or ordered[below] == ordered[above] or math.isinf(ordered[below]):
        return ordered[below]
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def interval(groups, resamples=2000, level=0.95, seed=1):
    """(low, high): on each side the farther of the symmetric and the equal-tailed bootstrap-t interval; None where a group has
    too few documents, where all say the same, or where too few differ.  Source: Efron and Tibshirani 1993, sections 12.5, 11.5 and 8.3; Hall 1988."""
    groups = [[term for term in terms if term[1] > 0] for terms in groups]
    if not groups or any(len(terms) < LEAST_DOCUMENTS for terms in groups):
        return None
    value, variance = estimate(groups)
    if variance <= 1e-24 * value * value:
        return None
    t = []  # how many of its own errors each resample is away
    for drawn in draws(tuple(len(terms) for terms in groups), resamples, seed):
        other, spread = estimate([[terms[i] for i in places] for terms, places in zip(groups, drawn)])
        away = other - value
        t.append(0.0 if away == 0 else away / math.sqrt(spread) if spread > 0 else math.copysign(math.inf, away))
    t.sort()
    symmetric, tail, error = quantile(sorted(map(abs, t)), level), (1 - level) / 2, math.sqrt(variance)
    below = error * max(symmetric, quantile(t, 1 - tail))
    above = error * max(symmetric, -quantile(t, tail))
    return (value - below, value + above) if math.isfinite(below) and math.isfinite(above) else None
