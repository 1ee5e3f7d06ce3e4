#!/usr/bin/env python3
"""Checks that docs/reference.md has every RPC, flag of gemmd, metric, alert and form of a product.

    tests/docs/reference_check.py [--write] [--gemmd PROGRAM]

--write  makes the page anew
--gemmd  takes the flags' defaults and what each allows from this program; without it they are
         those of the page

The page is made from the contract, the table of forms, the table of flags, the families of
server/telemetry and the rules of deploy/prometheus. And every metric that deploy/ or a page names is
one that the server has, every alert that a page names is one of the rules, and
docs/operations/runbooks.md has a runbook for each, under its name.
Exits with 1 and a sentence for each difference.
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRACT = "proto/gemm/v1/gemm.proto"
FORMS = "server/engine/core/form.h"
FLAGS = "server/flags/flag_table.cc"
TELEMETRY = "server/telemetry"
ALERTS = "deploy/prometheus/alerts.yml"
RUNBOOKS = "docs/operations/runbooks.md"
PAGE = "docs/reference.md"
# Pages with other names than today's metrics: those of then, or of CMake's targets.
OTHER_NAMES = ("CHANGELOG.md", "docs/results/", "docs/libraries.md")

LITERALS = r'((?:\s*"(?:[^"\\]|\\.)*")+)'
FORM = re.compile(r"\{\.name = .*?\}", re.DOTALL)
# The columns of the table of forms, in the words of callers.
FEATURES = {
    "checked": "checked (`Product.verify`)",
    "tuned": "tuning tables, measured estimates",
    "coalesced": "small ones share a launch",
    "zero_copy": "small payload read in host memory",
}
RPC = re.compile(r"((?:^  //.*\n)+)^  rpc (\w+)\((.*?)\) returns \((.*?)\);", re.MULTILINE)
FLAG = re.compile(r'const std::string group = "([^"]+)"|\{"([a-z-]+)",\s*group,' + LITERALS + r"\s*\}")
METRIC = re.compile(r'"((?:gemmd|process)_\w+)"(?:,|\)\s*\.Help\()' + LITERALS)
# Rows of these tables are a quantity and its limit.
BOUNDED = re.compile(r"constexpr (?:Server|Device)Row \w+\[\] = \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
FAMILY = re.compile(r'(?:(?:Counters|Histograms)\(\s*registry,|(?:Gauge|Counter)Samples\(|\.Name\()\s*"([^"]*)"')
METRIC_NAME = re.compile(r"\bgemmd_[a-z_]*[a-z]\b(?!\*)")
HELP_DEFAULT = re.compile(r"^  --([a-z-]+) \S+ \[(.*?)\]", re.MULTILINE)
# Of what a flag allows, the words that the reader of a table does not need.
NOISE = re.compile(r"a (?:whole number|size|duration|number) from |, such as (?:[^;]*? or )?[^,;]+"
                   r"|; a number alone is in seconds")
FLAG_ROW = re.compile(r"^\| `--([a-z-]+)` \| [^|]* \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)
# What Prometheus adds to the name of a histogram.
HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
# Each annotation is one line.
ALERT = re.compile(r"^      - alert: (\w+)\n((?:^(?!      - ).*\n)*)", re.MULTILINE)
ALERT_NAME = re.compile(r"`(Gemmd[A-Z]\w+)`")
RUNBOOK = re.compile(r"^## (Gemmd\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
RUNBOOK_PARTS = ("Means", "Look", "Do")


def text_of(literals):
    """The text of adjacent string literals."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def rpcs():
    """(name, request, response, first sentence of its comment), in the contract's order."""
    for comment, name, request, response in RPC.findall(read(CONTRACT)):
        words = " ".join(line.strip().removeprefix("//").strip() for line in comment.splitlines())
        yield name, request, response, re.split(r"(?<=\.) ", words)[0]


def forms():
    """The cells of each form, in the table's order."""
    for row in FORM.findall(read(FORMS)):
        text = dict(re.findall(r'\.(\w+) = "([^"]*)"', row))
        kernels = f"those with `{text['kernels']}`" if "kernels" in text else "all"
        features = ["yes" if f".{feature} = true" in row else "no" for feature in FEATURES]
        yield [text["name"], text.get("given", "–").replace("#", "n"), kernels, *features]


