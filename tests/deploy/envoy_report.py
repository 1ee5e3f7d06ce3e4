"""What envoy_test.py saw, for docs/results."""

import dataclasses
import datetime
import os
import pathlib
import subprocess

from envoy_setup import times


@dataclasses.dataclass
class Outcome:
    what: str
    seconds: float
    faults: list  # sentences of what is wrong


def _version(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True,
                          check=True).stdout.strip()


def _table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(arguments, outcomes, failed):
    """The page that --report names."""
    load, cores = os.getloadavg()[0], os.cpu_count()
    # Envoy's version line begins with the program's path.
    envoy = _version(arguments.envoy).split("version: ")[-1]
    checks = _table(["check", "s", "verdict"],
                    [[o.what, f"{o.seconds:.0f}", "FAILED" if o.faults else "held"]
                     for o in outcomes])
    rows = _table(["time", "configuration", "test", "why"],
                  [[f"`{name}`", value, short, why] for name, value, short, why in times()])
    pathlib.Path(arguments.report).write_text(f"""# The proxy's configuration, run

`tests/deploy/envoy_test.py --gemmd GEMMD --envoy .venv/bin/envoy --report docs/results/envoy.md`, on {datetime.date.today()}, a machine with {cores} cores whose load was {load:.0f} at the end. Written by that program.

| | |
| --- | --- |
| gemmd | {_version(arguments.gemmd)} |
| Envoy | {envoy} |

All checks but the last run at the same time, on the configuration of `deploy/envoy/` before two servers. {"Some failed." if failed else "All held."}

{checks}

## Times

What is minutes in the configuration is seconds in the test, 60 to 1; the age of a connection, a day, is 8 s. The others stay:

{rows}
""", encoding="utf-8")
