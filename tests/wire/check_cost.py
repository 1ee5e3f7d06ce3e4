#!/usr/bin/env python3
"""What a check of a product costs on its device, beside the kernel's time.

  check_cost.py --gemmctl build/bin/gemmctl --address 127.0.0.1:50051

Operands are generated and results stay on the server, so nothing but the device counts. Times are
medians, of the server's own phases (ProductReport).
"""

import argparse
import json
import statistics
import subprocess
import sys


def measure(gemmctl, address, dtype, extent, runs):
    kernel, check = [], []
    for run in range(runs + 1):
        words = [gemmctl, "--address", address, "--json", "multiply",
                 f"random:{extent}x{extent}:{dtype}:1", f"random:{extent}x{extent}:{dtype}:2",
                 "--keep", "--ttl", "1ms", "--no-stream", "--check", "always"]
        report = json.loads(subprocess.run(words, check=True, capture_output=True,
                                           text=True).stdout)["report"]
        if report["check"]["result"] != "passed":
            raise SystemExit(f"{dtype} {extent}: {report['check']}")
        if run > 0:  # the first one loads code
            kernel.append(report["phase_seconds"]["kernel"])
            check.append(report["check_seconds"])
    return report["kernel"], statistics.median(kernel), statistics.median(check)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gemmctl", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--extents", default="2048,4096,8192")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--json", help="write the results here")
    arguments = parser.parse_args()
    results = []
    print(f"{'types':6} {'extent':>6}  {'kernel':34} {'kernel ms':>10} {'check ms':>9} {'cost':>7}")
    for dtype in ("f16", "f32"):
        for extent in map(int, arguments.extents.split(",")):
            name, kernel, check = measure(arguments.gemmctl, arguments.address, dtype, extent,
                                          arguments.runs)
            results.append({"dtype": dtype, "extent": extent, "kernel": name,
                            "kernel_seconds": kernel, "check_seconds": check})
            print(f"{dtype:6} {extent:6}  {name:34} {kernel * 1e3:10.3f} {check * 1e3:9.3f} "
                  f"{check / kernel:7.1%}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