def flags():
    """(group, name, help), in the table's order."""
    group = None
    for match in FLAG.finditer(read(FLAGS)):
        if match[1]:
            group = match[1]
        else:
            yield group.split(" (")[0], match[2], text_of(match[3])


def allowed_by(program, name):
    """What a flag allows, by the program's own error; a dash where that comes only at the start."""
    # gemmd names the first wrong flag of its table, and never starts with a wrong one.
    last = list(flags())[-1][1]
    answer = subprocess.run([program, f"--{name}=?", f"--{last}=?"], capture_output=True, text=True, timeout=60).stderr
    told = re.search(rf"^gemmd: --{name}: .*?; allowed: (.*)$", answer, re.MULTILINE)
    return NOISE.sub("", told[1]) if told else "–"


def values(program):
    """{flag: (default, what it allows)}, of a program or of the page."""
    if program is None:
        text = read(PAGE) if (ROOT / PAGE).exists() else ""
        return {name: (default, allowed) for name, default, allowed in FLAG_ROW.findall(text)}
    answer = subprocess.run([program, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    return {name: (f"`{default}`", allowed_by(program, name)) for name, default in HELP_DEFAULT.findall(answer)}


def metrics():
    """{name: help} of every family."""
    found = {}
    for path in sorted((ROOT / TELEMETRY).glob("*.cc")):
        text = path.read_text(encoding="utf-8")
        bounded = "".join(BOUNDED.findall(text))
        for name, literals in METRIC.findall(text):
            help_text = text_of(literals).removesuffix(".") + "."
            found[name] = help_text
            if f'"{name}"' in bounded:
                found[f"{name}_limit"] = f"Limit: {help_text}"
    return found


def alerts():
    """(name, severity, description, action), in the order of the rules; "" for what is missing."""
    for name, rule in ALERT.findall(read(ALERTS)):
        severity = re.search(r"severity: (\w+)", rule)
        texts = [re.search(rf"^ +{key}: (.+)$", rule, re.MULTILINE) for key in ("description", "action")]
        yield name, severity[1] if severity else "", *(text[1].strip('"') if text else "" for text in texts)


def overlooked():
    """What this program did not understand in the sources: it would be missing on the page."""
    names = set(re.findall(r"^  rpc (\w+)", read(CONTRACT), re.MULTILINE))
    yield from (f"{CONTRACT}: {name} has no comment" for name in sorted(names - {row[0] for row in rpcs()}))
    columns = re.findall(r"^  bool (\w+) = false;", read(FORMS), re.MULTILINE)
    yield from (f"{FORMS}: {name} is no column" for name in sorted(set(columns) ^ set(FEATURES)))
    rows, found = len(re.findall(r"rows\.push_back\(", read(FLAGS))), len(list(flags()))
    if rows != found:
        yield f"{FLAGS}: {rows} rows, of which {found} have the form {{name, group, help}}"
    known = metrics()
    for path in sorted((ROOT / TELEMETRY).glob("*.cc")):
        text = path.read_text(encoding="utf-8")
        names = re.findall(r'"((?:gemmd|process)_\w+)"', text)
        yield from (f"{path.relative_to(ROOT)}: {name} has no help beside its name"
                    for name in names if name not in known)
        families = FAMILY.findall(text) + re.findall(r'^    \{"([^"]*)"', "".join(BOUNDED.findall(text)), re.MULTILINE)
        yield from (f"{path.relative_to(ROOT)}: the metric {name} has not the prefix gemmd_"
                    for name in families if name not in names)
    rules, read_rules = len(re.findall(r"\balert: ", read(ALERTS))), list(alerts())
    if rules != len(read_rules):
        yield f"{ALERTS}: {rules} alerts, of which {len(read_rules)} have the form of the others"
    for name, *fields in read_rules:
        yield from (f"{ALERTS}: {name} has no {field} in one line"
                    for field, text in zip(("severity", "description", "action"), fields) if not text)


def table(head, rows):
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *escaped])


