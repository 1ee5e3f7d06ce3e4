#!/usr/bin/env python3
"""Starts gemmd, runs a command against it, stops it and says how both went.

  with_server.py --server build/bin/gemmd --devices host -- program --address {address}

In the command and in each --beside, {address} is gemmd's address, {metrics} that of its metrics,
{pid} its process, {beside1} a free address for the first --beside, {beside2} for the second, and
so on; each must listen on its own. The exit code is the command's; 1 where gemmd
did not start or did not end with 0 after SIGTERM, or where a --beside ended before, with anything
but 0; 77 (skipped) where --need names a Python module
that is not there.
"""

import argparse
import importlib.util
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the gemmd program")
    parser.add_argument("--devices", default="host", help="as gemmd takes it")
    parser.add_argument("--flag", action="append", default=[], metavar="=--NAME=VALUE",
                        help="one more flag for gemmd")
    parser.add_argument("--log", help="where gemmd's output goes; shown only where it fails if "
                        "left out")
    parser.add_argument("--beside", action="append", default=[],
                        help="a program to run beside gemmd, as one string")
    parser.add_argument("--need", default="", help="comma-separated Python modules")
    parser.add_argument("--start-seconds", type=float, default=60)
    parser.add_argument("--stop-seconds", type=float, default=60)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    arguments.command = [c for c in arguments.command if c != "--"]
    if not arguments.command:
        parser.error("no command given after --")
    return arguments


def missing_modules(names):
    missing = []
    for name in filter(None, names.split(",")):
        try:
            if importlib.util.find_spec(name) is None:
                missing.append(name)
        except ModuleNotFoundError:
            missing.append(name)
    return missing


def free_addresses(count):
    """Loopback addresses that nothing listens on. All are held until all are known."""
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for s in sockets:
        s.close()
    return addresses


def listens(address):
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
        return True
    except OSError:
        return False


def wait_until(ready, process, seconds):
    """True once `ready()`; False where the process ends or the time does."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        if ready():
            return True
        time.sleep(0.05)
    return False


def metrics_answer(address):
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def stop(process, seconds):
    """The exit code after SIGTERM; None where it had to be killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def show_log(path):
    with open(path, encoding="utf-8", errors="replace") as log:
        sys.stderr.write("".join(log.readlines()[-40:]))


def main():
    arguments = parse_arguments()
    missing = missing_modules(arguments.need)
    if missing:
        print(f"skipped: {sys.executable} has no module {', '.join(missing)}")
        return 77
    address, metrics, *beside_addresses = free_addresses(2 + len(arguments.beside))
    log_path = arguments.log or f"/tmp/gemmd-{address.replace(':', '-')}.log"
    beside = []
    with open(log_path, "w", encoding="utf-8") as log:
        server = subprocess.Popen(
            [arguments.server, f"--devices={arguments.devices}", f"--address={address}",
             f"--metrics-address={metrics}", *arguments.flag], stdout=log, stderr=log)
        words = {"address": address, "metrics": metrics, "pid": str(server.pid)}
        words |= {f"beside{i + 1}": other for i, other in enumerate(beside_addresses)}

        def fill(text):
            for name, value in words.items():
                text = text.replace("{" + name + "}", value)
            return text

        try:
            if not wait_until(lambda: listens(address) and metrics_answer(metrics), server,
                              arguments.start_seconds):
                print(f"gemmd did not start within {arguments.start_seconds:g} s", file=sys.stderr)
                log.flush()
                show_log(log_path)
                return 1
            for command, other in zip(arguments.beside, beside_addresses):
                beside.append(subprocess.Popen([fill(w) for w in shlex.split(command)],
                                               stdout=log, stderr=log))
                if not wait_until(lambda at=other: listens(at), beside[-1],
                                  arguments.start_seconds):
                    print(f"'{command}' did not start", file=sys.stderr)
                    log.flush()
                    show_log(log_path)
                    return 1
            code = subprocess.run([fill(w) for w in arguments.command], check=False).returncode
        finally:
            # Those that ended by themselves.
            fell = [(command, process.returncode)
                    for command, process in zip(arguments.beside, beside) if process.poll()]
            for process in beside:
                stop(process, 5)
            ended = stop(server, arguments.stop_seconds)
    if ended != 0:
        print(f"gemmd ended with {ended} after SIGTERM, not 0", file=sys.stderr)
        code = code or 1
    for command, status in fell:
        print(f"'{command}' ended with {status} before the command did", file=sys.stderr)
        code = code or 1
    if code:
        show_log(log_path)
    return code


if __name__ == "__main__":
    sys.exit(main())
