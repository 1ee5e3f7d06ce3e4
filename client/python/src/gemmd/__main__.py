"""python -m gemmd: asks a server, multiplies two .npy files, or tests it against numpy."""

from __future__ import annotations

import argparse
import functools
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import __version__, connect, dtypes, npy
from .client import Client
from .errors import GemmdError, InvalidArgument
from .output import Output


def _add_shared(parser: argparse.ArgumentParser, **default: Any) -> None:
    """The options of every command."""
    group = parser.add_argument_group("options of every command")
    add = functools.partial(group.add_argument, **default)
    add(
        "--address",
        help="host:port or unix:PATH of the server (GEMMD_ADDRESS, else 127.0.0.1:50051)",
    )
    add("--ca", help="TLS: the CA that signed the server's certificate, in PEM")
    add("--cert", help="TLS: the certificate to show, in PEM")
    add("--key", help="TLS: its private key, in PEM")
    add("--server-name", help="TLS: the name in the server's certificate")
    add("--tls", action="store_true", help="TLS with the system's CAs")
    add("--token-file", help="a file with the token to show")
    add(
        "--token-without-tls", action="store_true",
        help="send the token without TLS, also to other machines",
    )  # fmt: skip
    add("--timeout", type=float, help="seconds for each call")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gemmd", description=__doc__)
    parser.add_argument("--version", action="version", version=f"gemmd-client {__version__}")
    _add_shared(parser)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="what the server is and does")
    kernels = commands.add_parser("kernels", help="the kernels of the catalogue")
    kernels.add_argument("family", nargs="?", default="")
    multiply = commands.add_parser("multiply", help="the product of two .npy files")
    multiply.add_argument("a")
    multiply.add_argument("b")
    multiply.add_argument(
        "-o", "--output", required=True, help="the .npy file to write; - is the standard output"
    )
    multiply.add_argument("--transpose-a", action="store_true")
    multiply.add_argument("--transpose-b", action="store_true")
    multiply.add_argument("--kernel")
    multiply.add_argument("--dtype", help="the type of the result, such as f32")
    multiply.add_argument(
        "--npy-dtype", metavar="DTYPE", choices=dtypes.SHORT_NAMES,
        help="the element type, where a .npy file does not say it: V1 (e4m3 and others; needed) "
        "or V2 (else bf16)",
    )  # fmt: skip
    commands.add_parser("selftest", help="products of several sizes and types against numpy")
    for command in commands.choices.values():
        # Also after the command. If left out there, the value before the command counts.
        _add_shared(command, default=argparse.SUPPRESS)
    return parser.parse_args(argv)


def _connect(args: argparse.Namespace) -> Client:
    return connect(
        args.address, ca=args.ca, cert=args.cert, key=args.key, tls=args.tls,
        server_name=args.server_name, token_file=args.token_file,
        token_without_tls=args.token_without_tls,
    )  # fmt: skip


def _vectors(args: argparse.Namespace, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> str:
    """What a reader of numpy may not expect: there, a vector is a row or a column as it fits."""
    return "".join(
        f"; {path} has one dimension and is read as 1 x {x.size}, which {option} makes {x.size} x 1"
        for path, x, option in ((args.a, a, "--transpose-a"), (args.b, b, "--transpose-b"))
        if x.ndim == 1
    )


def _multiply(args: argparse.Namespace) -> int:
    # The output first: a path that cannot be written costs no product.
    with Output(args.output) as output, _connect(args) as client:
        a, b = (npy.read(path, args.npy_dtype) for path in (args.a, args.b))
        # As gemmctl: (n,) is 1 x n, and () is 1 x 1.
        try:
            product, report = client.matmul(
                np.atleast_2d(a), np.atleast_2d(b), transpose_a=args.transpose_a, transpose_b=args.transpose_b, kernel=args.kernel,
                dtype=args.dtype, timeout=args.timeout, return_report=True,
            )  # fmt: skip
        except InvalidArgument as error:
            raise type(error)(str(error) + _vectors(args, a, b)) from None
        npy.write(output, np.asarray(product))
    print(report, file=sys.stderr if output.is_stdout else sys.stdout)
    return 0


def _selftest(client: Client) -> int:
    """Each product must be within the rounding of its type."""
    rng = np.random.default_rng(1)
    failed = 0
    print(f"{'m x n x k':<16} {'type':<8} {'way':<8} {'seconds':>8} {'error of bound':>15}")
    for m, n, k in ((1, 1, 1), (33, 17, 65), (300, 200, 100), (640, 512, 384)):
        for dtype in (np.float64, np.float32, np.float16):
            a = rng.standard_normal((m, k)).astype(dtype)
            b = rng.standard_normal((k, n)).astype(dtype)
            exact = a.astype(float) @ b.astype(float)
            size = np.abs(a.astype(float)) @ np.abs(b.astype(float))
            unit = float(np.finfo(dtype).eps)
            bound = (k + 8) * min(unit, 2.0**-23) * size + unit * np.abs(exact) + 1e-7 * unit
            for way in ("sent", "resident"):
                begun = time.monotonic()
                if way == "sent":
                    got = np.asarray(client.matmul(a, b))
                else:
                    with client.put(a) as left, client.put(b) as right, left @ right as product:
                        got = np.asarray(product.numpy())
                seconds = time.monotonic() - begun
                error = float((np.abs(got.astype(float) - exact) / bound).max())
                failed += not error <= 1
                print(f"{f'{m} x {n} x {k}':<16} {np.dtype(dtype).name:<8} {way:<8} "
                      f"{seconds:8.4f} {error:15.3f}")  # fmt: skip
    print("all products are right" if not failed else f"{failed} products are WRONG")
    return 3 if failed else 0


def _run(args: argparse.Namespace) -> int:
    if args.command == "multiply":
        return _multiply(args)
    with _connect(args) as client:
        if args.command == "selftest":
            return _selftest(client)
        if args.command == "info":
            print(client.info(timeout=args.timeout))
        else:
            print(client.kernels(args.family, timeout=args.timeout))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0, 1 for an error, 3 for a wrong product."""
    args = _arguments(argv)
    try:
        status = _run(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError as error:
        if error.filename is not None:  # of --output
            print(f"gemmd: {error}", file=sys.stderr)
            return 1
        # The reader of the standard output has seen enough: end as SIGPIPE would, without a word.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)
    except (GemmdError, OSError, ValueError) as error:
        print(f"gemmd: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
