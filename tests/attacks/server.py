"""The gemmd under attack: started with bounds that an attack reaches soon, and ended."""

import pathlib
import resource
import subprocess
import sys

_HERE = pathlib.Path(__file__).resolve().parent
# In a checkout, and in a bundle.
sys.path[:0] = [str(_HERE.parent / "conformance"), str(_HERE.parent)]

import with_server  # noqa: E402  (found by the line above)
from access import Access  # noqa: E402

START_SECONDS = 60
STOP_SECONDS = 40
LOG_LINES = 10
# So many, where the limit on open descriptors leaves room for them.
GUARDED_CONNECTIONS = 12_000
# The server under attack has production's defaults, but for the flags below; streams, quick ones
# too, are the defaults. A benchmark and a drain end within an attack's time, and the log has only
# what an attack may cause.
FLAGS = ["--benchmark-limit=4s", "--drain-timeout=10s", "--log-level=warning"]
# What attackers do not send or take is given up soon. Passed where the server knows them.
# Where the machine stands still for a second, jobs wait so long: what counts is verdict.py's bound.
SHORT_TIMEOUTS = ["--upload-timeout=2s", "--send-timeout=2s", "--payload-timeout=2s",
                  "--max-queue-wait=5s"]
# On the host device memory is RSS: it is filled once, so that it does not rise later. So there is
# less of it than the default.
HOST_FLAGS = ["--device-memory-bytes=1GiB", "--store-bytes=512MiB"]


def flags(program, devices, timeouts):
    text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    known = [flag for flag in timeouts if flag.split("=")[0] in text]
    return FLAGS + known + (HOST_FLAGS if devices.startswith("host") else [])


def _connections():
    """The flag for GUARDED_CONNECTIONS, or as many as gemmd allows: it reserves some."""
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 65_536)
    room = most - min(max(most // 4, 128), 1024)
    return f"--max-connections={min(GUARDED_CONNECTIONS, room)}"


class Server:
    """A gemmd on free loopback ports; `descriptors` bounds its own, where not 0.

    With a guard.Guard it has TLS and asks who calls.
    """

    def __init__(self, program, devices, log_path, descriptors=0, guard=None,
                 timeouts=SHORT_TIMEOUTS):
        self.address, self.metrics = with_server.free_addresses(2)
        self.log_path, self.guard = log_path, guard
        guarded = [] if guard is None else guard.flags()
        if guard is not None and not descriptors:
            guarded.append(_connections())

        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        with open(log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [program, f"--devices={devices}", f"--address={self.address}",
                 f"--metrics-address={self.metrics}", *flags(program, devices, timeouts),
                 *guarded],
                stdout=log, stderr=log, preexec_fn=limit)
        self.pid = self.process.pid
        if not with_server.wait_until(
                lambda: with_server.listens(self.address)
                and with_server.metrics_answer(self.metrics), self.process, START_SECONDS):
            self.stop()
            raise RuntimeError(f"gemmd did not start within {START_SECONDS} s: {self.log()}")

    def caller(self, name):
        """The access of a known caller."""
        return Access(self.address) if self.guard is None else self.guard.caller(name, self.address)

    def attackers(self, by):
        return [self.caller(by)] if self.guard is None else self.guard.attackers(by, self.address)

    def alive(self):
        return self.process.poll() is None

    def log(self):
        """The last lines that it wrote."""
        text = pathlib.Path(self.log_path).read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-LOG_LINES:])

    def stop(self):
        """Its exit code after SIGTERM; None where it had to be killed."""
        return with_server.stop(self.process, STOP_SECONDS)


class Remote:
    """A server that somebody else started and will end."""

    def __init__(self, address, metrics, pid):
        self.address, self.metrics, self.pid = address, metrics, pid

    def caller(self, _):
        return Access(self.address)

    def attackers(self, _):
        return [Access(self.address)]

    def alive(self):
        return pathlib.Path(f"/proc/{self.pid}").exists()

    def log(self):
        return ""

    def stop(self):
        return 0
