"""Fills the tables and figures of a page about the kernels into its text.

    kernels_page.py --bench GEMM_BENCH --registers FILE --standing FILE PAGE

prints PAGE with its markers replaced. The tables come from `gemm_bench --catalogue`, registers
from a file as tests/kernels/machine_code.py prints it, figures from a file of `gemm_bench --csv`
with one shape.

A table is a comment that names its kernels, a name or a pattern with * a line:

    <!-- kernels
    NAME
    NAME over OTHER
    -->

"over" names the step before, which the row's gain is counted from. In the text {tflops NAME},
{share NAME} (of cuBLAS, in the same run), {registers NAME} (of a thread), {gain NAME} (over its
step before) and {gain NAME over OTHER} are figures, {kernels} the number of kernels of our own.
The page has to have every kernel of the catalogue in a table, and the {gain} of every step that is
slower than the one before, where the text says why.
"""

import argparse
import csv
import fnmatch
import re
import subprocess
import sys
from dataclasses import dataclass

TABLE = re.compile(r"<!-- kernels\n(.*?)-->", re.DOTALL)
FIGURE = re.compile(r"\{(tflops|share|registers|gain|kernels)(?: (\w+))?(?: over (\w+))?\}")
# Families whose kernels are not this repository's own.
LIBRARIES = {"cublas", "cublaslt", "host"}
NOT_MEASURED = "not measured"


class PageError(Exception):
    """What of the page's text does not fit the catalogue or what was measured."""


@dataclass
class Standing:
    """What was measured of a kernel on the one shape."""

    tflops: float
    share: float | None  # of cuBLAS, in the same run
    samples: int
    spread: float  # half the range of the samples, as a share of their median


@dataclass
class Step:
    """A row of a table: a kernel, and the name of the one it is a step from, if any."""

    kernel: str
    before: str | None


def read_catalogue(markdown):
    """By name, in the catalogue's order, each kernel's cells by title and its "family"."""
    kernels, family, titles = {}, "", []
    for line in markdown.splitlines():
        if line.startswith("## "):
            family, titles = line[3:], []
        elif line.startswith("| "):
            cells = [cell.strip() for cell in line[1:-1].split("|")]
            if not titles:
                titles = cells
            elif cells[0] != "---":
                kernels[cells[0].strip("`")] = {**dict(zip(titles, cells)), "family": family}
    return kernels


def read_standings(path):
    """By name, what a file of one shape holds; of several combinations of types the first."""
    standings, shapes = {}, set()
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            shapes.add((row["m"], row["n"], row["k"]))
            if row["baseline"] == "true" or not row["tflops"]:
                continue
            half_range = (float(row["slowest_ms"]) - float(row["fastest_ms"])) / 2
            share = float(row["of_vendor"]) if row["of_vendor"] else None
            standings.setdefault(
                row["kernel"],
                Standing(
                    float(row["tflops"]),
                    share,
                    int(row["iterations"]),
                    half_range / float(row["ms"]),
                ),
            )
    if len(shapes) != 1:
        raise PageError(f"{path} has {len(shapes)} shapes; it must have one")
    return standings


def registers_title(kernel):
    """Of the column with the registers, which names the architecture."""
    return next((title for title in kernel if title.startswith("registers")), "registers")


def gain_text(ratio):
    """1.282 as "+28.2%", 3.67 as "3.67 times"."""
    return f"{ratio:.2f} times" if ratio >= 2 else f"{100 * (ratio - 1):+.1f}%"


def tflops_text(tflops):
    """Three digits or so."""
    return f"{tflops:.2f}" if tflops < 10 else f"{tflops:.1f}"


