"""Generates the contract's Python code when the package is built."""

import pathlib
import shutil
import sys
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE / "src" / "gemmd" / "_contract"


def generate(target: pathlib.Path = TARGET) -> None:
    """Writes gemm_pb2.py and its types into `target`."""
    import grpc_tools
    from grpc_tools import protoc

    sys.path.insert(0, str(HERE))
    from project_version import outside

    proto = outside("proto/gemm/v1/gemm.proto")
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as out:
        status = protoc.main(
            [
                "protoc",
                f"-I{proto.parents[2]}",
                f"-I{well_known}",
                f"--python_out={out}",
                f"--pyi_out={out}",
                str(proto),
            ]
        )
        if status != 0:
            raise RuntimeError(f"protoc ended with status {status} on {proto}")
        target.mkdir(parents=True, exist_ok=True)
        for name in ("gemm_pb2.py", "gemm_pb2.pyi"):
            shutil.copyfile(pathlib.Path(out) / "gemm" / "v1" / name, target / name)
        (target / "__init__.py").write_text('"""Generated from gemm.proto at build."""\n')


class ContractHook(BuildHookInterface):  # type: ignore[type-arg]
    """hatchling's hook: the generated files are artifacts of the wheel."""

    def initialize(self, version: str, build_data: dict) -> None:  # type: ignore[type-arg]
        if self.target_name == "wheel":
            generate()


if __name__ == "__main__":
    generate()
