# SPDX-License-Identifier: Apache-2.0
"""Elastic states on the ranks of a job with fixed members: what they exchange."""

import collections
import contextlib
import threading
import warnings

import torch

import horo.torch as horo
from expect import fails
from horo import PeerLostError
from horo._elastic import state as states
from horo.torch import _elastic_exchange, elastic


@contextlib.contextmanager
def in_an_elastic_job(newcomers=0):
    """Inside, the ranks of this job count as survivors of an elastic one, but for the last ones."""
    real = elastic.is_elastic
    elastic.is_elastic = lambda: True
    states.generation.is_elastic = elastic.is_elastic
    states.generation.survivors = lambda: horo.size() - newcomers
    try:
        yield
    finally:
        elastic.is_elastic = states.generation.is_elastic = real


@contextlib.contextmanager
def watched_broadcasts():
    """Inside, the tensors that this rank sends or receives as known to optimizers are noted:
    (number of elements, sender)."""
    real, moved = _elastic_exchange._broadcast_all, []

    def broadcast_all(named, root, names, **options):
        if calls:  # the first call is for what all ranks get
            moved.extend((tensor.numel(), root) for _, tensor in named)
        calls.append(root)
        real(named, root, names, **options)

    calls = []
    _elastic_exchange._broadcast_all = broadcast_all
    try:
        yield moved
    finally:
        _elastic_exchange._broadcast_all = real


def is_new(newcomers=1):
    return horo.rank() >= horo.size() - newcomers


def begin_anew(state):
    """This rank has just come: it has other parameters, and its optimizer has no state."""
    state._whole = False
    with torch.no_grad():
        for parameter in state.model.parameters():
            parameter.normal_()
    state.optimizer.state.clear()
    state.optimizer._horo_reducer.steps = 0


def training(seed=0, **values):
    """A state with a model, a distributed optimizer that has made a step, and a sampler."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01 * (seed + 1))
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    sampler = elastic.ElasticSampler(range(50), seed=5)
    state = elastic.TorchState(model, optimizer, sampler=sampler, **values)
    return state, lambda: step(model, optimizer)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(2, 3) * (horo.rank() + 1)).square().sum().backward()
    optimizer.step()


def everything(state, buffers=True):
    """The state's numbers, as one list. The buffers of a norm are each rank's own."""
    found = [*(state.model.state_dict().values() if buffers else state.model.parameters())]
    for one in state.optimizer.state_dict()["state"].values():
        found += [torch.as_tensor(value) for value in one.values()]
    found = [one.detach() for one in found]
    found.append(torch.tensor([group["lr"] for group in state.optimizer.param_groups]))
    found.append(torch.tensor([state.sampler.epoch, state.sampler.processed_num]))
    return [one.double().flatten().tolist() for one in found]


def require_equal(state, others=(), buffers=False):
    everybodys = horo.allgather_object((everything(state, buffers), *others))
    assert all(one == everybodys[0] for one in everybodys), everybodys


def check_the_first_sync_takes_all_from_rank_0():
    state, train = training(horo.rank(), epoch=10 + horo.rank(), found=[horo.rank()])
    if horo.rank() == 0:
        state.sampler.set_epoch(3)
        state.sampler.record_batch(0, 2)
    state.sync()
    assert (state.epoch, state.found) == (10, [0])
    require_equal(state, buffers=True)
    assert state.sampler.epoch == 3 and state.sampler.processed_num == 2 * horo.size()
    assert (state.sampler.rank, state.sampler.num_replicas) == (horo.rank(), horo.size())
    train()
    require_equal(state, [state.optimizer._horo_reducer.steps])


PARTS = ("model", "optimizer", "sampler", "scheduler")


def check_equal_survivors_exchange_no_parameters():
    """Only what no optimizer knows: a rank may have counted a batch that another has not."""
    state, train = training(value=0)
    state.scheduler = torch.optim.lr_scheduler.StepLR(state.optimizer, 1)
    rate = state.optimizer.param_groups[0]["lr"]
    state = elastic.TorchState(**{name: getattr(state, name) for name in PARTS}, value=0)
    state.sync()
    train()
    sent = []
    for name in ("model", "optimizer"):
        state._handlers[name].load = state._handlers[name]._take = sent.append
    for _ in range(horo.rank()):
        state.scheduler.step()
        state.sampler.record_batch(0, 1)
    with in_an_elastic_job():
        state.value = horo.rank()
        state.sync()
    assert not sent and state.value == 0 and state.scheduler.last_epoch == 0
    assert state.sampler.processed_num == 0 and state.optimizer.param_groups[0]["lr"] == rate


def check_a_new_rank_receives_its_model_in_place_and_the_others_receive_nothing():
    if horo.size() == 1:
        return
    state, train = training(count=0)
    state.sync()
    train()
    places = {name: one.data_ptr() for name, one in state.model.state_dict().items()}
    loaded = []
    state.model.load_state_dict = loaded.append
    if is_new():
        begin_anew(state)
    with in_an_elastic_job(newcomers=1), watched_broadcasts() as moved:
        state.sync()
    assert places == {name: one.data_ptr() for name, one in state.model.state_dict().items()}
    assert not loaded and state.optimizer._horo_reducer.steps == 1
    takes_part = horo.rank() == 0 or is_new()
    assert bool(moved) == takes_part and all(root == 0 for _, root in moved), moved
    require_equal(state)
    train()
    require_equal(state)


def check_new_ranks_take_the_state_from_a_rank_of_their_host():
    """Even ranks are on one host, odd ones on another. The running means are each rank's own."""
    if horo.size() != 4:
        return
    state, train = training()
    state.sync()
    train()
    if is_new(2):
        begin_anew(state)
    real, elastic.digest_of_host = elastic.digest_of_host, lambda: bytes([horo.rank() % 2]) * 16
    try:
        with in_an_elastic_job(newcomers=2), watched_broadcasts() as moved:
            state.sync()
    finally:
        elastic.digest_of_host = real
    assert moved and {root for _, root in moved} == {horo.rank() % 2}
    means = horo.allgather_object(state.model[1].running_mean.tolist())
    assert means[0] == means[2] != means[1] == means[3], means
    require_equal(state)


