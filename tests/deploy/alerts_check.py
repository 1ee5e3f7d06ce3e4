#!/usr/bin/env python3
"""Checks that every alert of alerts.yml has a case in alerts_test.yml, and names its runbook.

promtool runs the cases, and says nothing of an alert without one. Exits with 1 and a sentence for
each.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
CASES = ROOT / "tests/deploy/alerts_test.yml"
RUNBOOKS = "docs/operations/runbooks.md"


def alerts():
    """(name, text) of each alert."""
    _, *rules = re.split(r"- alert: ", RULES.read_text(encoding="utf-8"))
    return [(re.match(r"\w+", rule)[0], rule) for rule in rules]


def faults():
    found = alerts()
    # Rules that this program does not see would pass.
    if not found:
        yield f"{RULES.name}: no alerts found"
    tested = set(re.findall(r"alertname: (\w+)", CASES.read_text(encoding="utf-8")))
    for name, rule in found:
        if name not in tested:
            yield f"{RULES.name}: {name} has no case in {CASES.name}"
        # The chart puts an address before the path.
        wanted = f"{RUNBOOKS}#{name.lower()}"
        urls = re.findall(r"^ +runbook_url: (.+)$", rule, re.MULTILINE)
        if urls != [wanted]:
            yield f"{RULES.name}: {name} has the runbook_url {urls}, wanted is {wanted}"


def main():
    found = list(faults())
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
