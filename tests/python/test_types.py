# SPDX-License-Identifier: Apache-2.0
"""Editors and mypy know the parameters and results of the package's functions."""

import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PACKAGE = os.path.join(ROOT, "bindings", "python", "horo")
MODULES = ("horo", "horo.data", "horo.elastic", "horo.numpy", "horo.torch", "horo.torch.distributed", "horo.torch.elastic")
# Following torch's stubs would take most of a minute. Horo's own code is checked without them.
QUICK = "[mypy-torch.*,numpy.*,cloudpickle.*,tensorflow.*,keras.*,jax.*,jaxlib.*,optax.*,mxnet.*]\nfollow_imports = skip\nignore_missing_imports = True\n"

USER = """
import horo
import horo.data
import horo.torch as hvd
import torch

hvd.init(process_sets=[[0, 1], hvd.ProcessSet(range(2))])
rank: int = hvd.rank()
handle: int = hvd.allreduce_async(torch.ones(3), op=hvd.Sum, name="x")
done: bool = hvd.poll(handle)
rows = hvd.allgather(torch.ones(3))
model = torch.nn.Linear(2, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.1),
    named_parameters=model.named_parameters(),
    compression=hvd.Compression.fp16,
    groups=2,
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
everything: list[int] = horo.run(lambda: 1, num_proc=2)
state = hvd.elastic.TorchState(model, optimizer, epoch=0)
state.save_to("files", every=10, keep=2)
state.commit()
hvd.elastic.run(lambda given: given.epoch)(state)
"""

WRONG = (
    ('hvd.broadcast_parameters({}, root_rank="zero")', "root_rank"),
    ("hvd.rank().upper()", "upper"),
    ('hvd.init(process_sets=7)', "process_sets"),
    ("hvd.allreduce(torch.ones(1), prescale=2.0)", "prescale"),
    ("hvd.alreduce(torch.ones(1))", "alreduce"),
    ("hvd.poll(None)", "poll"),
    ('horo.run(abs, num_proc="two")', "num_proc"),
)


def functions(module):
    """(name, function) of a module's public functions and methods."""
    for name in module.__all__:
        one = getattr(module, name)
        if inspect.isclass(one) and one.__module__.startswith("horo") and not issubclass(one, Exception):
            for method, value in vars(one).items():
                value = value.fget if isinstance(value, property) else value
                if inspect.isfunction(value) and not method.startswith("_horo"):
                    if not method.startswith("_") or method == "__init__":
                        yield f"{name}.{method}", value
        elif inspect.isfunction(one) or inspect.ismethod(one):
            yield name, one


@pytest.mark.parametrize("name", MODULES)
def test_all_public_functions_are_annotated(name):
    module, seen = importlib.import_module(name), 0
    for called, function in functions(module):
        signature = inspect.signature(function)
        lacking = [
            one.name
            for one in signature.parameters.values()
            if one.annotation is one.empty and one.name != "self"
        ]
        assert not lacking, (called, lacking)
        assert signature.return_annotation is not signature.empty, called
        assert inspect.getdoc(function) or called.endswith("__init__"), called
        seen += 1
    assert seen, name


def test_marked_as_typed():
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))


def mypy(tmp_path, *arguments):
    """The output of mypy. Skips the test when mypy is not installed."""
    for command in ([sys.executable, "-m", "mypy"], [shutil.which("mypy") or "mypy"]):
        try:
            found = subprocess.run([*command, "--version"], capture_output=True, check=False)
        except OSError:
            continue
        if found.returncode == 0:
            break
    else:
        pytest.skip("no mypy: scripts/packages --install lint")
    config = tmp_path / "mypy.ini"
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        own = file.read().split("[tool.mypy]")[1].split("\n[")[0]
    lines = [line for line in own.splitlines() if re.match("strict|disallow|warn", line)]
    config.write_text("[mypy]\n" + "\n".join(lines).replace("true", "True") + "\n" + QUICK)
    done = subprocess.run(
        [*command, "--config-file", str(config), "--cache-dir", str(tmp_path / "cache"), *arguments],
        cwd=tmp_path,
        env=dict(os.environ, MYPYPATH=os.path.dirname(PACKAGE)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    return done.stdout


def test_mypy_finds_nothing(tmp_path):
    found = mypy(tmp_path, "--exclude", "compat/names/", "-p", "horo")
    assert "Success" in found, found


def test_mypy_accepts_right_and_refuses_wrong_programs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(USER + "\n".join(code for code, _ in WRONG) + "\n")
    found = mypy(tmp_path, "--strict", str(script)).splitlines()
    first = USER.count("\n") + 1
    for number, (code, word) in enumerate(WRONG, first):
        lines = [line for line in found if line.startswith(f"script.py:{number}: error")]
        assert any(word in line for line in lines), (code, found)
    strange = [line for line in found if re.match(r"script\.py:\d+", line)]
    assert all(int(line.split(":")[1]) >= first for line in strange), strange