def check_what_a_new_rank_has_already_does_not_travel():
    if horo.size() == 1:
        return
    model = torch.nn.Linear(2, 2)
    model.table = torch.nn.Parameter(torch.arange(20000.0), requires_grad=False)
    model.register_buffer("seen", torch.full((30000,), 5.0 if is_new() else 6.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    state = elastic.TorchState(model, optimizer)
    state._whole = not is_new()
    with in_an_elastic_job(newcomers=1), watched_broadcasts() as moved:
        state.sync()
    assert 20000 not in [count for count, _ in moved]
    assert model.table.tolist() == list(range(20000)) and model.seen.tolist() == [6.0] * 30000
    if is_new():
        begin_anew(state)
        state._prepare()
        model.table.data[7] = -1  # torch does not count this change, but a callback may make it
        state.register_reset_callbacks([int])
    with in_an_elastic_job(newcomers=1):
        state.sync()
    assert model.table.tolist() == list(range(20000))


def check_a_rank_that_is_behind_keeps_its_state_until_it_has_the_other():
    if horo.size() != 2:
        return
    state, train = training()
    state.sync()
    train()
    if horo.rank() == 1:
        state.optimizer._horo_reducer.own_step(lambda: None)
    expected, real, calls = everything(state), _elastic_exchange._broadcast_all, []

    def lost(named, root, names, **options):
        if not calls:
            calls.append(root)
            return real(named, root, names, **options)
        if horo.rank() == 0:
            for _, tensor in named:
                tensor.zero_()
        raise PeerLostError("the sender is lost")

    _elastic_exchange._broadcast_all = lost
    try:
        with in_an_elastic_job():
            fails(PeerLostError, state.sync)
    finally:
        _elastic_exchange._broadcast_all = real
    assert everything(state) == expected
    with in_an_elastic_job():
        state.sync()
    require_equal(state)


def check_ranks_that_are_behind_take_all_from_the_one_that_is_furthest():
    """Here the last rank is ahead by one step, which the others could not finish."""
    state, train = training(batch=0)
    state.sync()
    train()
    ahead = horo.rank() == horo.size() - 1
    if ahead:
        state.batch = 1
        with torch.no_grad():
            for parameter in state.model.parameters():
                parameter += 1
        state.optimizer._horo_reducer.own_step(lambda: None)
        state.sampler.record_batch(0, 3)
    expected = everything(state)
    with in_an_elastic_job():
        state.sync()
    expected = horo.broadcast_object(expected, horo.size() - 1)
    assert state.batch == (1 if horo.size() > 1 else state.batch)
    assert everything(state) == expected
    assert state.optimizer._horo_reducer.steps == 2
    train()
    require_equal(state)


def check_parameters_that_differ_after_equal_steps_are_noticed():
    if horo.size() == 1:
        return
    state, train = training()
    state.sync()
    train()
    if horo.rank() == 1:
        with torch.no_grad():
            state.model[0].weight[0, 0] += 1e-7 + 1e-3
    with in_an_elastic_job(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state.sync()
    words = [str(one.message) for one in caught]
    said = any("rank(s) 1 differ from those of rank 0" in text for text in words)
    assert said is (horo.rank() == 0), words
    require_equal(state)


def check_a_torn_step_is_taken_from_a_sound_rank():
    if horo.size() == 1:
        return
    state, train = training()
    state.sync()
    train()
    if horo.rank() == 0:
        with torch.no_grad():
            state.model[0].bias += 5
        state.optimizer._horo_reducer.torn = True
        state.optimizer._horo_reducer.steps += 1
    with in_an_elastic_job():
        state.sync()
    assert not state.optimizer._horo_reducer.torn and state.optimizer._horo_reducer.steps == 1
    assert state.model[0].bias.abs().max() < 5
    require_equal(state)


def check_samples_that_single_ranks_have_done_are_done_for_all():
    state, _ = training()
    state.sync()
    order = list(state.sampler._order)
    state.sampler.record_indices([order[10 + horo.rank()], order[30]])
    with in_an_elastic_job():
        state.sync()
    assert state.sampler.processed_num == horo.size() + 1
    left = set(sum(horo.allgather_object(list(state.sampler)), []))
    assert left == set(order) - set(order[10 : 10 + horo.size()]) - {order[30]}


def check_a_state_that_cannot_be_pickled_is_refused_on_all_ranks():
    state = elastic.TorchState(torch.nn.Linear(1, 1), lock=threading.Lock())
    if horo.size() > 1:
        fails(ValueError, state.sync, "the state of rank 0 cannot be sent")
    plain = elastic.ObjectState(lock=threading.Lock())
    if horo.size() > 1:
        fails(ValueError, plain.sync, "the state of rank 0 cannot be sent")


def check_tensors_among_the_values_travel():
    counts = collections.Counter(a=horo.rank())
    state = elastic.TorchState(
        torch.nn.Linear(1, 1), best=torch.full((3,), horo.rank()), none=None, counts=counts
    )
    state.sync()
    assert state.best.tolist() == [0, 0, 0] and state.none is None
    assert type(state.counts) is collections.Counter and state.counts["a"] == 0


def check_without_a_distributed_optimizer_all_take_the_state_of_rank_0():
    model = torch.nn.Linear(2, 2)
    state = elastic.TorchState(model, torch.optim.SGD(model.parameters(), lr=0.1), seen=horo.rank())
    state.sync()
    with torch.no_grad():
        model.weight += horo.rank()
    state.seen = horo.rank()
    state.sync()
    assert state.seen == 0
    rows = horo.allgather(model.weight.detach().reshape(1, -1))
    assert (rows == rows[0]).all()


def check_one_rank_that_knows_of_a_change_ends_the_try_of_all():
    state = elastic.ObjectState()
    state.check_host_updates()
    if horo.rank() == horo.size() - 1:
        state.on_hosts_updated(1, 2)
    fails(elastic.HostsUpdatedInterrupt, state.commit)
    state.commit()


def check_adasum_takes_a_failed_step_back():
    model = torch.nn.Linear(2, 2)
    horo.broadcast_parameters(model.state_dict(), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters(), op=horo.Adasum)
    model(torch.ones(1, 2)).sum().backward()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    combination = optimizer._horo_reducer
    if not combination.updates:
        return

    real = combination.updates[-1].finish

    def lost(*words):
        real(*words)
        raise horo.PeerLostError("rank 9")

    combination.updates[-1].finish = lost
    fails(horo.PeerLostError, optimizer.step)
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters()))
    assert combination.within_step() and combination.steps == 0 and not combination.torn
    combination.updates[-1].finish = real
    optimizer.step()
    assert not combination.within_step() and combination.steps == 1
