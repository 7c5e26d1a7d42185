# SPDX-License-Identifier: Apache-2.0
"""The public names of horo.jax with their parameters, and what importing it costs and needs."""

import inspect
import os
import subprocess
import sys

import pytest

import horo.jax as horo
import job

_REDUCE = "name, op, prescale_factor, postscale_factor, process_set"
_WIRE = "wire_dtype, error_feedback"
FUNCTIONS = {
    "init": "comm, process_sets, compilation_cache",
    "shutdown": "",
    "rank": "",
    "size": "",
    "local_rank": "",
    "local_size": "",
    "cross_rank": "",
    "cross_size": "",
    "is_initialized": "",
    "is_homogeneous": "",
    "allreduce": f"array, {_REDUCE}, {_WIRE}",
    "allreduce_async": f"array, {_REDUCE}, {_WIRE}",
    "grouped_allreduce": f"arrays, {_REDUCE}, {_WIRE}",
    "grouped_allreduce_async": f"arrays, {_REDUCE}, {_WIRE}",
    "reducescatter": f"array, {_REDUCE}",
    "reducescatter_async": f"array, {_REDUCE}",
    "grouped_reducescatter": f"arrays, {_REDUCE}",
    "grouped_reducescatter_async": f"arrays, {_REDUCE}",
    "allgather": "array, name, process_set",
    "allgather_async": "array, name, process_set",
    "grouped_allgather": "arrays, name, process_set",
    "grouped_allgather_async": "arrays, name, process_set",
    "alltoall": "array, splits, name, process_set",
    "alltoall_async": "array, splits, name, process_set",
    "broadcast": "array, root_rank, name, process_set",
    "broadcast_async": "array, root_rank, name, process_set",
    "barrier": "tree, process_set",
    "join": "process_set",
    "poll": "handle",
    "synchronize": "handle",
    "allreduce_tree": (
        "tree, name, op, compression, prescale_factor, postscale_factor, process_set, " + _WIRE
    ),
    "broadcast_parameters": "params, root_rank, process_set",
    "broadcast_object": "obj, root_rank, name, process_set",
    "allgather_object": "obj, name, process_set",
    "value_and_grad": (
        "fun, argnums, has_aux, op, compression, average_value, process_set, wire_dtype, options"
    ),
    "grad": "fun, argnums, has_aux, options",
    "DistributedOptimizer": (
        "optimizer, name, compression, backward_passes_per_step, op, gradient_predivide_factor, "
        "process_set, " + _WIRE
    ),
    "ProcessSet": "ranks_or_comm",
    "add_process_set": "process_set",
    "remove_process_set": "process_set",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters(name):
    assert ", ".join(inspect.signature(getattr(horo, name)).parameters) == FUNCTIONS[name]
    assert name in horo.__all__ and inspect.getdoc(getattr(horo, name))


def test_every_exported_name_exists():
    assert all(hasattr(horo, name) for name in horo.__all__)
    assert sorted(horo.__all__, key=str.lower) == horo.__all__


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout


def test_importing_it_starts_no_backend_and_needs_no_optax():
    code, output = python(
        "import sys, horo.jax; from jax._src import xla_bridge\n"
        "assert not xla_bridge._backends and 'optax' not in sys.modules"
    )
    assert code == 0, output


def test_without_jax_the_error_says_what_to_install():
    code, output = python("import sys; sys.modules['jax'] = None; import horo.jax")
    assert code == 1 and "horo.jax needs jax and jaxlib 0.4.38 or later: pip install jax" in output


def test_an_old_jax_is_refused_with_its_version():
    code, output = python("import jax; jax.__version__ = '0.4.30'; import horo.jax")
    assert code == 1 and "horo.jax needs jax 0.4.38 or later, and this is 0.4.30" in output


def test_the_import_brings_no_large_modules():
    """Those would take longer to import than all of horo.jax."""
    code = """
        import sys
        import jax
        known = set(sys.modules)
        import horo.jax as horo
        large = ("jax._src.pallas", "jax._src.checkify", "jax.extend.core.primitives", "horo._elastic.state")
        found = [name for name in set(sys.modules) - known if name.startswith(large)]
        assert not found, found
        assert horo.elastic.JaxState  # imported by its first use
    """
    done = job.run_alone(code)
    assert done.code == 0, done.output
