# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow and horo.keras have every public name of Horovod's, with the same parameters and
defaults, and say what is missing."""

import importlib
import inspect
import subprocess
import sys
import textwrap

import pytest
import tensorflow as tf

import horo.tensorflow
import horo.tensorflow.keras
import tf_api
from horo import compat

MODULES = [
    (horo.tensorflow, tf_api.TENSORFLOW),
    (horo.tensorflow.keras, tf_api.KERAS),
    (horo.tensorflow.keras.callbacks, tf_api.CALLBACKS),
    (horo.tensorflow.keras.elastic, tf_api.ELASTIC),
]
if int(getattr(tf.keras, "__version__", "2").partition(".")[0]) >= 3:
    import horo.keras

    MODULES += [
        (horo.keras, tf_api.KERAS),
        (horo.keras.callbacks, tf_api.CALLBACKS),
        (horo.keras.elastic, tf_api.ELASTIC),
    ]


def described(module, function):
    """A function's parameters, written as in the table."""
    none = getattr(getattr(module, "Compression", None), "none", object())
    rows = []
    for parameter in inspect.signature(function).parameters.values():
        default = parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            rows.append(f"**{parameter.name}")
        elif default is inspect.Parameter.empty:
            rows.append(parameter.name)
        elif default is horo.tensorflow.global_process_set:
            rows.append(f"{parameter.name}=G")
        elif default is none:
            rows.append(f"{parameter.name}=N")
        elif parameter.name == "op" and default is not None:
            rows.append(f"{parameter.name}={('Average', 'Sum')[default]}")
        else:
            rows.append(f"{parameter.name}={default!r}")
    return rows


@pytest.mark.parametrize("module, table", MODULES, ids=lambda one: getattr(one, "__name__", ""))
def test_parameters(module, table):
    for name, words in table.items():
        wanted = [word for word in words.split(", ") if word]
        found = described(module, getattr(module, name))
        assert found[: len(wanted)] == wanted, name
        assert all("=" in further for further in found[len(wanted) :]), (name, found)
        assert name in module.__all__, name


def test_names():
    for name in tf_api.TENSORFLOW_NAMES:
        assert hasattr(horo.tensorflow, name), name
    for name in tf_api.KERAS_NAMES:
        assert hasattr(horo.tensorflow.keras, name), name
    for one in vars(horo.tensorflow.keras.callbacks).values():
        if inspect.isclass(one):
            assert issubclass(one, tf.keras.callbacks.Callback), one
            assert one.__doc__, one


def test_horovods_modules():
    compat.install()
    for module, names in tf_api.MODULES.items():
        if module.startswith("horovod.keras") and "horo.keras" not in sys.modules:
            continue
        found = importlib.import_module(module)
        ours = importlib.import_module("horo" + module[len("horovod") :]) if module.count(".") == 1 else None
        for name in names.split(", "):
            one = getattr(found, name)
            if ours is not None and name not in ("__version__",):
                assert one is getattr(ours, name), (module, name)


def said_without(blocked, module, **patches):
    """The words of the ImportError of a module in a process that cannot import `blocked`."""
    code = f"""
        import sys
        for name in {blocked!r}:
            sys.modules[name] = None
        for name, version in {patches!r}.items():
            import types
            sys.modules[name] = types.ModuleType(name)
            sys.modules[name].__version__ = version
        try:
            import {module}
        except ImportError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_without_the_framework():
    assert "pip install tensorflow" in said_without(["tensorflow"], "horo.tensorflow")
    assert "pip install keras" in said_without(["keras"], "horo.keras")
    said = said_without([], "horo.tensorflow", tensorflow="2.11.0")
    assert "2.12 or newer; this is 2.11.0" in said, said


def test_horo_alone_imports_no_framework():
    code = "import sys, horo, horo.elastic; print([n for n in ('tensorflow', 'keras', 'numpy', 'jax') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout


def test_before_init():
    for function in (lambda: horo.tensorflow.allreduce(tf.ones([1])), lambda: horo.tensorflow.rank_op().numpy()):
        with pytest.raises(ValueError, match="init"):
            function()


def test_a_forked_child_is_told_so():
    """Input pipelines fork: a collective there must end with an error, not wait for ever."""
    code = """
        import os
        import tensorflow as tf
        import horo.tensorflow as horo
        horo.init()
        pid = os.fork()
        if pid == 0:
            try:
                horo.broadcast_object(1)
            except horo.ForkedError as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert horo.allreduce(tf.ones([2])).numpy().tolist() == [1, 1]
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout
