#!/usr/bin/env python3
"""Checks what Grafana would only show as an empty panel: the dashboard's layout and sources.

The queries themselves run against a real Prometheus in tests/telemetry/prometheus_test.py.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy/grafana/dashboards/gemmd.json"
GRID_WIDTH = 24
AGGREGATION = re.compile(r"\b(?:sum|count|histogram_quantile)\b")


def data_sources(value):
    """The uid of every data source that a part of the dashboard names."""
    if isinstance(value, dict):
        if "uid" in value.get("datasource", {}):
            yield value["datasource"]["uid"]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from data_sources(each)


def cells(panel):
    """The grid cells that a panel covers."""
    at = panel["gridPos"]
    return {
        (x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    }


def is_by_instance(expr):
    """Whether a query has series of each server apart."""
    return not AGGREGATION.search(expr) or "by (instance" in expr


def panel_problems(panel):
    """What is wrong with one panel by itself."""
    title = panel.get("title")
    if not title:
        yield f"panel {panel['id']}: no title"
    if max(x for x, _ in cells(panel)) >= GRID_WIDTH:
        yield f"{title}: reaches past column {GRID_WIDTH}"
    if panel["type"] == "row":
        return
    if not panel.get("description"):
        yield f"{title}: no description"
    if not panel.get("targets"):
        yield f"{title}: no query"
    for target in panel.get("targets", []):
        if "datasource" not in target:
            yield f"{title}: a query without a data source: {target['expr']}"
        if "$instance" not in target["expr"]:
            yield f"{title}: ignores the variable $instance: {target['expr']}"
        if not target.get("legendFormat"):
            yield f"{title}: a query without a legend: {target['expr']}"
        elif is_by_instance(target["expr"]) and "{{instance}}" not in target["legendFormat"]:
            yield f"{title}: two servers look alike in the legend of {target['expr']}"


def problems(dashboard):
    """Everything that is wrong with the dashboard, a sentence each."""
    # Chosen on the dashboard: a uid of one Grafana is another's empty panel.
    variables = [variable for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"]
    if [variable["query"] for variable in variables] != ["prometheus"]:
        yield "no variable, or several, for the data source"
    named = {f"${{{variable['name']}}}" for variable in variables}
    for uid in sorted(set(data_sources(dashboard)) - named):
        yield f"names the data source {uid}"
    covered = {}
    ids = set()
    for panel in dashboard["panels"]:
        if panel["id"] in ids:
            yield f"{panel['title']}: id {panel['id']} is taken"
        ids.add(panel["id"])
        yield from panel_problems(panel)
        for cell in cells(panel):
            if cell in covered:
                yield f"{panel['title']}: overlaps {covered[cell]}"
                break
            covered[cell] = panel["title"]


def main():
    found = list(problems(json.loads(DASHBOARD.read_text())))
    for problem in found:
        print(f"{DASHBOARD.name}: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
