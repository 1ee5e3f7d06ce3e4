#!/usr/bin/env python3
"""Checks that what scrapes gemmd and what is asked of the scraped series fit, in deploy/.

Rules and dashboard ask for one job; Prometheus's configuration and the PodMonitor give their
targets that label. The PodMonitor finds the pods of the manifest, their port, and the token that
the manifest's steps make. Exits with 1 and a sentence for each difference.
"""

import pathlib
import re
import sys

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
LABEL = "app.kubernetes.io/name"


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


def check_jobs(manifest, monitor):
    given = {
        "prometheus.yml": found(r"job_name: (\S+)", read("prometheus/prometheus.yml")),
        # The value that the pods have of the label that jobLabel names.
        "podmonitor.yaml": found(rf"{found(r'jobLabel: (.+)', monitor)}: (\S+)", manifest),
    }
    for name, job in given.items():
        if jobs_asked_for() != {job}:
            yield f"{name}: the job is {job}; rules and dashboard ask for {jobs_asked_for()}"


def check_pods(manifest, monitor):
    if found(rf"matchLabels:\n\s+{LABEL}: (\S+)", monitor) != found(rf"{LABEL}: (\S+)", manifest):
        yield f"podmonitor.yaml: selects another {LABEL} than the pods have"
    ports = set(re.findall(r"- name: (\w+)\n\s+containerPort", manifest))
    for port in (found(r"- port: (\w+)", monitor), *re.findall(r"port: ([a-z]+)\}", manifest)):
        if port not in ports:
            yield f"kubernetes: the pods have the ports {sorted(ports)}, not {port}"


def check_token(manifest, monitor):
    made = re.findall(r"gemmctl token \S+ --roles metrics .*?>(\S+\.token)", manifest)
    taken = found(r"--from-file=token=(\S+)", monitor)
    if taken not in made:
        yield f"podmonitor.yaml: {taken} is no token with the role metrics: gemmd.yaml makes {made}"
    secret = found(r"create secret generic (\S+) --from-file=token", monitor)
    if f"credentials: {{name: {secret}, key: token}}" not in monitor:
        yield f"podmonitor.yaml: the credentials are not those of the secret {secret}"
    # A scrape by annotation has no token.
    if "prometheus.io/scrape" in manifest:
        yield "gemmd.yaml: prometheus.io/scrape has scrapes made that are answered with 401"


def main():
    files = read("kubernetes/gemmd.yaml"), read("kubernetes/podmonitor.yaml")
    faults = [*check_jobs(*files), *check_pods(*files), *check_token(*files)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
