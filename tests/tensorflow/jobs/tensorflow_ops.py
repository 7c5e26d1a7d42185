# SPDX-License-Identifier: Apache-2.0
"""The collectives of horo.tensorflow, eagerly and in a tf.function."""

import numpy
import tensorflow as tf

import horo.tensorflow as horo
from expect import fails
from horo.tensorflow._errors import as_horo
from horo.tensorflow._module import ASYNCHRONOUS

REDUCIBLE = (tf.uint8, tf.int8, tf.uint16, tf.int16, tf.int32, tf.int64, tf.float16, tf.bfloat16, tf.float32, tf.float64)
MOVABLE = (*REDUCIBLE, tf.bool, tf.complex64, tf.complex128)


def part(rank, dtype, shape):
    """The numbers that `rank` contributes: small, so that every dtype has them."""
    count = int(numpy.prod(shape))
    values = numpy.arange(count, dtype=numpy.int64) % 5 + rank + 1
    if dtype == tf.bool:
        values = values % 2
    return tf.cast(tf.reshape(tf.constant(values), shape), dtype)


def parts(dtype, shape):
    return [part(rank, dtype, shape) for rank in range(horo.size())]


def both(function, *tensors):
    """The results of an eager call and of two calls in a function, whose shapes are not known."""
    signature = [tf.TensorSpec([None] * len(one.shape), one.dtype) for one in tensors]
    traced = tf.function(function, input_signature=signature)
    return [function(*tensors), traced(*tensors), traced(*tensors)]


def equal(found, wanted):
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    assert numpy.array_equal(found.numpy(), wanted.numpy()), (found, wanted)


def check_allreduce_of_every_dtype():
    for dtype in (*REDUCIBLE, tf.complex64, tf.complex128):
        for shape in ((), (0,), (7,), (3, 4), (2, 3, 5)):
            wanted = tf.cast(sum(tf.cast(one, tf.complex128) for one in parts(dtype, shape)), dtype)
            for found in both(lambda x: horo.allreduce(x, op=horo.Sum), part(horo.rank(), dtype, shape)):
                equal(found, wanted)


def check_allreduce_operations():
    mine, n = part(horo.rank(), tf.float32, (6,)), horo.size()
    every = parts(tf.float32, (6,))
    equal(horo.allreduce(mine), sum(every) / n)
    equal(horo.allreduce(mine, op=horo.Min), tf.reduce_min(every, 0))
    equal(horo.allreduce(mine, op=horo.Max), tf.reduce_max(every, 0))
    equal(horo.allreduce(mine, op=horo.Product), tf.reduce_prod(every, 0))
    scaled = horo.allreduce(mine, op=horo.Sum, prescale_factor=0.5, postscale_factor=4.0)
    equal(scaled, sum(every) * 2)
    # A factor that float32 cannot hold.
    exact = horo.allreduce(tf.ones([1], tf.float64), op=horo.Average, postscale_factor=1 / 3)
    assert exact.numpy()[0] == 1 / 3
    near = horo.allreduce(mine, op=horo.Sum, compression=horo.Compression.fp16)
    equal(near, sum(every))
    same = horo.allreduce(mine, op=horo.Adasum)
    assert same.shape == mine.shape


def check_input_stays_as_it_is():
    """The op may work in place only when nobody else reads the input."""

    @tf.function
    def function(x):
        y = x + 1.0
        return horo.allreduce(y, op=horo.Sum), y, horo.allreduce(x * 2.0, op=horo.Sum)

    x = part(horo.rank(), tf.float32, (1000,))
    total, kept, doubled = function(x)
    equal(kept, x + 1.0)
    equal(total, sum(parts(tf.float32, (1000,))) + float(horo.size()))
    equal(doubled, sum(parts(tf.float32, (1000,))) * 2.0)
    variable = tf.Variable(x)
    horo.allreduce(variable, op=horo.Sum)
    equal(variable.read_value(), x)


def check_grouped():
    dtypes = (tf.float32, tf.int64, tf.float16)
    mine = [part(horo.rank(), dtype, (4, 2)) for dtype in dtypes]

    def function(*tensors):
        return horo.grouped_allreduce(tensors, op=horo.Sum)

    for results in both(function, *mine):
        for found, dtype in zip(results, dtypes):
            equal(found, tf.add_n(parts(dtype, (4, 2))))
    gathered = horo.grouped_allgather(mine)
    for found, dtype in zip(gathered, dtypes):
        equal(found, tf.concat(parts(dtype, (4, 2)), 0))
    own = slice(2 * horo.rank(), 2 * horo.rank() + 2)
    for found, dtype in zip(horo.grouped_reducescatter(mine, op=horo.Sum), dtypes):
        equal(found, tf.add_n(parts(dtype, (4, 2)))[own])
    assert horo.grouped_allreduce([]) == []


