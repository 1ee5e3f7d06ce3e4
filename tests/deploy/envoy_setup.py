"""What the test of deploy/envoy/ runs: certificates, two gemmds and the proxy before them."""

import hashlib
import pathlib
import re
import subprocess
import sys
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
        openssl("x509", "-req", "-in", into / "csr", "-CA", self.certificate, "-CAkey",
                self.folder / "ca.key", "-CAcreateserial", "-out", into / "tls.crt", "-days", 1,
                "-extfile", self.folder / "names")


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


def scaled(text):
    """The configuration with minutes as seconds: every time-out of a minute or more, divided by 60.

    Shorter ones bound how fast machines answer, which a test does not make faster, and pings
    are no time-out. The day that a connection may live becomes 8 s, so that it passes within
    the test.
    """
    def line(text):
        if "connection_keepalive" in text:
            return text
        return re.sub(r"\b(\d+)s\b",
                      lambda m: f"{int(m[1]) // 60}s" if int(m[1]) >= 60 else m[0], text)

    text = replaced(text, "max_connection_duration: 86400s", "max_connection_duration: 8s")
    return "\n".join(line(each) for each in text.split("\n"))


def replaced(text, old, new):
    if old not in text:
        raise RuntimeError(f"deploy/envoy/ no longer has {old!r}")
    return text.replace(old, new)


class Envoy(Process):
    """The proxy by the files of deploy/envoy/, before those servers."""

    def __init__(self, program, folder, authority, servers):
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
