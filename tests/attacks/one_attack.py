#!/usr/bin/env python3
"""Runs one attack in a process of its own, so that its end lets go of all it held.

  one_attack.py NAME --access FILE --metrics HOST:PORT --stubs FOLDER --seconds N --seed N

FILE, of access.save, has the server's address and what the attackers show there. Strangers first
try every method: one that answers them is a fault. Prints one line of JSON:
{"counts": {...}, "faults": [...], "mistakes": [...]}, the last of the attack itself. For servers on loopback alone.
"""

import argparse
import ipaddress
import json
import logging
import os
import sys
import time

import access
import catalogue
import sockets
import strangers
import wire
from attack import Outcome, Target


def loopback(address):
    """HOST:PORT, where HOST is a loopback address in digits."""
    host, _, port = address.rpartition(":")
    if not ipaddress.ip_address(host).is_loopback or not port.isdigit():
        raise argparse.ArgumentTypeError(f"'{address}' is no loopback address with a port")
    return address


class RequestErrors(logging.Handler):
    """An error in an iterator of requests: gRPC logs it, and ends the call as if it were done."""

    def __init__(self, outcome):
        super().__init__(logging.ERROR)
        self._outcome = outcome

    def emit(self, record):
        if record.exc_info and record.exc_info[1]:
            self._outcome.ended(record.exc_info[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=catalogue.BY_NAME)
    parser.add_argument("--access", required=True)
    parser.add_argument("--metrics", type=loopback, required=True)
    parser.add_argument("--stubs", default="")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    attackers = access.load(arguments.access)
    for attacker in attackers:
        loopback(attacker.address)
    wire.load_stubs(arguments.stubs)
    sockets.raise_own_limit()
    outcome = Outcome()
    logging.getLogger("grpc").addHandler(RequestErrors(outcome))
    try:
        strangers.check_refused([a for a in attackers if a.stranger], outcome)
        target = Target(attackers, arguments.metrics, time.monotonic() + arguments.seconds,
                        arguments.seed)
        catalogue.BY_NAME[arguments.name].run(target, outcome)
    except Exception as error:  # noqa: BLE001  (what ends an attack is told, not raised)
        outcome.ended(error)
    print(json.dumps({"counts": outcome.counts, "faults": outcome.faults,
                      "mistakes": outcome.mistakes}), flush=True)
    sys.stdout.flush()
    os._exit(0)  # without waiting for calls that nobody reads


if __name__ == "__main__":
    main()
