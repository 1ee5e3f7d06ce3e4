"""The device code of the catalogue's rows, read from object files. Needs no GPU.

    machine_code.py --rows KERNEL_SYMBOLS OBJECT...

prints a line a row and architecture: name, architecture, registers, bytes of static shared
memory.
"""

import argparse
import dataclasses
import json
import os
import re
import shutil
import site
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ARCHITECTURE = re.compile(r"^arch = sm_(\d+)")
# "        /*0070*/    @!P0 LDG.E.128 R4, [R2.64] ;"
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);")
SASS_FUNCTION = re.compile(r"^\s+Function : (\S+)")
USAGE_FUNCTION = re.compile(r"^\s+Function (\S+):$")
LAUNCH = re.compile(r"::Launch\w*<(.*)>\(gemm::Launch const&\)")
USAGE = re.compile(r"(REG|STACK|SHARED|LOCAL):(\d+)")


class ToolsMissing(Exception):
    """What is missing, and how to get it."""


@dataclasses.dataclass
class Function:
    """A kernel's code for one architecture."""

    symbol: str
    architecture: int
    instructions: list = dataclasses.field(default_factory=list)  # (opcode, operands)
    usage: dict = dataclasses.field(default_factory=dict)  # REG, STACK, SHARED, LOCAL

    def opcodes(self, pattern):
        """The opcodes that the pattern matches from their first character on."""
        compiled = re.compile(pattern)
        return [opcode for opcode, _ in self.instructions if compiled.match(opcode)]

    def text(self):
        """The whole code, to compare with another row's."""
        return "\n".join(f"{opcode} {operands}" for opcode, operands in self.instructions)

    def first(self, predicate):
        """Index of the first instruction that fits; None without one."""
        for index, (opcode, operands) in enumerate(self.instructions):
            if predicate(opcode, operands):
                return index
        return None


def find_tool(name):
    """On PATH, in the toolkit, or from PyPI's nvidia-cuda-* packages, which
    scripts/install-deps.sh puts into .venv. None: nowhere."""
    folders = ["/usr/local/cuda/bin"]
    roots = [*site.getsitepackages(), site.getusersitepackages()]
    roots += Path(__file__).parents[2].glob(".venv/lib/python3*/site-packages")
    for root in roots:
        folders += [str(folder) for folder in Path(root).glob("nvidia/*/bin")]
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(folders))


def tools():
    """The path of cuobjdump, and an environment in which it finds nvdisasm."""
    cuobjdump, nvdisasm = find_tool("cuobjdump"), find_tool("nvdisasm")
    if cuobjdump is None or nvdisasm is None:
        raise ToolsMissing(
            "cuobjdump and nvdisasm are needed: scripts/install-deps.sh test, or pip install "
            "nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"
        )
    return cuobjdump, {**os.environ, "NVDISASM_PATH": nvdisasm}


def dump(tool, option, path):
    """The lines that cuobjdump prints."""
    cuobjdump, environment = tool
    command = [cuobjdump, option, str(path)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield from process.stdout
        error = process.stderr.read()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {error.strip()}")


def read_object(tool, path):
    """The functions of one object file."""
    functions = {}
    architecture = 0

    def function(symbol):
        key = (symbol, architecture)
        return functions.setdefault(key, Function(symbol, architecture))

    current = None
    for line in dump(tool, "-sass", path):
        if match := INSTRUCTION.match(line):
            if current is not None:
                current.instructions.append((match[1], match[2].strip()))
        elif match := ARCHITECTURE.match(line):
            architecture = int(match[1])
        elif match := SASS_FUNCTION.match(line):
            current = function(match[1])
    for line in dump(tool, "-res-usage", path):
        if match := ARCHITECTURE.match(line):
            architecture = int(match[1])
        elif match := USAGE_FUNCTION.match(line):
            current = function(match[1])
        elif current is not None and (usage := USAGE.findall(line)):
            current.usage = {name: int(value) for name, value in usage}
    return list(functions.values())


def demangle(symbols):
    """By symbol, the name as C++ writes it."""
    result = subprocess.run(
        ["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True
    )
    return dict(zip(symbols, result.stdout.splitlines()))


def defined_symbols(program):
    """The symbols of a program, as (address, name)."""
    command = ["nm", "--defined-only", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    fields = [line.split() for line in result.stdout.splitlines()]
    names = demangle([name for _, _, name in fields])
    return [(int(address, 16), names[name]) for address, _, name in fields]


def variant_of(launch):
    """What "gemm::LaunchNaive<gemm::naive::Variant<0ul> >(gemm::Launch const&)" is a template over."""
    match = LAUNCH.search(launch)
    return match[1].strip() if match else ""


def find_rows(kernel_symbols):
    """The rows that the program prints, each with the "variant" that its code is named for."""
    printed = subprocess.run([kernel_symbols], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in printed.stdout.splitlines()]
    symbols = defined_symbols(kernel_symbols)
    main_address = next(address for address, name in symbols if name == "main")
    launches = {address - main_address: name for address, name in symbols if "gemm::Launch" in name}
    for row in rows:
        row["variant"] = variant_of(launches.get(row["launch"], ""))
    return rows


def read_rows(kernel_symbols, objects):
    """The catalogue's own rows, each with its "functions": its kernels, by architecture."""
    tool = tools()
    rows = find_rows(kernel_symbols)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        functions = [f for part in pool.map(lambda o: read_object(tool, o), objects) for f in part]
    names = demangle(sorted({f.symbol for f in functions}))
    for row in rows:
        variant = row["variant"]
        row["functions"] = [f for f in functions if variant and variant in names[f.symbol]]
    return rows


def largest_usage(row):
    """By architecture, the (registers, static shared memory) of the row's kernels: the most of any.
    Rows that read every layout have a kernel for each."""
    usage = {}
    for function in row["functions"]:
        found = (function.usage["REG"], function.usage["SHARED"])
        usage[function.architecture] = max(found, usage.get(function.architecture, found))
    return usage


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", required=True, metavar="KERNEL_SYMBOLS", help="that program")
    parser.add_argument("objects", nargs="+", help="object files or archives with device code")
    arguments = parser.parse_args()
    for row in read_rows(arguments.rows, arguments.objects):
        for architecture, (registers, shared) in largest_usage(row).items():
            print(row["name"], architecture, registers, shared)


if __name__ == "__main__":
    try:
        main()
    except ToolsMissing as missing:
        sys.exit(str(missing))
