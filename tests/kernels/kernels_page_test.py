"""Holds docs/kernels.md to the catalogue, and the way it is made to its word. Needs no GPU.

kernels_page_test.py GEMM_BENCH
"""

import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import kernels_page  # noqa: E402  # found through the line above

RESULTS = ROOT / "docs" / "results"
BENCH = ""


class TheCommittedPage(unittest.TestCase):
    def test_is_what_the_catalogue_gives_now(self):
        made = kernels_page.make_page(
            BENCH,
            RESULTS / "sm90-registers.txt",
            RESULTS / "h200-4096.csv",
            ROOT / "docs" / "kernels.in.md",
        )
        committed = (ROOT / "docs" / "kernels.md").read_text()
        self.assertEqual(committed, made, "scripts/kernels-page.sh makes it anew")

    def test_names_every_promised_kernel(self):
        page = (ROOT / "docs" / "kernels.md").read_text()
        names = (ROOT / "tests" / "kernels" / "kernel_names.txt").read_text().split()
        self.assertEqual([name for name in names if f"| `{name}`<br>" not in page], [])


CATALOGUE = """## simt

| kernel | what it is | A:B:D:compute | tile | stages | threads | shared memory, bytes | needs |
| --- | --- | --- | --- | --- | --- | --- | --- |
| `one` | a first step | f32:f32:f32:f32 | 8x32x1 | 1 | 256 |  | any GPU |
| `two` | a second step | f32:f32:f32:f32 | 64x64x8 | 2 | 64 | 4096 | any GPU |
| `three` | a third step | f32:f32:f32:f32 | 64x64x8 | 3 | 64 | 6144 | sm_80 and up |

## host

| kernel | what it is | A:B:D:compute | tile | stages | threads | shared memory, bytes | needs |
| --- | --- | --- | --- | --- | --- | --- | --- |
| `host` | not our own | f32:f32:f32:f32 | the library's |  |  |  | no GPU |
"""

FIGURES = """m,n,k,kernel,baseline,ms,fastest_ms,slowest_ms,iterations,tflops,of_vendor,note
64,64,64,one,false,4,3.8,4.2,10,10,0.25,
64,64,64,two,false,2,2,2,1,20,0.5,1 of 10 samples
64,64,64,best,true,1,1,1,10,40,1,
"""

TABLE = "<!-- kernels\none\ntwo over one\nthree over two\nhost\n-->\n"


class ThePagesText(unittest.TestCase):
    def expand(self, text, figures=FIGURES):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(figures)
            file.flush()
            standings = kernels_page.read_standings(file.name)
        return kernels_page.Page(kernels_page.read_catalogue(CATALOGUE), standings).expand(text)

    def test_tables_have_what_is_known_and_say_what_is_not(self):
        page = self.expand(TABLE)
        self.assertIn(
            "| 1 | `one`<br>a first step | 8x32x1 | 1 | 256 |  | any GPU | 10.0 ±5.0%", page
        )
        self.assertIn("| 20.0 | 0.500 | 2.00 times over 1 |", page)
        self.assertIn("| 6144 | sm_80 and up | not measured |  |  |", page)

    def test_text_has_figures(self):
        page = self.expand(TABLE + "{kernels}: {tflops one}, {share two}, {gain two}")
        self.assertTrue(page.endswith("3: 10.0, 0.500, 2.00 times"))
        self.assertIn("-50.0%", self.expand(TABLE + "{gain one over two}"))

    def test_figures_that_were_not_measured_are_refused(self):
        for figure in ("{tflops three}", "{gain three}", "{gain one}", "{share host}"):
            with self.subTest(figure), self.assertRaisesRegex(kernels_page.PageError, "measured"):
                self.expand(TABLE + figure)

    def test_unknown_and_missing_kernels_are_refused(self):
        for text, complaint in (
            (TABLE + "{tflops four}", "named four"),
            (TABLE.replace("two over one", "two over four"), "named four"),
            (TABLE.replace("host", "hosts"), "named hosts"),
            (TABLE.replace("host\n", ""), "in no table of the page: host"),
        ):
            with self.subTest(complaint), self.assertRaisesRegex(kernels_page.PageError, complaint):
                self.expand(text)

    def test_a_slower_step_has_to_be_explained(self):
        slower = FIGURES.replace(",20,0.5,", ",8,0.2,")
        with self.assertRaisesRegex(kernels_page.PageError, "does not say why.* two"):
            self.expand(TABLE, slower)
        self.assertIn("-20.0%, because", self.expand(TABLE + "{gain two}, because", slower))

    def test_figures_of_several_shapes_are_refused(self):
        with self.assertRaisesRegex(kernels_page.PageError, "2 shapes"):
            self.expand(TABLE, FIGURES + "8,8,8,one,false,1,1,1,1,1,1,\n")


if __name__ == "__main__":
    BENCH = sys.argv[1]
    unittest.main(argv=sys.argv[:1])
