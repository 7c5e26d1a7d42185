# SPDX-License-Identifier: Apache-2.0
"""horo.mxnet: collectives, trainings with Gluon and with an optimizer, parameters that come later."""

import mxnet as mx
import numpy
from mxnet import autograd, gluon, nd

import horo.mxnet as horo
from expect import fails

DTYPES = "uint8 int8 int32 int64 float16 float32 float64".split()


def ramp(rank, dtype="float32", shape=(3, 4)):
    return (nd.arange(numpy.prod(shape)).reshape(shape) % 5 + rank).astype(dtype)


def equal(found, wanted):
    found = found.asnumpy()
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, (found, wanted)
    assert numpy.array_equal(found, wanted), (found, wanted)


def sums(dtype="float32", shape=(3, 4)):
    return sum(ramp(rank, dtype, shape).asnumpy() for rank in range(horo.size()))


def check_allreduce_of_every_dtype():
    for dtype in DTYPES:
        own = ramp(horo.rank(), dtype)
        equal(horo.allreduce(own, op=horo.Sum, name=f"new {dtype}"), sums(dtype))
        equal(own, ramp(horo.rank(), dtype).asnumpy())
        assert horo.allreduce_(own, op=horo.Sum, name=f"own {dtype}") is own
        equal(own, sums(dtype))
    equal(horo.allreduce(ramp(horo.rank())), sums() / horo.size())
    equal(horo.allreduce(ramp(horo.rank()), prescale_factor=2.0, postscale_factor=0.5, op=horo.Sum), sums())
    equal(horo.allreduce(ramp(horo.rank()), op=horo.Max), ramp(horo.size() - 1).asnumpy())


def check_work_in_flight_is_awaited():
    """MXNet computes the array, and reads the old values, in threads of its own."""
    for step in range(20):
        a = nd.random.uniform(shape=(200, 200))
        big = nd.dot(a, a) * 0 + horo.rank() + step
        before = nd.dot(big, nd.ones((200, 1)))  # reads what allreduce_ overwrites
        horo.allreduce_(big, op=horo.Sum, name="big")
        after = big + 1
        total = sum(rank + step for rank in range(horo.size()))
        assert (before.asnumpy() == 200 * (horo.rank() + step)).all()
        assert (after.asnumpy() == total + 1).all()


def check_views_and_numpy_arrays():
    whole = nd.zeros((4, 3))
    whole[:] = horo.rank() + 1
    row = whole[2]  # shares memory
    horo.allreduce_(row, op=horo.Sum)
    total = sum(range(1, horo.size() + 1))
    assert whole[2].asnumpy().tolist() == [total] * 3 and whole[1].asnumpy().tolist() == [horo.rank() + 1] * 3
    new = horo.allreduce(mx.np.ones((2, 2)), op=horo.Sum)
    assert isinstance(new, mx.np.ndarray) and (new.asnumpy() == horo.size()).all()
    equal(horo.allreduce(ramp(horo.rank()).T, op=horo.Sum), numpy.ascontiguousarray(sums().T))


def check_groups():
    given = [ramp(horo.rank(), dtype) for dtype in ("float32", "float64", "int32")]
    for found, dtype in zip(horo.grouped_allreduce(given, op=horo.Sum, name="g"), ("float32", "float64", "int32")):
        equal(found, sums(dtype))
    results = horo.grouped_allreduce_(given, op=horo.Sum, name="g in place")
    assert all(result is one for result, one in zip(results, given))
    equal(given[1], sums("float64"))
    first, second = horo.grouped_allgather([nd.ones((1, 2)), nd.zeros((2, 1))])
    assert first.shape == (horo.size(), 2) and second.shape == (2 * horo.size(), 1)


def check_rows():
    me, size = horo.rank(), horo.size()
    found = horo.allgather(nd.full((me + 1, 2), me), name="rows")
    wanted = numpy.concatenate([numpy.full((rank + 1, 2), rank, "float32") for rank in range(size)])
    equal(found, wanted)
    equal(horo.broadcast(ramp(me), 1), ramp(1).asnumpy())
    own = ramp(me)
    assert horo.broadcast_(own, 0) is own
    equal(own, ramp(0).asnumpy())
    equal(horo.alltoall(nd.full((size, 1), me)), numpy.arange(size, dtype="float32").reshape(size, 1))
    splits = nd.array([rank + 1 for rank in range(size)], dtype="int32")
    rows, counts = horo.alltoall(nd.full((sum(range(1, size + 1)),), me), splits=splits)
    assert counts.asnumpy().tolist() == [me + 1] * size and rows.shape == ((me + 1) * size,)
    equal(horo.reducescatter(ramp(me, shape=(size, 2)), op=horo.Sum), sums(shape=(size, 2))[me : me + 1])
    (part,) = horo.grouped_reducescatter([ramp(me, shape=(size, 2))], op=horo.Sum)
    equal(part, sums(shape=(size, 2))[me : me + 1])
    assert horo.allgather(nd.empty((0, 3))).shape == (0, 3)


