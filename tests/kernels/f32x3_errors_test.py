#!/usr/bin/env python3
"""Runs scripts/f32x3_errors.py on output as the test of a GPU prints it."""

import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "f32x3_errors.py"
SVG = "{http://www.w3.org/2000/svg}"
OUTPUT = """[ RUN      ] GpuF32x3.ErrsNoMoreThanF32
normal, m and n 160, k 128: cublas_f32 rms 2.8e-08, worst 1.95e-07
  first_row                                          0.67 of the rms, 0.48 of the worst
  second_row                                         0.34 of the rms, 0.39 of the worst
uniform in [0, 1), m and n 1024, k 8192: cublas_f32 rms 1.57e-07, worst 6.7e-07
  first_row                                          2.76 of the rms, 2.73 of the worst
"""


def run(text):
    return subprocess.run([sys.executable, SCRIPT], input=text, capture_output=True, text=True,
                          check=False)


class TheDrawing(unittest.TestCase):
    def test_has_a_dot_for_each_row_of_each_product(self):
        made = run(OUTPUT)
        self.assertEqual(made.returncode, 0, made.stderr)
        drawing = xml.fromstring(made.stdout)
        dots = [dot for dot in drawing.iter(f"{SVG}circle") if dot.get("fill-opacity")]
        self.assertEqual(len({dot.get("cx") for dot in dots}), 2)
        # The larger an error, the higher its dot; a row has one colour.
        first, second, large = dots
        self.assertLess(float(large.get("cy")), float(first.get("cy")))
        self.assertLess(float(first.get("cy")), float(second.get("cy")))
        self.assertEqual(large.get("fill"), first.get("fill"))
        self.assertNotEqual(second.get("fill"), first.get("fill"))
        words = "".join(drawing.itertext())
        for word in ("first_row", "second_row", "uniform in [0, 1)", "1024 x 1024 x 8192"):
            self.assertIn(word, words)

    def test_of_nothing_is_an_error(self):
        made = run("[  SKIPPED ] GpuF32x3.ErrsNoMoreThanF32\n")
        self.assertEqual(made.returncode, 1)
        self.assertIn("no case", made.stderr)


if __name__ == "__main__":
    unittest.main()
