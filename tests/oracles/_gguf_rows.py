"""Rows of values that try what a quantiser does: usual ones, ties, single large ones, constants, large and small scales."""

import numpy as np


def rows(seed: int, count: int, columns: int = 256) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    shape = (count, columns)

    def normal():
        return random.standard_normal(shape)

    def powers(low, high, *extents):
        return 10.0 ** random.uniform(low, high, extents or (count, 1))

    places = (np.arange(count), random.integers(0, columns, count))
    outlier = normal() * 0.01
    outlier[places] = random.standard_normal(count) * powers(-2, 3, count)
    single = np.zeros(shape)
    single[places] = random.standard_normal(count) * powers(-6, 4, count)
    ties = random.integers(-255, 256, shape) / 2
    beside_ties = np.nextafter(ties.astype("<f4"), np.float32(0))
    ties[:, ::32] = beside_ties[:, ::32] = 127  # the scale of Q8_0 is one
    small_ties = random.integers(-15, 16, shape) / 2
    small_ties[:, ::32] = -8  # likewise of Q4_0
    made = {
        "normal": normal(),
        "any scale": normal() * powers(-12, 4),
        "tiny": normal() * powers(-30, -8),
        "large": normal() * powers(2, 4),
        "groups of other scales": normal() * np.repeat(powers(-6, 3, count, columns // 16), 16, axis=1),
        "values of other scales": normal() * powers(-8, 3, *shape),
        "positive": abs(normal()),
        "negative": -abs(normal()) - 0.1,
        "far from zero": 100 * random.standard_normal((count, 1)) + normal() * powers(-6, 0),
        "constant": np.repeat(random.standard_normal((count, 1)) * powers(-7, 4), columns, axis=1),
        "zero": np.zeros(shape),
        "outlier": outlier,
        "single": single,
        "groups of next to nothing": normal() * np.repeat(powers(-20, -12, count, columns // 16), 16, axis=1),
        "ties": ties,
        "beside ties": beside_ties,
        "small ties": small_ties,
        "half of them zero": normal() * (random.random(shape) < 0.5) + 0.0,
        "few levels": random.integers(-2, 3, shape) * powers(-4, 1),
        "heavy tails": random.standard_t(1.5, shape).clip(-100, 100) * powers(-4, 1),
    }
    return {kind: values.clip(-60000, 60000).astype("<f4") for kind, values in made.items()}
