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


def test_children_of_an_input_pipeline_do_not_disturb_programs():
    done = run(
        """
        import multiprocessing, warnings
        import numpy
        warnings.simplefilter("ignore")  # jax warns of each fork
        with multiprocessing.get_context("fork").Pool(2) as pool:
            for batch in pool.imap(numpy.ones, [8] * 20):
                total = program(jnp.asarray(batch, "float32"))
        assert float(total[0]) == 1.0
        """
    )
    assert done.code == 0, done.output


def test_programs_that_still_run_when_a_rank_ends_are_finished():
    done = run(
        """
        @jax.jit
        def step(x):
            x = jax.lax.fori_loop(0, 30, lambda _, y: jnp.tanh(y @ y), x)
            return horo.allreduce(x, name="step")

        x = jnp.ones((300, 300))
        for _ in range(20):
            x = step(x)
        if rank == 0:
            jax.block_until_ready(x)
            print("rank 0 has its result", flush=True)
        """
    )
    assert done.code == 0 and "rank 0 has its result" in done.output, done.output


def test_collectives_of_programs_go_on_at_a_limit_on_threads():
    done = run(
        """
        import numpy
        import resource
        both = lambda x: (horo.allreduce(x, name="a"), horo.allreduce(2 * x, name="b"))
        two = jax.jit(lambda runs, x: jax.lax.cond(runs, both, lambda x: (x, x), x))
        x, yes = jnp.ones(1000) * (rank + 1), jnp.array(True)
        jax.block_until_ready(two(jnp.array(False), x))  # compiled, without a collective
        horo.barrier()
        if os.getuid() == 0:
            os.setuid(65534)  # root has no such limit
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        for _ in range(3):
            one, other = map(numpy.asarray, two(yes, x))
            assert numpy.all(one == 1.5) and numpy.all(other == 3)
        print("all right", flush=True)
        """
    )
    assert done.code == 0 and done.output.count("all right") == 2, done.output


def test_ctrl_c_ends_a_training():
    done = job.interrupt(
        2,
        [
            "-c",
            "import os\n"
            "import jax, jax.numpy as jnp, horo.jax as horo\n"
            "horo.init()\n"
            "step = jax.jit(lambda x: x + horo.allreduce(x, name='step'))\n"
            "x = jax.block_until_ready(step(jnp.zeros(1000)))\n"
            "print('runs', os.getpid(), flush=True)\n"
            "while True:\n"
            "    x = jax.block_until_ready(step(x))\n",
        ],
    )
    assert done.code == 130, (done.code, done.output)


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
