"""How a client reaches the server's gRPC port, and what it shows there."""

import dataclasses
import functools
import json
import pathlib
import ssl


@dataclasses.dataclass(frozen=True)
class Access:
    address: str             # HOST:PORT
    who: str = "anybody"     # for reports
    ca: str = ""             # the server's CA, a file in PEM; empty: no TLS
    certificate: str = ""    # the client's, a file in PEM; empty: none is shown
    key: str = ""
    authorization: str = ""  # the metadata of this name; empty: none is shown
    # Whether the server must refuse each call,
    stranger: bool = False
    # and whether it must let a connection be at all.
    connects: bool = True

    def metadata(self):
        return (("authorization", self.authorization),) if self.authorization else ()

    @functools.cache  # noqa: B019  (there are a few of them, and they stay)
    def tls_context(self):
        """For a connection by hand."""
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key)
        context.set_alpn_protocols(["h2"])
        return context


def save(path, accesses):
    """For another process: what they show is in no command line."""
    text = json.dumps([dataclasses.asdict(access) for access in accesses])
    pathlib.Path(path).write_text(text, encoding="utf-8")
    return str(path)


def load(path):
    return [Access(**fields) for fields in
            json.loads(pathlib.Path(path).read_text(encoding="utf-8"))]
