"""What floods, and headers that are too long or broken, do to the proxy of deploy/envoy/."""

import socket
import ssl

import grpc
from envoy_scene import CALL_SECONDS, Caller, seen

import http2
import wire

FRAMES = 5000  # of a flood, at once: the answers to them are more than the proxy lets wait


def closed(connection, send):
    """Whether the other side closes while `send` is called again and again."""
    connection.settimeout(CALL_SECONDS)
    try:
        for _ in range(2000):
            send()
        while connection.recv(65536):
            pass
        return True
    except (ConnectionError, ssl.SSLError, BrokenPipeError):
        return True
    except TimeoutError:
        return False


def check_rapid_reset(scene):
    """CVE-2023-44487: calls that are reset as soon as they begin."""
    caller, connection = scene.caller(), scene.raw()
    stream = iter(range(1, 1 << 30, 2))
    fields = http2.request_fields(scene.access, "ListKernels")

    def send():
        number = next(stream)
        connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS, number, fields) +
                           http2.rst_stream(number))

    seen(closed(connection, send), "a connection that resets all of its calls was not closed")
    # It would be closed for its age, too.
    seen(scene.envoy.stat("http.callers.downstream_rq_too_many_premature_resets") == 1,
         "a connection that resets all of its calls was not closed for that")
    caller.multiply()


def check_continuation_flood(scene):
    """CVE-2024-27919 and its like: headers without an end."""
    caller, connection = scene.caller(), scene.raw()
    connection.sendall(http2.frame(http2.HEADERS, 0, 1, http2.request_fields(scene.access, "ListKernels")))
    block = b"".join(http2.field(b"x-%d" % i, b"y" * 100) for i in range(100))
    seen(closed(connection, lambda: connection.sendall(
        http2.frame(http2.CONTINUATION, 0, 1, block))), "headers without an end were read on")
    caller.multiply()


def check_frame_floods(scene):
    """CVE-2019-9512, 9515 and 9518: floods of pings, settings and empty data are cut off."""
    # A proxy of its own, whose figures tell why it closed. Envoy counts some of the floods, and
    # leaves others to its HTTP/2 library, by how many frames it happens to read at once.
    proxy = scene.another_envoy("flooded", scene.servers)
    try:
        fields = http2.request_fields(scene.access, "ListKernels")
        floods = (("PING", b"", http2.frame(http2.PING, payload=b"12345678")),
                  ("SETTINGS", b"", http2.settings({http2.HEADER_TABLE_SIZE: 0})),
                  ("empty DATA", http2.frame(http2.HEADERS, http2.END_HEADERS, 1, fields),
                   http2.frame(http2.DATA, 0, 1)))
        for kind, first, each in floods:
            connection = scene.raw(proxy)
            connection.sendall(first)
            seen(closed(connection, lambda: connection.sendall(each * FRAMES)),  # noqa: B023
                 f"a connection that floods with {kind} frames was not closed")
            for other in ("max_duration_reached", "idle_timeout"):
                seen(proxy.stat(f"http.callers.downstream_cx_{other}") == 0,
                     f"a connection that floods with {kind} frames was closed for {other} alone")
        Caller(proxy.address, scene.roots).multiply()
    finally:
        proxy.stop()


def check_broken_binary_headers(scene):
    """CVE-2024-7246: headers that gemmd cannot decode leave those of others alone."""
    caller, connection = scene.caller(), scene.raw()
    connection.settimeout(CALL_SECONDS)
    for i in range(100):
        broken = ((b"x-%d-bin" % i, b"not base64 !" * 3), (b"x-%d" % i, b"y"))
        fields = http2.request_fields(scene.access, "ListKernels", broken)
        connection.sendall(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM,
                                       2 * i + 1, fields))
        seen(caller.info().caller.name == "alice", "the token's caller is not alice")


def check_long_headers(scene):
    """No more than 8 KiB, and no more than 64 of them."""
    caller = scene.caller()
    for extra in ([("long", "x" * 9000)], [(f"many-{i}", "x") for i in range(80)]):
        try:
            caller.stub.GetServerInfo(wire.messages().GetServerInfoRequest(),
                                      metadata=caller.metadata + extra, timeout=CALL_SECONDS)
            raise AssertionError(f"{len(extra)} headers of {len(extra[0][1])} bytes were taken")
        except grpc.RpcError as error:
            # The proxy's reset of the call; gemmd's own refusal is RESOURCE_EXHAUSTED.
            seen(error.code() == grpc.StatusCode.INTERNAL,
                 f"{len(extra)} headers of {len(extra[0][1])} bytes ended with {error.code()}")
    caller.multiply()


def check_silent_connections(scene):
    """One that never begins its handshake is closed: in 10 s, which are not scaled."""
    host, port = scene.envoy.address.split(":")
    with socket.create_connection((host, int(port)), timeout=CALL_SECONDS) as silent:
        seen(silent.recv(1) == b"", "a silent connection got bytes")


CHECKS = (check_rapid_reset, check_continuation_flood, check_frame_floods,
          check_broken_binary_headers, check_long_headers, check_silent_connections)
