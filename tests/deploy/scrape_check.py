#!/usr/bin/env python3
"""Checks that what scrapes gemmd and what is asked of the scraped series fit, in deploy/.

Rules and dashboard ask for one job; Prometheus's configuration and the chart's ServiceMonitor give
their targets that label. The ServiceMonitor finds one service, its port, and shows a token where
the server asks for one. The chart has the rules and the dashboard as they are here. The examples
beside the chart scale what it renders, by series that the scrapes have. Needs promtool. Exits with
1 and a sentence for each difference.

    .venv/bin/python tests/deploy/scrape_check.py
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import chart
import yaml

DEPLOY = chart.ROOT / "deploy"


def read(path):
    return (DEPLOY / path).read_text(encoding="utf-8")


def found(pattern, text):
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"no match for {pattern!r}: has the file another form?")
    return match[1]


def jobs_asked_for():
    texts = [read("prometheus/alerts.yml"), read("grafana/dashboards/gemmd.json")]
    return {job for text in texts for job in re.findall(r'job=\\?"(\w+)', text)}


def check_prometheus():
    job = found(r"job_name: (\S+)", read("prometheus/prometheus.yml"))
    if jobs_asked_for() != {job}:
        yield f"prometheus.yml: the job is {job}; rules and dashboard ask for {jobs_asked_for()}"


def check_monitor(case):
    for monitor in chart.of_kind(case.objects, "ServiceMonitor"):
        [endpoint] = monitor["spec"]["endpoints"]
        selector = monitor["spec"]["selector"]["matchLabels"]
        services = [service for service in chart.of_kind(case.objects, "Service")
                    if selector.items() <= service["metadata"]["labels"].items()
                    and endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]]
        # Two would have every server twice; one address for all, servers in turn.
        if [service["spec"].get("clusterIP") for service in services] != ["None"]:
            yield f"ServiceMonitor: finds the services {[service['metadata']['name'] for service in services]}"
            continue
        job = services[0]["metadata"]["labels"].get(monitor["spec"]["jobLabel"])
        if jobs_asked_for() != {job}:
            yield f"ServiceMonitor: the job is {job}; rules and dashboard ask for {jobs_asked_for()}"
        token = {"name": case.merged["serviceMonitor"]["tokenSecret"], "key": "token"}
        wanted = {"credentials": token} if case.merged["callers"]["secret"] else None
        if endpoint.get("authorization") != wanted:
            yield f"ServiceMonitor: shows {endpoint.get('authorization')}, wanted is {wanted}"
        # A scrape by annotation has no token.
        if "prometheus.io/scrape" in json.dumps(case.objects):
            yield "prometheus.io/scrape has scrapes made that are answered with 401"


def check_rules(case):
    for rules in chart.of_kind(case.objects, "PrometheusRule"):
        base = case.merged["prometheusRule"]["runbookBaseUrl"]
        wanted = yaml.safe_load(read("prometheus/alerts.yml"))
        for rule in wanted["groups"][0]["rules"]:
            rule["annotations"]["runbook_url"] = base + rule["annotations"]["runbook_url"]
        if rules["spec"] != wanted:
            yield "PrometheusRule: the rules are not those of alerts.yml"
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            yaml.safe_dump(rules["spec"], file)
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True, text=True)
            if done.returncode:
                yield f"PrometheusRule: {done.stderr}"


def check_dashboard(case):
    for config in chart.of_kind(case.objects, "ConfigMap"):
        if config["data"] != {"gemmd.json": read("grafana/dashboards/gemmd.json").rstrip("\n")}:
            yield "ConfigMap: the dashboard is not gemmd.json"


def check_examples(case):
    """keda.yaml and prometheus-adapter.yaml, beside the release that they name."""
    keda = yaml.safe_load(read("helm/gemmd/examples/keda.yaml"))
    target = keda["spec"]["scaleTargetRef"]["name"]
    if target != chart.deployment(case.objects)["metadata"]["name"]:
        yield f"keda.yaml: scales {target}"
    [trigger] = keda["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    service = found(r'service="([\w-]+)"', query)
    if service not in [each["metadata"]["name"] for each in chart.of_kind(case.objects, "Service")]:
        yield f"keda.yaml: asks for the service {service}"
    [rule] = yaml.safe_load(read("helm/gemmd/examples/prometheus-adapter.yaml"))["rules"]["custom"]
    series = found(r"^(\w+)\{", rule["seriesQuery"])
    [scaler] = chart.of_kind(case.objects, "HorizontalPodAutoscaler")
    [metric] = scaler["spec"]["metrics"]
    if metric["pods"]["metric"]["name"] != series:
        yield f"prometheus-adapter.yaml: makes {series}, asked for is {metric['pods']['metric']['name']}"
    of_pods = rule["metricsQuery"].replace("<<.Series>>", series).replace(
        "<<.LabelMatchers>>", 'namespace="default",pod=~"a|b"').replace("<<.GroupBy>>", "pod")
    yield from wrong_answers({query: {"{}": 0.75}, of_pods: {'{pod="a"}': 0.5, '{pod="b"}': 0.25}})


def wrong_answers(wanted):
    """Of {query: {labels: value}}, where one pod has two devices, and another namespace a pod."""
    series = {("default", "a", "0"): 0.5, ("default", "a", "1"): 0.125, ("default", "b", "0"): 0.25,
              ("other", "a", "0"): 9}
    cases = {"evaluation_interval": "15s", "tests": [{
        "interval": "15s",
        "input_series": [{
            "series": f'gemmd_queue_wait_estimate_seconds{{namespace="{namespace}",pod="{pod}",'
                      f'device="host:{device}",service="gemmd-headless"}}',
            "values": f"{value}x20"} for (namespace, pod, device), value in series.items()],
        "promql_expr_test": [{
            "expr": query, "eval_time": "3m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
        } for query, samples in wanted.items()]}]}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "examples.yml"
        file.write_text(json.dumps(cases), encoding="utf-8")
        done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True)
        if done.returncode:
            yield f"the examples' queries: {done.stdout}{done.stderr}"


def main():
    cases = chart.cases()
    faults = list(check_prometheus())
    checks = check_monitor, check_rules, check_dashboard
    faults += [f"chart, {case.name}: {fault}" for case in cases for check in checks for fault in check(case)]
    whole = next(case for case in cases if case.name == "cuda, tls, whole")
    faults += check_examples(whole)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
