#!/usr/bin/env python3
"""Checks that whoever stops gemmd waits for it, in the files of deploy/.

The time between SIGTERM and the kill is at least --drain-delay, --drain-timeout and ten seconds
for the devices; and --drain-delay is longer than Kubernetes takes to see that the server is not
ready. Exits with 1 and a sentence for each difference.
"""

import pathlib
import re
import sys

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
TEARDOWN_SECONDS = 10


def number(pattern, text, default=None):
    found = re.search(pattern, text)
    if found:
        return int(found[1])
    if default is None:
        raise SystemExit(f"no match for {pattern!r}: has the file another form?")
    return default


def needed(text):
    """(--drain-delay, seconds that the whole end takes) of a command line in a file."""
    delay = number(r"--drain-delay=(\d+)s", text, 0)
    return delay, delay + number(r"--drain-timeout=(\d+)s", text) + TEARDOWN_SECONDS


def check_kubernetes(text):
    delay, least = needed(text)
    grace = number(r"terminationGracePeriodSeconds: (\d+)", text)
    if grace < least:
        yield f"kubernetes: terminationGracePeriodSeconds is {grace}; {least} needed"
    probe = re.search(r"readinessProbe:\n((?: {12,}.*\n)+)", text)[1]
    noticed = number(r"periodSeconds: (\d+)", probe) * number(r"failureThreshold: (\d+)", probe)
    if delay <= noticed:
        yield f"kubernetes: --drain-delay is {delay}s; the readiness probe takes up to {noticed} s"


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


def main():
    faults = [
        *check_kubernetes((DEPLOY / "kubernetes/gemmd.yaml").read_text(encoding="utf-8")),
        *check_compose((DEPLOY / "compose/compose.yaml").read_text(encoding="utf-8")),
    ]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
