"""What the package has by its name alone, with and without torch."""

import subprocess
import sys


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_asyncio_needs_no_import_of_its_own():
    done = run(
        "import gemmd, sys; assert 'torch' not in sys.modules; print(gemmd.aio.connect.__name__)"
    )
    assert done.stdout == "connect\n", done.stderr


def test_layers_without_torch_say_what_they_need():
    done = run("import sys; sys.modules['torch'] = None; import gemmd; print('here'); gemmd.nn")
    assert done.stdout == "here\n", done.stderr
    assert "ModuleNotFoundError" in done.stderr and "torch" in done.stderr.splitlines()[-1]


def test_its_directory_is_what_it_exports():
    done = run(
        "import gemmd; print(dir(gemmd) == gemmd.__all__ == sorted(gemmd.__all__));"
        "import sys; from gemmd import *; print(aio.connect.__name__, 'torch' in sys.modules)"
    )
    assert done.stdout == "True\nconnect False\n", done.stderr


def test_a_name_that_there_is_not():
    done = run("import gemmd; gemmd.bogus")
    assert done.stderr.endswith("AttributeError: module 'gemmd' has no attribute 'bogus'\n")
