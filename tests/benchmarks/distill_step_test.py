"""benchmarks/distill_step: two ranks learn about as one does, and after the third step take nothing from the system.

usage: distill_step_test.py DISTILL_STEP
"""

import json
import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop()
SIZES = ["--hidden", "128", "--heads", "4", "--kv-heads", "2", "--vocab", "2048", "--teacher-blocks", "4",
         "--teacher-width", "352", "--student-blocks", "3", "--student-width", "256", "--length", "128", "--steps", "7"]


def measured(*options):
    done = subprocess.run([PROGRAM, *SIZES, *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class DistillStep(unittest.TestCase):
    def test_of_two_ranks_does_not_grow(self):
        for dtype in ("fp32", "bf16"):
            for kept in ([], ["--keep"]):
                with self.subTest(dtype=dtype, kept=kept):
                    one = measured("--dtype", dtype, *kept)
                    two = measured("--dtype", dtype, "--ranks", "2", "--no-memory", *kept)
                    self.assertEqual((one["ranks"], two["ranks"]), (1, 2))
                    self.assertAlmostEqual(two["loss"] / one["loss"], 1, delta=0.01)  # of other random ids
                    self.assertEqual(one["grown_bytes"], 0)
                    self.assertEqual(two["grown_bytes"], 0)


if __name__ == "__main__":
    unittest.main()
