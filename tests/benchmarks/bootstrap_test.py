"""benchmarks/bootstrap.py: the intervals of retort/eval/bootstrap.cpp, by numbers that it gave."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import bootstrap  # noqa: E402

ONE = [(3, 10), (-1, 4), (7.5, 9), (0.2, 1), (2, 30), (1, 2), (4, 4), (3, 5)]
OTHER = [(1, 2), (1, 3), (2, 2), (4, 5), (3, 2), (1, 1), (6, 5), (0, 0), (2, 7), (5, 6)]  # one document without tokens


class Bootstrap(unittest.TestCase):
    def test_draws_the_numbers_of_the_program(self):
        numbers = bootstrap.numbers(1)
        self.assertEqual([next(numbers) for _ in range(4)],
                         [6308597448217886173, 14947806704397390967, 7089332518889689269, 17582193719543412642])

    def test_gives_the_intervals_of_the_program(self):
        known = [(dict(groups=[ONE]), -0.45710703041364459, 1.1124192433893845),
                 (dict(groups=[ONE], level=0.5), 0.13724547721701813, 0.44433078560765948),
                 (dict(groups=[ONE, OTHER]), 0.17375803425908976, 0.85031905395770679),
                 (dict(groups=[ONE, OTHER], level=0.5), 0.41641206663855224, 0.61923602464708383),
                 (dict(groups=[ONE, OTHER], resamples=300, seed=7), 0.1643833756627583, 0.85794357054363279)]
        for arguments, low, high in known:
            found = bootstrap.interval(**arguments)
            self.assertAlmostEqual(found[0], low, places=13)
            self.assertAlmostEqual(found[1], high, places=13)

    def test_needs_eight_documents_with_tokens_in_every_group(self):
        for groups in ([], [[]], [ONE[:7]], [ONE, OTHER[:8]]):
            self.assertIsNone(bootstrap.interval(groups))

    def test_says_nothing_where_one_document_makes_all_the_difference(self):
        self.assertIsNone(bootstrap.interval([[(1, 10)] + [(0, 10)] * 7]))

    def test_says_nothing_of_documents_that_all_say_the_same(self):
        for each in (0, 7):
            self.assertIsNone(bootstrap.interval([[(each, 10)] * 8]))


if __name__ == "__main__":
    unittest.main()
