#!/usr/bin/env python3
"""Names the threads of a process that were busy while a command ran.

  busy_threads.py --pid 1234 -- gemmctl loadtest --duration 5s

Prints the share of a core that each thread took, the busiest first; threads of one name and under
a tenth of a core are added up. The exit code is the command's.
"""

import argparse
import collections
import os
import subprocess
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """CPU seconds so far by thread: {tid: (name, user, system)}."""
    seconds = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue  # it has ended
        name = text[text.index("(") + 1:text.rindex(")")]
        fields = text[text.rindex(")") + 2:].split()
        seconds[tid] = (name, int(fields[11]) / TICK, int(fields[12]) / TICK)
    return seconds


def print_busy(before, after, took, rows):
    busy, rest = [], collections.defaultdict(lambda: [0, 0.0, 0.0])
    for tid, (name, user, system) in after.items():
        _, user_before, system_before = before.get(tid, (name, 0.0, 0.0))
        user, system = (user - user_before) / took, (system - system_before) / took
        if user + system >= 0.1:
            busy.append((user + system, name, user, system))
        else:
            rest[name][0] += 1
            rest[name][1] += user
            rest[name][2] += system
    total = sum(row[0] for row in busy) + sum(user + system for _, user, system in rest.values())
    print(f"{'thread':24} {'core':>6} {'user':>6} {'system':>6}   (all: {total:.2f} cores, {took:.1f} s)")
    for share, name, user, system in sorted(busy, reverse=True)[:rows]:
        print(f"{name:24} {share:6.2f} {user:6.2f} {system:6.2f}")
    for name, (count, user, system) in sorted(rest.items(), key=lambda row: -sum(row[1][1:])):
        if user + system >= 0.05:
            print(f"{name + f' ({count})':24} {user + system:6.2f} {user:6.2f} {system:6.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--rows", type=int, default=12, help="threads to name")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = [word for word in arguments.command if word != "--"]
    if not command:
        parser.error("no command given after --")
    before, begin = thread_seconds(arguments.pid), time.monotonic()
    code = subprocess.run(command, check=False).returncode
    print_busy(before, thread_seconds(arguments.pid), time.monotonic() - begin, arguments.rows)
    return code


if __name__ == "__main__":
    sys.exit(main())
