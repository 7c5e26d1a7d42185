# SPDX-License-Identifier: Apache-2.0
"""Ranks that fail, end or differ while others are inside a compiled program."""

import job

START = """
    import os, sys
    import jax, jax.numpy as jnp
    import horo.jax as horo
    horo.init()
    rank = horo.rank()
    program = jax.jit(lambda x: horo.allreduce(x, name="sum"))
    jax.block_until_ready(program(jnp.ones(2)))
"""


def run(code, ranks=2, **environment):
    import textwrap

    text = textwrap.dedent(START) + textwrap.dedent(code)
    return job.run(ranks, ["-c", text], **environment)


def test_an_exception_in_one_rank_ends_the_programs_of_the_others():
    done = run(
        """
        if rank == 1:
            raise RuntimeError("this rank gives up")
        try:
            jax.block_until_ready(program(jnp.ones(2)))
        except jax.errors.JaxRuntimeError as error:
            assert "horo: " in str(error) and "rank 1" in str(error), error
            print("rank 0 was told", flush=True)
            raise
        """
    )
    assert done.code != 0 and "rank 0 was told" in done.output, done.output
    assert "this rank gives up" in done.output


def test_a_rank_that_is_killed_ends_the_programs_of_the_others():
    done = run(
        """
        if rank == 1:
            os.kill(os.getpid(), 9)
        try:
            jax.block_until_ready(program(jnp.ones(2)))
        except jax.errors.JaxRuntimeError as error:
            assert "peer_lost" in str(error) and "rank 1" in str(error), error
            print("rank 0 was told", flush=True)
        """
    )
    assert done.code != 0 and "rank 0 was told" in done.output, done.output


def test_a_call_that_only_one_rank_compiles_is_named():
    done = run(
        """
        try:
            if rank == 0:
                jax.block_until_ready(jax.jit(lambda x: horo.allreduce(x, name="only"))(jnp.ones(2)))
            else:
                horo.allreduce(jnp.ones(2), name="only")
        except (jax.errors.JaxRuntimeError, horo.HoroError) as error:
            print("ended:", error, flush=True)
            raise
        """,
        HORO_STALL_WARNING_TIME="1s",
        HORO_STALL_SHUTDOWN_TIME="2s",
    )
    assert done.code != 0 and "allreduce.jit.only" in done.output, done.output


def test_a_forked_child_is_refused():
    done = run(
        """
        horo.barrier()
        child = os.fork()
        if child == 0:
            try:
                horo.allreduce(jnp.ones(2))
                os._exit(3)
            except horo.ForkedError:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        jax.block_until_ready(program(jnp.ones(2)))
        """
    )
    assert done.code == 0, done.output


def test_before_init_a_program_says_so():
    done = job.run(
        1,
        [
            "-c",
            "import jax, jax.numpy as jnp, horo.jax as horo\n"
            "try:\n"
            "    jax.jit(horo.allreduce)(jnp.ones(2))\n"
            "except horo.NotInitializedError as error:\n"
            "    assert 'init' in str(error)\n"
            "else:\n"
            "    raise SystemExit('not refused')\n",
        ],
    )
    assert done.code == 0, done.output


def test_ranks_share_a_cache_of_programs_that_only_the_user_can_write(tmp_path):
    code = """
        folder = jax.config.jax_compilation_cache_dir
        assert folder == os.path.join(os.environ["TMPDIR"], f"horo-jax-cache-{os.getuid()}"), folder
        assert os.stat(folder).st_mode & 0o777 == 0o700
    """
    done = run(code, TMPDIR=str(tmp_path))
    assert done.code == 0, done.output
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / f"horo-jax-cache-{__import__('os').getuid()}").mkdir(mode=0o777)
    (tmp_path / "open" / f"horo-jax-cache-{__import__('os').getuid()}").chmod(0o777)
    done = run("assert not jax.config.jax_compilation_cache_dir", TMPDIR=str(tmp_path / "open"))
    assert done.code == 0, done.output
    done = run(
        "assert not jax.config.jax_compilation_cache_dir",
        TMPDIR=str(tmp_path),
        JAX_ENABLE_COMPILATION_CACHE="0",
    )
    assert done.code == 0, done.output
