#!/usr/bin/env python3
"""Runs queries of the dashboard on made-up series, and looks at the colours of what they give.

Whether every query finds data is asked in tests/telemetry/prometheus_test.py, with a server that
has no device to lose. Needs promtool.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy/grafana/dashboards/gemmd.json"
DAY = 86400


class Case(typing.NamedTuple):
    """What a panel shows after ten minutes, of series with a value each minute."""

    what: str
    panel: str
    query: str  # its letter
    series: dict  # name and labels: values, in promtool's notation
    values: list
    colour: str = ""  # of the first value


JOBS = 'gemmd_jobs_total{{instance="a",outcome="{}"}}'
HEALTHY = 'gemmd_device_healthy{{instance="a",device="cuda:{}"}}'
ONE_LOST = {HEALTHY.format(0): "1x20", HEALTHY.format(1): "1x5 0x15"}
NONE_LOST = {HEALTHY.format(0): "1x20", HEALTHY.format(1): "1x20"}
CASES = (
    Case("all fail", "Errors", "A", {JOBS.format("INTERNAL"): "0+60x20"}, [1], "red"),
    Case("none fails", "Errors", "A", {JOBS.format("OK"): "0+60x20"}, [0], "green"),
    Case("one in four fails", "Errors", "A",
         {JOBS.format("OK"): "0+60x20", JOBS.format("INTERNAL"): "0+20x20"}, [0.25], "red"),
    Case("no products now", "Errors", "A", {JOBS.format("OK"): "60x20"}, []),
    Case("no products now", "Error ratio by code", "A", {JOBS.format("INTERNAL"): "60x20"}, []),
    Case("one of two lost", "Devices", "A", ONE_LOST, [1], "red"),
    Case("one of two lost", "Devices", "B", ONE_LOST, [2]),
    Case("none lost", "Devices", "A", NONE_LOST, [0], "green"),
    Case("started once more", "Restarts", "A",
         {'process_start_time_seconds{job="gemmd",instance="a"}': "100x3 stale 335x15"}, [1], "orange"),
    Case("the queue takes twice what it may", "Admission", "A",
         {'gemmd_queue_wait_estimate_seconds{instance="a",device="cuda:0"}': "0.1x20",
          'gemmd_queue_wait_limit_seconds{instance="a",device="cuda:0"}': "0.05x20"}, [2]),
    Case("six days", "Certificate ends in", "A",
         {'gemmd_tls_certificate_expiry_timestamp_seconds{instance="a"}': f"{6 * DAY + 600}x20"},
         [6 * DAY], "red"),
    Case("a wrong file", "Files", "A",
         {'gemmd_identity_current{instance="a",what="quotas"}': "0x20"}, [0], "red"),
)


def colour_of(panel, value):
    """The colour of the last step that the value reaches."""
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    return [step["color"] for step in steps if step["value"] is None or step["value"] <= value][-1]


def promtool_test(case, panel):
    """The case as promtool takes it. Labels do not matter here: they are summed away."""
    targets = {target["refId"]: target["expr"] for target in panel["targets"]}
    query = targets[case.query].replace("$__rate_interval", "5m").replace("$instance", ".*")
    return {
        "name": f"{case.panel}: {case.what}",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [{
            "expr": f"sum({query})",
            "eval_time": "10m",
            "exp_samples": [{"labels": "{}", "value": value} for value in case.values],
        }],
    }


def main():
    panels = {panel["title"]: panel for panel in json.loads(DASHBOARD.read_text())["panels"]}
    wrong = 0
    for case in CASES:
        if case.colour and colour_of(panels[case.panel], case.values[0]) != case.colour:
            print(f"{case.panel}: {case.what}: {case.values[0]} is not {case.colour}")
            wrong = 1
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        # JSON is YAML, too.
        json.dump({"tests": [promtool_test(case, panels[case.panel]) for case in CASES]}, file)
        file.flush()
        return subprocess.run(["promtool", "test", "rules", file.name], check=False).returncode or wrong


if __name__ == "__main__":
    sys.exit(main())