class Page:
    """A page's text on its way from a template to what is read."""

    def __init__(self, catalogue, standings):
        self.catalogue = catalogue
        self.standings = standings
        self.before = {}  # by name, the step before
        self.tabled = set()
        self.explained = set()

    def expand(self, text):
        tables = [self.parse_table(match[1]) for match in TABLE.finditer(text)]
        remaining = iter(tables)
        text = TABLE.sub(lambda _: self.render_table(next(remaining)), text)
        text = FIGURE.sub(self.figure, text)
        self.check()
        return text

    def parse_table(self, lines):
        steps = []
        for line in filter(None, (line.strip() for line in lines.splitlines())):
            name, _, before = line.partition(" over ")
            names = fnmatch.filter(self.catalogue, name)
            if not names:
                raise PageError(f"no kernel of the catalogue is named {name}")
            if before:
                self.look_up(before)
                self.before[name] = before
            steps += [Step(n, before or None) for n in names]
        self.tabled.update(step.kernel for step in steps)
        return steps

    def look_up(self, name):
        if name not in self.catalogue:
            raise PageError(f"no kernel of the catalogue is named {name}")
        return self.catalogue[name]

    def ratio(self, name, before):
        """Of the two kernels' speeds; None where one was not measured."""
        if name not in self.standings or before not in self.standings:
            return None
        return self.standings[name].tflops / self.standings[before].tflops

    # ---- Tables ----

    def render_table(self, steps):
        places = {step.kernel: place for place, step in enumerate(steps, 1)}
        kernels = [self.look_up(step.kernel) for step in steps]
        registers = registers_title(kernels[0])
        types = "A:B:D:compute"
        columns = {
            "#": [str(places[step.kernel]) for step in steps],
            "kernel": [f"{k['kernel']}<br>{k['what it is']}" for k in kernels],
            types: [k[types].replace(", ", "<br>") for k in kernels],
            "tile": [k["tile"].replace("the library's", "") for k in kernels],
            "stages": [k["stages"] for k in kernels],
            "threads": [k["threads"] for k in kernels],
            "shared bytes": [k["shared memory, bytes"] for k in kernels],
            "registers": [k.get(registers, "") for k in kernels],
            "needs": [k["needs"] for k in kernels],
            "TFLOPS": [self.tflops_cell(step.kernel) for step in steps],
            "of cuBLAS": [self.share_cell(step.kernel) for step in steps],
            "gain": [self.gain_cell(step, places) for step in steps],
        }
        columns = {title: cells for title, cells in columns.items() if any(cells)}
        caption = ""
        if len(set(columns[types])) == 1:
            caption = f"A:B:D:compute is {columns.pop(types)[0].replace('<br>', ', ')}.\n\n"
        right = {"stages", "threads", "shared bytes", "registers", "TFLOPS", "of cuBLAS"}
        lines = [columns, ("---:" if title in right else "---" for title in columns)]
        lines += zip(*columns.values())
        return caption + "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def tflops_cell(self, name):
        standing = self.standings.get(name)
        if standing is None:
            return NOT_MEASURED
        spread = f" ±{100 * standing.spread:.1f}%" if standing.samples > 1 else ""
        return f"{tflops_text(standing.tflops)}{spread}"

    def share_cell(self, name):
        standing = self.standings.get(name)
        return "" if standing is None or standing.share is None else f"{standing.share:.3f}"

    def gain_cell(self, step, places):
        ratio = self.ratio(step.kernel, step.before)
        if ratio is None:
            return ""
        before = places.get(step.before, f"`{step.before}`")
        return f"{gain_text(ratio)} over {before}"

    # ---- Figures in the text ----

    def figure(self, match):
        what, name, before = match.groups()
        if what == "kernels":
            return str(sum(k["family"] not in LIBRARIES for k in self.catalogue.values()))
        kernel = self.look_up(name)
        if what == "registers":
            return kernel[registers_title(kernel)]
        standing = self.standings.get(name)
        if what == "gain":
            if before is None:
                self.explained.add(name)
                before = self.before.get(name)
            ratio = self.ratio(name, before)
            if ratio is not None:
                return gain_text(ratio)
        elif standing is not None and what == "tflops":
            return tflops_text(standing.tflops)
        elif standing is not None and standing.share is not None:
            return f"{standing.share:.3f}"
        raise PageError(f"{match[0]}: this was not measured")

    # ---- Checks of the page ----

    def check(self):
        if missing := [name for name in self.catalogue if name not in self.tabled]:
            raise PageError(f"in no table of the page: {', '.join(missing)}")
        slower = [
            name for name, before in self.before.items() if (self.ratio(name, before) or 1) < 1
        ]
        if unexplained := [name for name in slower if name not in self.explained]:
            raise PageError(
                "slower than the step before, and the page does not say why; "
                f"explain beside the {{gain}} of: {', '.join(unexplained)}"
            )


def make_page(bench, registers, standing, template):
    """The page as text. PageError where the template does not fit."""
    command = [bench, "--catalogue", "--registers", registers]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)
    page = Page(read_catalogue(printed.stdout), read_standings(standing))
    with open(template) as file:
        return page.expand(file.read())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bench", required=True, metavar="GEMM_BENCH", help="that program")
    parser.add_argument("--registers", required=True, metavar="FILE")
    parser.add_argument("--standing", required=True, metavar="FILE")
    parser.add_argument("page", metavar="PAGE")
    arguments = parser.parse_args()
    try:
        page = make_page(arguments.bench, arguments.registers, arguments.standing, arguments.page)
    except PageError as error:
        sys.exit(f"kernels_page.py: {arguments.page}: {error}")
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
