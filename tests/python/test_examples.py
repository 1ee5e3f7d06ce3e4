"""The examples run, and their own checks pass."""

import importlib.util
import pathlib

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "client/python/examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_pca(server, capsys):
    assert load("digits_pca").main([server.address]) == 0
    assert "16 axes hold 8" in capsys.readouterr().out


def test_compare_kernels(server, capsys):
    arguments = [server.address, "--size", "16", "--size", "32", "--kernel", "host_*"]
    assert load("compare_kernels").main(arguments) == 0
    assert "host_openblas" in capsys.readouterr().out


def test_pictures(server, tmp_path):
    pytest.importorskip("matplotlib")
    pca, kernels = tmp_path / "pca.svg", tmp_path / "kernels.svg"
    assert load("digits_pca").main([server.address, "--picture", str(pca)]) == 0
    arguments = [server.address, "--size", "16", "--kernel", "host_*", "--picture", str(kernels)]
    assert load("compare_kernels").main(arguments) == 0
    assert "<svg" in pca.read_text() and "<svg" in kernels.read_text()
