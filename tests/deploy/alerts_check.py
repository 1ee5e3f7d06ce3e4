#!/usr/bin/env python3
"""Checks that every alert of alerts.yml has a case in alerts_test.yml.

promtool runs the cases, and says nothing of an alert without one. Exits with 1 and a sentence for
each.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
CASES = ROOT / "tests/deploy/alerts_test.yml"


def main():
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text(encoding="utf-8"))
    tested = set(re.findall(r"alertname: (\w+)", CASES.read_text(encoding="utf-8")))
    untested = [alert for alert in alerts if alert not in tested]
    for alert in untested:
        print(f"{RULES.name}: {alert} has no case in {CASES.name}", file=sys.stderr)
    # Rules that this program does not see would pass.
    return 1 if untested or not alerts else 0


if __name__ == "__main__":
    sys.exit(main())
