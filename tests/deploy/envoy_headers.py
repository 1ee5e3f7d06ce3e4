"""What of a caller's headers the proxy of deploy/envoy/ passes on."""

import concurrent.futures

import grpc
from envoy_scene import CALL_SECONDS, Caller, seen
from envoy_setup import TOKEN

import wire

HEALTH = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"
INFO = "/gemm.v1.GemmService/GetServerInfo"
CLAIM = 'Hash=00;Subject="CN=alice"'


class Mirror(grpc.GenericRpcHandler):
    """A server in gemmd's place that keeps the metadata of each call, and answers nothing."""

    def __init__(self, folder, authority):
        authority.issue(folder)
        self.calls = []  # (method, metadata)
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((self,))
        credentials = grpc.ssl_server_credentials(
            [((folder / "tls.key").read_bytes(), (folder / "tls.crt").read_bytes())])
        self.address = f"127.0.0.1:{self._server.add_secure_port('127.0.0.1:0', credentials)}"
        self._server.start()

    def service(self, details):
        self.calls.append((details.method, list(details.invocation_metadata)))
        answer = SERVING if details.method == HEALTH else b""
        return grpc.unary_unary_rpc_method_handler(lambda request, context: answer)

    def stop(self):
        self._server.stop(None)


def check_headers(scene):
    """A token reaches gemmd; what a client says of certificates, and binary headers, do not."""
    mirror = Mirror(scene.folder / "mirror", scene.ca)
    try:
        proxy = scene.another_envoy("before-mirror", [mirror])
        try:
            caller = Caller(proxy.address, scene.roots)
            caller.stub.GetServerInfo(
                wire.messages().GetServerInfoRequest(), timeout=CALL_SECONDS,
                metadata=[*caller.metadata, ("x-forwarded-client-cert", CLAIM),
                          ("claim-bin", b"alice"), ("kept", "yes")])
        finally:
            proxy.stop()
    finally:
        mirror.stop()
    [got] = [dict(metadata) for method, metadata in mirror.calls if method == INFO]
    seen(got.get("authorization") == f"Bearer {TOKEN}", "the token did not reach gemmd unchanged")
    seen(got.get("kept") == "yes", "a header of the caller's own did not reach gemmd")
    for name in ("x-forwarded-client-cert", "claim-bin"):
        seen(name not in got, f"the client's {name} reached gemmd: {got.get(name)}")
