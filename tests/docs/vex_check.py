#!/usr/bin/env python3
"""Checks that deploy/vex answers each vulnerability of gRPC that the threat model names.

Statements have what OpenVEX asks for: a justification if the product is not affected, an
action if it is. Exits with 1 and a sentence for each fault.
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VEX = "deploy/vex/gemmd.openvex.json"
PAGE = "docs/operations/threat-model.md"
NEEDED = {"not_affected": ("justification", "impact_statement"), "affected": ("action_statement",)}


def main():
    statements = json.loads((ROOT / VEX).read_text(encoding="utf-8"))["statements"]
    answered = {s["vulnerability"]["name"] for s in statements}
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    # Those of HTTP/2 in general, by which other servers are known, are not gRPC's.
    named = set(re.findall(r"CVE-\d{4}-\d+", page)) - {"CVE-2024-27919", "CVE-2019-9511"}
    faults = [f"{VEX}: no statement for {cve}, which {PAGE} names" for cve in sorted(named - answered)]
    for s in statements:
        name, status = s["vulnerability"]["name"], s["status"]
        faults += [f"{VEX}: {name} is {status}, but has no {key}"
                   for key in NEEDED.get(status, ("known status",)) if not s.get(key)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