def check_allgather_uneven():
    for dtype in MOVABLE:
        mine = part(horo.rank(), dtype, (horo.rank() + 1, 3))
        wanted = tf.concat([part(rank, dtype, (rank + 1, 3)) for rank in range(horo.size())], 0)
        for found in both(horo.allgather, mine):
            equal(found, wanted)


def check_allgather_whose_rows_change():
    gather = tf.function(horo.allgather, input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    for rows in (3, 3, 1, 0, 5, 5):
        mine = part(horo.rank(), tf.float32, (rows + horo.rank(), 2))
        every = [part(rank, tf.float32, (rows + rank, 2)) for rank in range(horo.size())]
        equal(gather(mine), tf.concat(every, 0))


def check_broadcast():
    for dtype in (*MOVABLE, tf.uint32, tf.uint64):
        for root in range(horo.size()):
            mine = part(horo.rank(), dtype, (3, 2))
            for found in both(lambda x: horo.broadcast(x, root), mine):
                equal(found, part(root, dtype, (3, 2)))


def check_reducescatter():
    rows = 2 * horo.size() + 1
    mine = part(horo.rank(), tf.float32, (rows, 3))
    first = 2 * horo.rank() + min(horo.rank(), 1)
    own = slice(first, first + (3 if horo.rank() == 0 else 2))
    for found in both(lambda x: horo.reducescatter(x, op=horo.Sum), mine):
        equal(found, tf.add_n(parts(tf.float32, (rows, 3)))[own])


def check_alltoall():
    n, me = horo.size(), horo.rank()
    for found in both(horo.alltoall, part(me, tf.int32, (2 * n, 3))):
        every = [one[2 * me : 2 * me + 2] for one in parts(tf.int32, (2 * n, 3))]
        equal(found, tf.concat(every, 0))
    splits = [(me + target) % 3 for target in range(n)]
    mine = part(me, tf.float32, (sum(splits) + 1, 2))
    wanted = []
    for source in range(n):
        theirs = [(source + target) % 3 for target in range(n)]
        begin = sum(theirs[:me])
        wanted.append(part(source, tf.float32, (sum(theirs) + 1, 2))[begin : begin + theirs[me]])
    for given in (splits, tf.constant(splits, tf.int32)):
        rows, received = horo.alltoall(mine, given)
        equal(rows, tf.concat(wanted, 0))
        assert received.dtype == tf.int32
        assert received.numpy().tolist() == [(source + me) % 3 for source in range(n)]


def check_indexed_slices():
    me, n = horo.rank(), horo.size()
    slices = tf.IndexedSlices(part(me, tf.float32, (me + 1, 2)), tf.range(me + 1), tf.constant([9, 2]))
    for op, scale in ((horo.Sum, 1.0), (horo.Average, float(n))):
        found = horo.allreduce(slices, op=op, name=f"slices.{op}")
        assert isinstance(found, tf.IndexedSlices)
        every = [part(rank, tf.float32, (rank + 1, 2)) for rank in range(n)]
        equal(found.values, tf.concat(every, 0) / scale)
        assert found.indices.numpy().tolist() == [row for rank in range(n) for row in range(rank + 1)]
    fails(NotImplementedError, lambda: horo.allreduce(slices, op=horo.Max), "sparse_as_dense")
    fails(NotImplementedError, lambda: horo.allreduce(slices, prescale_factor=2.0), "prescale_factor")


def check_a_function_with_another_order_on_each_rank():
    """The ranks agree by name, and no op blocks a thread that another needs."""
    count = 40
    order = list(range(count))
    if horo.rank() % 2:
        order.reverse()

    @tf.function
    def function(xs):
        results = {}
        for index in order:
            results[index] = horo.allreduce(xs[index], op=horo.Sum, name=f"order.{index}")
        return [results[index] for index in range(count)]

    xs = [part(horo.rank(), tf.float32, (index + 1,)) for index in range(count)]
    for _ in range(3 if ASYNCHRONOUS else 0):
        for index, found in enumerate(function(xs)):
            equal(found, tf.add_n(parts(tf.float32, (index + 1,))))


def check_a_rank_may_be_eager_while_another_runs_a_function():
    """Calls with a name meet, whichever way each rank makes them."""

    def several(x):
        total = horo.allreduce(x, op=horo.Sum, name="mixed.sum")
        both = horo.grouped_allreduce([x, x * 2.0], op=horo.Sum, name="mixed.group")
        return [total, *both, horo.allgather(x, name="mixed.rows"), horo.broadcast(x, 0, name="mixed.root")]

    traced = tf.function(several)
    every = parts(tf.float32, (3,))
    total = tf.add_n(every)
    for step in range(4):
        found = (traced if (horo.rank() + step) % 2 else several)(part(horo.rank(), tf.float32, (3,)))
        for one, wanted in zip(found, [total, total, total * 2.0, tf.concat(every, 0), every[0]]):
            equal(one, wanted)


def check_traces_with_other_shapes_share_names():
    function = tf.function(lambda x: horo.allreduce(x, op=horo.Sum))
    for rows in (3, 5, 3, 4, 5, 3):
        equal(function(part(horo.rank(), tf.float32, (rows,))), tf.add_n(parts(tf.float32, (rows,))))


def check_collectives_of_constants_run_each_time():
    """A rank that traces a function again must meet the others, which only run it."""

    @tf.function
    def function(x):
        total = horo.allreduce(tf.constant(1.0 + horo.rank()), op=horo.Sum)
        rows, _ = horo.alltoall(tf.range(horo.size()), tf.ones([horo.size()], tf.int32))
        return x + total, horo.allgather(tf.fill([1], horo.rank())), horo.broadcast(tf.constant(horo.rank()), 1), rows

    for length in (1, 1, 1 + horo.rank(), 1):
        total, gathered, root, rows = function(tf.zeros([length]))
        equal(total, tf.fill([length], sum(range(1, horo.size() + 1)) * 1.0))
        equal(gathered, tf.range(horo.size()))
        assert root.numpy() == 1 and rows.numpy().tolist() == [horo.rank()] * horo.size()


def check_loops_and_branches():
    @tf.function
    def function(x, steps):
        for _ in tf.range(steps):
            if tf.reduce_sum(x) > 0:
                x = horo.allreduce(x)
            x = x + 1.0
        return x

    mean = float(numpy.mean([rank + 1 for rank in range(horo.size())]))
    found = function(tf.ones([2]) * (horo.rank() + 1.0), tf.constant(3))
    assert numpy.allclose(found.numpy(), mean + 3), found


def check_place():
    me, n = horo.rank(), horo.size()
    for function in (lambda: None, tf.function):
        wrap = function if function is tf.function else lambda given: given
        assert wrap(lambda: horo.rank_op())().numpy() == me
        assert wrap(lambda: horo.size_op())().numpy() == n
        assert wrap(lambda: horo.local_rank_op())().numpy() == horo.local_rank()
        assert wrap(lambda: horo.local_size_op())().numpy() == horo.local_size()
        assert wrap(lambda: horo.process_set_included_op())().numpy() == 1
    fails(ValueError, lambda: horo.size_op(process_set_id=77).numpy(), "process set 77")


def check_process_sets():
    alone = horo.add_process_set([horo.size() - 1])
    both_ranks = horo.add_process_set(range(0, horo.size(), 2)) if horo.size() > 2 else None
    last = horo.rank() == horo.size() - 1
    if last:
        mine = part(horo.rank(), tf.float32, (4,))
        for found in both(lambda x: horo.allreduce(x, process_set=alone), mine):
            equal(found, mine)
        equal(horo.allgather(mine, process_set=alone), mine)
        equal(horo.broadcast(mine, horo.rank(), process_set=alone), mine)
        assert horo.size_op(alone.process_set_id).numpy() == 1
    else:
        fails(ValueError, lambda: horo.allreduce(tf.ones([1]), process_set=alone), "not in process set")
    assert bool(horo.process_set_included_op(alone.process_set_id).numpy()) is last
    horo.barrier()
    for one in (alone, both_ranks):
        assert one is None or horo.remove_process_set(one)


def check_join():
    """A rank without data changes no sum; the average is still over all ranks."""
    function = tf.function(lambda x: horo.allreduce(x, op=horo.Sum, name="joined"))
    if horo.rank() == 0:
        equal(function(tf.ones([3]) * 2.0), tf.ones([3]) * 2.0)
        equal(horo.allreduce(tf.ones([2]), op=horo.Sum, name="eager"), tf.ones([2]))
    assert horo.join() in range(horo.size())


def check_objects():
    found = horo.broadcast_object({"rank": horo.rank()}, 1, name="object")
    assert found == {"rank": 1}
    assert horo.broadcast_object_fn(root_rank=0)(horo.rank()) == 0
    assert horo.allgather_object(horo.rank()) == list(range(horo.size()))


def check_variables():
    me = horo.rank()
    variables = [
        tf.Variable(part(me, tf.float32, (3, 2)), name="a"),
        tf.Variable(part(me, tf.uint32, (2,)), name="seed"),
        tf.Variable(float(me)),
    ]
    horo.broadcast_variables(variables, 1)
    equal(variables[0].read_value(), part(1, tf.float32, (3, 2)))
    equal(variables[1].read_value(), part(1, tf.uint32, (2,)))
    assert variables[2].numpy() == 1.0
    variables[2].assign(float(me))
    tf.function(lambda: horo.broadcast_variables(variables, 0))()
    assert variables[2].numpy() == 0.0
    text = tf.Variable("words", name="words")
    fails(ValueError, lambda: horo.broadcast_variables([text], 0), "words", "string")
    fails(RuntimeError, lambda: horo.broadcast_global_variables(0), "broadcast_variables")


def check_graphs_of_tensorflow_1():
    with tf.Graph().as_default():
        variable = tf.compat.v1.get_variable("v", initializer=float(horo.rank() + 1))
        optimizer = horo.DistributedOptimizer(tf.compat.v1.train.GradientDescentOptimizer(1.0))
        step = optimizer.minimize(variable * (horo.rank() + 1.0))
        hook = horo.BroadcastGlobalVariablesHook(0)
        with tf.compat.v1.train.MonitoredSession(hooks=[hook]) as session:
            assert session.run(variable) == 1.0
            session.run(step)
            mean = numpy.mean([rank + 1 for rank in range(horo.size())])
            assert session.run(variable) == 1.0 - mean


# -- Bad input ------------------------------------------------------------------------------------


def check_dtypes_that_cannot_travel():
    resource = tf.Variable([1.0]).handle
    for given in (tf.constant("text"), tf.constant([1], tf.uint32), resource):
        name = given.dtype.name
        fails(ValueError, lambda: horo.allreduce(given), name, "float32")
        traced = tf.function(lambda: horo.allreduce(given))
        fails(ValueError, traced, name)
    fails(ValueError, lambda: horo.allgather(tf.constant("text")), "broadcast_object")
    fails(ValueError, lambda: horo.broadcast(resource, 0), "resource", "broadcast_object")
    fails(ValueError, lambda: horo.allgather(tf.constant(1.0)), "scalar")


def check_a_difference_ends_on_all_ranks_and_the_job_continues():
    mine = tf.ones([horo.rank() + 1])
    try:
        horo.allreduce(mine, name="differs")
        raise AssertionError("no MismatchError")
    except horo.MismatchError as error:
        assert error.subject == "shape" and error.tensor == "tf.allreduce.differs", vars(error)
        assert "[1] on rank 0" in str(error)
    traced = tf.function(lambda x: horo.allreduce(x, name="differs"))
    try:
        traced(mine)
        raise AssertionError("no error")
    except tf.errors.FailedPreconditionError as error:
        known = as_horo(error)
        assert isinstance(known, horo.MismatchError) and known.subject == "shape", repr(known)
    try:
        horo.allreduce(mine, name="two\nlines \\n")
        raise AssertionError("no MismatchError")
    except horo.MismatchError as error:
        assert error.subject == "shape" and error.tensor == "tf.allreduce.two\nlines \\n", vars(error)
    # A group with another number of members may wait for some of them for ever.
    fails(
        horo.MismatchError,
        lambda: horo.grouped_allreduce([tf.ones([2])] * (2 + horo.rank()), name="members"),
        "members",
    )
    equal(horo.allreduce(tf.ones([2]), op=horo.Sum, name="again"), tf.ones([2]) * float(horo.size()))


def check_an_exception_beside_an_operation():
    """A step that fails on all ranks ends there; its operations do not disturb the next step."""

    @tf.function
    def function(x):
        reduced = horo.allreduce(x, op=horo.Sum, name="beside")
        with tf.control_dependencies([tf.debugging.assert_less(x, 0.0)]):
            return tf.identity(reduced)

    fails(tf.errors.InvalidArgumentError, lambda: function(tf.ones([2])))
    equal(horo.allreduce(tf.ones([2]), op=horo.Sum, name="beside"), tf.ones([2]) * float(horo.size()))


def check_compiled_functions_are_refused():
    @tf.function(jit_compile=True)
    def outer(x):
        return horo.allreduce(x)

    try:
        outer(tf.ones([2]))
        raise AssertionError("no error")
    except Exception as error:
        assert "jit_compile=False" in str(error), error

    @tf.function(jit_compile=True)
    def inner(x):
        return x * 2.0

    mixed = tf.function(lambda x: horo.allreduce(inner(x), op=horo.Sum))
    equal(mixed(tf.ones([2])), tf.ones([2]) * (2.0 * horo.size()))
