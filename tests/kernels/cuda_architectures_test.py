"""What CMake says of CMAKE_CUDA_ARCHITECTURES that leave kernels without code.

    cuda_architectures_test.py CMAKE
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CMAKE = None


class CudaArchitectures(unittest.TestCase):
    def check(self, architectures, native=""):
        """(whether it goes on, all that it says)."""
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "check.cmake"
            script.write_text(
                f"include({ROOT}/cmake/CudaArchitectures.cmake)\n"
                f'gemmd_check_cuda_architectures("{architectures}" {native})\n')
            ran = subprocess.run([CMAKE, "-P", str(script)], capture_output=True, text=True)
        return ran.returncode == 0, " ".join((ran.stdout + ran.stderr).split())

    def test_lists_that_would_leave_an_h100_without_its_kernels_are_refused(self):
        for architectures, native in (
            ("90", ""), ("90-real", ""), ("90-virtual", ""), ("80-real;90", ""), ("all", ""),
            ("all-major", ""), ("native", "90"), ("native", "80 90"),
        ):
            with self.subTest(architectures, native=native):
                goes_on, said = self.check(architectures, native)
                self.assertFalse(goes_on)
                self.assertIn(f"CMAKE_CUDA_ARCHITECTURES={architectures} compiles for sm_90", said)
                self.assertIn("the family hopper would be missing", said)
                self.assertIn("Add 90a-real", said)

    def test_lists_for_other_gpus_say_what_they_leave_out(self):
        hopper, fp8 = "without the kernels of the family hopper", "grouped_e4m3 and grouped_e5m2"
        for architectures, native, missing in (
            ("80", "", (hopper, fp8)),
            ("80-virtual", "", (hopper, fp8)),
            ("86-real;89-real", "", (hopper,)),
            ("native", "86", (hopper, fp8)),
            ("100-real", "", (hopper,)),
        ):
            with self.subTest(architectures, native=native):
                goes_on, said = self.check(architectures, native)
                self.assertTrue(goes_on, said)
                self.assertEqual([text for text in (hopper, fp8) if text in said], list(missing))

    def test_lists_of_the_presets_leave_nothing_out(self):
        for architectures in ("90a-real", "80-real;86-real;89-real;90a-real;90-virtual", "90a"):
            with self.subTest(architectures):
                self.assertEqual(self.check(architectures), (True, ""))


if __name__ == "__main__":
    CMAKE = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