def check_bad_arguments():
    fails(ValueError, lambda: horo.allreduce([1.0]), "list is not an array of MXNet")
    fails(ValueError, lambda: horo.allreduce(nd.ones((2, 2)).tostype("csr")), "storage type csr")
    fails(ValueError, lambda: horo.allreduce(nd.ones(1), op=9), "op 9")
    fails(ValueError, lambda: horo.broadcast_parameters([nd.ones(1)]), "collect_params()")
    fails(ValueError, lambda: horo.DistributedOptimizer("sgd"), "mxnet.optimizer")
    fails(ValueError, lambda: horo.DistributedTrainer({}, "sgd", gradient_predivide_factor=0), "positive")
    fails(horo.HorovodInternalError, lambda: horo.allreduce(nd.ones(horo.rank() + 1), name="unlike"), "unlike")
    horo.barrier()


def network():
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dense(1))  # widths of inputs are known later
    return net


def data(rank):
    numbers = numpy.random.RandomState(rank)
    return nd.array(numbers.uniform(size=(16, 4))), nd.array(numbers.uniform(size=(16, 1)))


def train(net, trainer, steps, batches, step=None):
    loss = gluon.loss.L2Loss()
    for _ in range(steps):
        with autograd.record():
            losses = [loss(net(x), y) for x, y in batches]
        autograd.backward(losses)
        (step or trainer.step)(16 * len(batches))
    return [param.data().asnumpy() for _, param in sorted(net._collect_params_with_prefix().items())]


def alone(steps):
    """The same training by one process with all ranks' batches."""
    mx.random.seed(7)
    net = network()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.9}, kvstore=None)
    return train(net, trainer, steps, [data(rank) for rank in range(horo.size())])


def close(found, wanted, tolerance=1e-5):
    assert len(found) == len(wanted) == 4
    for one, other in zip(found, wanted):
        assert numpy.allclose(one, other, rtol=tolerance, atol=tolerance), (one, other)


def check_trainer_equals_one_process_with_all_batches():
    """Also when the ranks begin with different parameters that take their shapes from the first batch."""
    wanted = alone(5)
    cases = ({}, {"num_groups": 2}, {"gradient_predivide_factor": 2.0}, {"compression": horo.Compression.fp16})
    for number, options in enumerate(cases):
        mx.random.seed(7 + horo.rank())
        net = network()
        net.initialize(mx.init.Xavier())
        horo.broadcast_parameters(net._collect_params_with_prefix(), root_rank=0, prefix=f"case{number}.")
        given = {"learning_rate": 0.5, "momentum": 0.9}
        trainer = horo.DistributedTrainer(net.collect_params(), "sgd", given, prefix=f"case{number}", **options)
        found = train(net, trainer, 5, [data(horo.rank())])
        close(found, wanted, 1e-2 if "compression" in options else 1e-5)
        for index, array in enumerate(found):
            everywhere = horo.allgather(nd.array(array.reshape(1, -1)), name=f"equal {index}").asnumpy()
            assert (everywhere == everywhere[0]).all()


def check_optimizer_averages_before_it_updates():
    made = mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.9)
    optimizer = horo.DistributedOptimizer(made)
    optimizer.rescale_grad = 0.25
    assert made.rescale_grad == 0.25 and optimizer.learning_rate == 0.5
    updater = mx.optimizer.get_updater(optimizer)
    plain = mx.optimizer.get_updater(mx.optimizer.create("sgd", learning_rate=0.5, momentum=0.9, rescale_grad=0.25))
    weights, wanted = [nd.ones((2, 3)), nd.ones((4,))], [nd.ones((2, 3)), nd.ones((4,))]
    for step in range(3):
        grads = [nd.full((2, 3), horo.rank() + step), nd.full((4,), 2.0 * horo.rank())]
        middle = (horo.size() - 1) / 2
        means = [nd.full((2, 3), middle + step), nd.full((4,), 2.0 * middle)]
        updater([0, 1], grads, weights)
        plain([0, 1], means, wanted)
        for one, other in zip(weights, wanted):
            assert numpy.allclose(one.asnumpy(), other.asnumpy())
    updater(2, nd.full((2,), horo.rank()), weights[1][:2])  # one index instead of a list
    optimizer.set_learning_rate(0.125)
    assert made.learning_rate == 0.125


def check_parameters_in_a_dict():
    arrays = {"b": nd.full((2,), horo.rank() + 1), "a": nd.full((3, 1), horo.rank() + 5, dtype="int64")}
    horo.broadcast_parameters(arrays, root_rank=1)
    assert arrays["b"].asnumpy().tolist() == [2, 2] and arrays["a"].asnumpy().tolist() == [[6]] * 3


def check_objects_and_process_sets():
    assert horo.broadcast_object({"rank": horo.rank()}, root_rank=1) == {"rank": 1}
    assert horo.allgather_object(horo.rank()) == list(range(horo.size()))
    own = horo.add_process_set([0])
    if horo.rank() == 0:
        assert horo.allreduce(nd.ones(2), op=horo.Sum, process_set=own).asnumpy().tolist() == [1, 1]
    horo.barrier()
    horo.remove_process_set(own)
