"""What the test of deploy/envoy/ runs: certificates, two gemmds and the proxy before them."""

import hashlib
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance"))

import with_server  # noqa: E402  (found by the line above)

TOKEN = "a-token-of-the-test"
START_SECONDS = 60
DRAIN_DELAY_SECONDS = 8


def http_get(url):
    """The answer's text; empty where there is none."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, OSError):
        return ""


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A CA with certificates for localhost."""

    def __init__(self, folder):
        self.folder = folder
        self._issuing = threading.Lock()  # one serial number after the other
        folder.mkdir(parents=True)
        self.certificate = folder / "ca.crt"
        openssl("req", "-x509", *self._key(folder / "ca.key"), "-out", self.certificate,
                "-subj", "/CN=test CA", "-days", 1)
        (folder / "names").write_text("subjectAltName=DNS:localhost\n", encoding="utf-8")

    @staticmethod
    def _key(path):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]

    def issue(self, into):
        """tls.crt and tls.key in that folder."""
        into.mkdir(parents=True)
        openssl("req", *self._key(into / "tls.key"), "-out", into / "csr", "-subj", "/CN=test")
        with self._issuing:
            openssl("x509", "-req", "-in", into / "csr", "-CA", self.certificate, "-CAkey",
                    self.folder / "ca.key", "-CAcreateserial", "-out", into / "tls.crt",
                    "-days", 1, "-extfile", self.folder / "names")


class Process:
    """A program that runs until it is stopped, with its output in a file."""

    def __init__(self, command, log):
        self.log_path = log
        with open(log, "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def await_start(self, ready):
        if not with_server.wait_until(ready, self.process, START_SECONDS):
            self.stop()
            raise RuntimeError(f"not ready within {START_SECONDS} s:\n{self.log()}")

    def log(self):
        text = pathlib.Path(self.log_path).read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-15:])

    def stop(self, seconds=60):
        """Its exit code after SIGTERM; None where it had to be killed."""
        return with_server.stop(self.process, seconds)


class Gemmd(Process):
    def __init__(self, program, folder, authority):
        authority.issue(folder)
        (folder / "callers").write_text(
            f"alice all sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n", encoding="utf-8")
        self.address, self.metrics = with_server.free_addresses(2)
        super().__init__(
            [program, "--devices=host", "--device-memory-bytes=256MiB",
             f"--address={self.address}", f"--metrics-address={self.metrics}",
             f"--tls-certificate={folder / 'tls.crt'}", f"--tls-key={folder / 'tls.key'}",
             f"--callers-file={folder / 'callers'}", "--health-access=anyone",
             f"--drain-delay={DRAIN_DELAY_SECONDS}s", "--drain-timeout=60s"], folder / "log")
        self.await_start(lambda: with_server.metrics_answer(self.metrics))

    def metric(self, series):
        text = http_get(f"http://{self.metrics}/metrics")
        found = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
        return float(found.group(1)) if found else -1


# The times of the configuration that a test shortens, 60 to 1,
SCALED = ("idle_timeout", "stream_idle_timeout")
# to a value of its own, so that it passes within the test,
OWN = {"max_connection_duration": "8s"}
# and those that it leaves as they are.
KEPT = {
    "listener_filters_timeout": "a test waits for it: a connection that says nothing",
    "transport_socket_connect_timeout": "a handshake takes as long in a test as elsewhere",
    "request_headers_timeout": "headers take as long in a test as elsewhere",
    "connect_timeout": "a connection to gemmd takes as long in a test as elsewhere",
    "drain_timeout": "shorter than the age of a connection in a test",
    "no_traffic_interval": "a test waits for it: a server that drains",
    "interval": "of health checks, as above; of pings, which are no time-out, and gemmd bounds "
                "how often they come",
    "timeout": "of a health check and of a ping, whose answers take as long in a test as "
               "elsewhere; of a call: 0, none",
    "grpc_timeout_header_max": "0: none",
    "refresh_interval": "how often memory and connections are looked at",
    "fill_interval": "a rate of new connections",
}
TIME = re.compile(r"(\w+): ([\d.]+)s\b")


def test_time(name, seconds):
    """A time of the configuration as the test has it."""
    if name in OWN:
        return OWN[name]
    if name in SCALED:
        return f"{int(seconds) // 60}s"
    if name not in KEPT:
        raise RuntimeError(f"deploy/envoy/ has a time {name}: SCALED, OWN or KEPT has to have it")
    return f"{seconds}s"


def without_comments(text):
    return re.sub(r"(^|\s)#.*", "", text)


def scaled(text):
    """The configuration with the times of a test."""
    return TIME.sub(lambda m: f"{m[1]}: {test_time(m[1], m[2])}", without_comments(text))


def times():
    """(name, value of the configuration, value of the test, why), each once."""
    text = without_comments((ROOT / "deploy/envoy/envoy.yaml").read_text(encoding="utf-8"))
    for name, seconds in dict.fromkeys(TIME.findall(text)):
        yield name, f"{seconds}s", test_time(name, seconds), KEPT.get(name, "shortened")


def replaced(text, old, new):
    if old not in text:
        raise RuntimeError(f"deploy/envoy/ no longer has {old!r}")
    return text.replace(old, new)


class Envoy(Process):
    """The proxy by the files of deploy/envoy/, before those servers."""

    def __init__(self, program, folder, authority, servers):
        self.folder = folder
        self.address, self.admin = with_server.free_addresses(2)
        authority.issue(folder / "tls")
        (folder / "gemmd-ca.crt").write_bytes(authority.certificate.read_bytes())
        source = ROOT / "deploy/envoy"
        for name in ("envoy.yaml", "tls.yaml"):
            text = replaced((source / name).read_text(encoding="utf-8"), "/etc/envoy", str(folder))
            if name == "envoy.yaml":
                text = self._placed(scaled(text), servers)
            (folder / name).write_text(text, encoding="utf-8")
        super().__init__([program, "-c", folder / "envoy.yaml", "--log-level", "warning",
                          "--concurrency", "2", "--use-dynamic-base-id"], folder / "log")
        # Ready, and with both servers found healthy.
        self.await_start(lambda: self.healthy() == len(servers))

    def _placed(self, text, servers):
        """On free ports of loopback."""
        port = {name: address.split(":")[1]
                for name, address in (("own", self.address), ("admin", self.admin))}
        text = replaced(text, "{address: 0.0.0.0, port_value: 50050}",
                        f"{{address: 127.0.0.1, port_value: {port['own']}}}")
        text = replaced(text, "port_value: 9901", f"port_value: {port['admin']}")
        endpoint = re.search(r"^ +- endpoint:\n(?: +.*\n)+?.*port_value: 50051}\n", text,
                             re.MULTILINE)[0]
        return text.replace(endpoint, "".join(
            endpoint.replace("50051", server.address.split(":")[1]) for server in servers))

    def stat(self, name):
        answer = http_get(f"http://{self.admin}/stats?filter=^{name}$")
        found = re.search(r": (\d+)$", answer, re.MULTILINE)
        return int(found.group(1)) if found else 0

    def healthy(self):
        return self.stat("cluster.gemmd.membership_healthy")


def await_true(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
