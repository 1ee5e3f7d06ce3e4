#!/usr/bin/env python3
"""Checks that whoever stops gemmd waits for it, in the files of deploy/.

The time between SIGTERM and the kill is at least --drain-delay, --drain-timeout and ten seconds
for the devices; Kubernetes counts the sleep of preStop, too. And --drain-delay is longer than
Kubernetes takes to see that the server is not ready. Exits with 1 and a sentence for each
difference.

    .venv/bin/python tests/deploy/grace_check.py
"""

import re
import sys

import chart

TEARDOWN_SECONDS = 10


def number(pattern, text, default=None):
    found = re.search(pattern, text)
    if found:
        return int(found[1])
    if default is None:
        raise SystemExit(f"no match for {pattern!r}: has the file another form?")
    return default


def needed(text):
    """(--drain-delay, seconds that the whole end takes) of a command line."""
    delay = number(r"--drain-delay=(\d+)s", text, 0)
    return delay, delay + number(r"--drain-timeout=(\d+)s", text) + TEARDOWN_SECONDS


def check_chart(case):
    spec = chart.deployment(case.objects)["spec"]["template"]["spec"]
    server = chart.container(spec)
    delay, least = needed(" ".join(server["args"]))
    sleep = server.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    if sleep != case.merged["drain"]["preStopSeconds"]:
        yield f"the sleep of preStop is {sleep} s"
    grace = spec["terminationGracePeriodSeconds"]
    if grace < sleep + least:
        yield f"terminationGracePeriodSeconds is {grace}; {sleep + least} needed"
    readiness, startup = server["readinessProbe"], server["startupProbe"]
    noticed = readiness["periodSeconds"] * readiness["failureThreshold"]
    if delay <= noticed:
        yield f"--drain-delay is {delay}s; the readiness probe takes up to {noticed} s"
    if startup["periodSeconds"] * startup["failureThreshold"] < case.merged["startupSeconds"]:
        yield f"the startup probe waits less than {case.merged['startupSeconds']} s"


def check_compose(text):
    grace = number(r"stop_grace_period: (\d+)s", text)
    commands = re.findall(r"command: \[(.*--drain-timeout.*)\]", text)
    servers = re.findall(r"image: gemmd:", text)
    if not servers or len(commands) != len(servers):
        yield f"compose: {len(commands)} commands with --drain-timeout of {len(servers)} gemmds"
    for command in commands:
        _, least = needed(command)
        if grace < least:
            yield f"compose: stop_grace_period is {grace}s; {least}s needed for {command}"


def check_unit(text, reference):
    """The service has gemmd's defaults."""
    grace = number(r"TimeoutStopSec=(\d+)s", text)
    delay, drain = (number(rf"`--{flag}` \| [^|]*\| `(\d+)s?`", reference) for flag in ("drain-delay", "drain-timeout"))
    least = delay + drain + TEARDOWN_SECONDS
    if grace < least:
        yield f"gemmd.service: TimeoutStopSec is {grace}s; {least}s needed"


def main():
    faults = [f"chart, {case.name}: {fault}" for case in chart.cases() for fault in check_chart(case)]
    faults += check_compose((chart.ROOT / "deploy/compose/compose.yaml").read_text(encoding="utf-8"))
    faults += check_unit((chart.ROOT / "deploy/systemd/gemmd.service").read_text(encoding="utf-8"),
                         (chart.ROOT / "docs/reference.md").read_text(encoding="utf-8"))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