def page(known):
    calls = table(["RPC", "takes", "answers", "what"],
                  [[f"`{name}`", f"`{takes}`", f"`{answers}`", what] for name, takes, answers, what in rpcs()])
    products = table(["form", "in the request", "kernels", *FEATURES.values()], forms())
    options = table(["flag", "group", "default", "allowed", "what"],
                    [[f"`--{name}`", group, *known.get(name, ("?", "?")), text] for group, name, text in flags()])
    families = table(["metric", "what"], [[f"`{name}`", text] for name, text in sorted(metrics().items())])
    rules = table(["alert", "severity", "when", "what to do"],
                  [[f"`{name}`", *fields] for name, *fields in alerts()])
    return f"""# Reference

Every RPC, every form of a product, every flag of gemmd with its default and range, every metric and every alert. Made by `tests/docs/reference_check.py --write` from the sources, and held by it.

## RPCs

The contract, [gemm.proto](../{CONTRACT}), has the messages, their fields and the errors. The RPCs for clients of Triton and KServe are in [inference.md](inference.md#rpcs).

{calls}

## Forms of a product

A product has one form. A request of two is `INVALID_ARGUMENT`; so is a kernel by name that does not take the form. `gemmctl kernels NAME` has the fields of `KernelInfo` that the column of kernels names. A product that is not checked is `FAILED_PRECONDITION` where its request asks for a check; where only `--verify` does, it is delivered, and counts as skipped. Tables and estimates know a block of rows as the whole product.

{products}

## Flags

Each flag is also a variable of the environment (`--max-jobs` as `GEMMD_MAX_JOBS`) and a line of the file that `--flagfile` or `GEMMD_FLAGFILE` names. The command line counts before the environment, and that before the file. A duration has a unit, such as 200us, 500ms, 30s or 5m; a number alone is in seconds.

{options}

## Metrics

Labels have fixed sets of values: no text of a request makes a series. Only `caller` has names of the callers file or of certificates, the first 64 that come.

{families}

## Alerts

The rules are in [alerts.yml](../{ALERTS}), the sentences are those of the alert itself. [The runbooks](operations/runbooks.md) say what to look at and what to do.

{rules}
"""


def texts(paths):
    """(name, text) of each file that has today's names."""
    for path in sorted(paths):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(OTHER_NAMES):
            yield name, path.read_text(encoding="utf-8")


def pages():
    return texts([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def unknown_metrics():
    """Each name of a metric, in deploy/ or on a page, that the server has not."""
    known = metrics()
    deployed = [*(ROOT / "deploy").rglob("*.yml"), *(ROOT / "deploy").rglob("*.json")]
    for name, text in [*texts(deployed), *pages()]:
        for metric in sorted(set(METRIC_NAME.findall(text))):
            if metric not in known and HISTOGRAM.sub("", metric) not in known:
                yield f"{name}: the server has no metric {metric}"


def misnamed_alerts():
    """Alerts that a page names and that are no rule."""
    known = {name for name, *_ in alerts()}
    for page_name, text in pages():
        yield from (f"{page_name}: {ALERTS} has no alert {name}"
                    for name in sorted(set(ALERT_NAME.findall(text)) - known))


def runbook_problems(known, page_text):
    """Alerts without a runbook, runbooks without an alert, and runbooks that lack a part."""
    books = dict(RUNBOOK.findall(page_text))
    yield from (f"{RUNBOOKS}: the alert {name} has no runbook" for name in known if name not in books)
    for name, text in books.items():
        if name not in known:
            yield f"{RUNBOOKS}: {ALERTS} has no alert {name}"
        yield from (f"{RUNBOOKS}: the runbook of {name} lacks **{part}**"
                    for part in RUNBOOK_PARTS if f"**{part}**" not in text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--gemmd")
    arguments = parser.parse_args()
    made_page = page(values(arguments.gemmd))
    if arguments.write:
        (ROOT / PAGE).write_text(made_page, encoding="utf-8")
    found = [*overlooked(), *unknown_metrics(), *misnamed_alerts(),
             *runbook_problems([name for name, *_ in alerts()], read(RUNBOOKS))]
    there = read(PAGE).splitlines() if (ROOT / PAGE).exists() else []
    made = made_page.splitlines()
    if there != made:
        found.append(f"{PAGE}: not what {pathlib.Path(__file__).name} --write makes of the sources")
        found += [f"{PAGE}: lacks {line}" for line in made if line not in there]
        found += [f"{PAGE}: has, but should not, {line}" for line in there if line not in made]
    found += [f"{PAGE}: --gemmd PROGRAM --write has to add a default: {line}" for line in made if "| ? |" in line]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
