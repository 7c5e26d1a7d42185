# SPDX-License-Identifier: Apache-2.0
"""TorchState and ElasticSampler, in one process and on the ranks of jobs (jobs/torch_elastic.py)."""

import copy

import pytest
import torch

import horo.torch as horo
from horo._elastic import generation
from horo.torch import _elastic_handlers, elastic

JOB = "torch_elastic"
RANKS = (1, 2, 4)


def test_on_ranks(checked, ranks, check):
    checks = checked(JOB, ranks)
    if check == "clean_end":
        checks.require_clean_end()
    else:
        checks.require(check)


@pytest.fixture
def alone():
    horo.init(comm=[0])
    yield
    horo.shutdown()


@pytest.fixture
def elastic_job(monkeypatch, alone):
    """A job of one rank whose optimizers expect that peers come later."""
    from horo.torch import _adasum, _optimizer

    for module in (_optimizer, _adasum, elastic, generation):
        monkeypatch.setattr(module, "is_elastic", lambda: True)
    monkeypatch.setattr(generation, "pending_change", lambda: (0, 0))
    monkeypatch.setattr(generation, "survivors", lambda: 1)


def training(**values):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    return model, optimizer, elastic.TorchState(model, optimizer, **values)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def numbers(model):
    return [parameter.tolist() for parameter in model.parameters()]


# -- States ------------------------------------------------------------------------------------------


def test_a_state_goes_back_to_its_last_copy(alone):
    model, optimizer, state = training(batch=1, found=[])
    step(model, optimizer)
    state.batch = 2
    state.commit()
    kept, momentum = numbers(model), copy.deepcopy(optimizer.state_dict())
    step(model, optimizer)
    state.batch = 3
    state.found.append(7)
    state.restore()
    assert numbers(model) == kept and (state.batch, state.found) == (2, [])
    for one, other in zip(optimizer.state_dict()["state"].values(), momentum["state"].values()):
        assert torch.equal(one["momentum_buffer"], other["momentum_buffer"])
    assert state.model is model and state.optimizer is optimizer


def test_a_new_state_goes_back_to_its_beginning(alone):
    model, optimizer, state = training(batch=1)
    kept = numbers(model)
    step(model, optimizer)
    state.restore()
    assert numbers(model) == kept


def test_an_attribute_that_is_replaced_is_saved(alone):
    _, _, state = training()
    other = torch.nn.Linear(2, 1)
    kept = numbers(other)
    state.model = other
    with torch.no_grad():
        other.weight += 1
    state.restore()
    assert numbers(other) == kept and state.model is other


def test_schedulers_are_kept_by_their_state(alone):
    model, optimizer, _ = training()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    state = elastic.TorchState(model, optimizer, scheduler=scheduler)
    step(model, optimizer)
    scheduler.step()
    state.restore()
    assert scheduler.last_epoch == 0 and optimizer.param_groups[0]["lr"] == 0.5


def distributed(**values):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters())
    return model, optimizer, elastic.TorchState(model, optimizer, **values)


def test_commit_copies_no_parameters_that_an_optimizer_knows(elastic_job, monkeypatch):
    copied = []
    monkeypatch.setattr(_elastic_handlers.copy, "deepcopy", lambda one: copied.append(one) or one)
    model, optimizer, state = distributed(batch=0)
    other = torch.nn.Linear(1, 1)  # no optimizer knows it
    state.commit()
    assert not copied
    mixed = elastic.TorchState(model, optimizer, teacher=other)
    mixed.commit()
    assert copied and all(set(one) == {"weight", "bias"} and one["weight"].shape == (1, 1) for one in copied)


def test_commit_walks_through_a_model_once(elastic_job, monkeypatch):
    model, _, state = distributed(batch=0)
    walk, walks = model.parameters, []
    monkeypatch.setattr(model, "parameters", lambda: walks.append(1) or walk())
    for _ in range(3):
        state.commit()
    assert not walks
    state.model = torch.nn.Linear(2, 1)  # no optimizer knows it
    state.commit()
    kept = numbers(state.model)
    with torch.no_grad():
        state.model.weight.fill_(9)
    state._handlers["model"].restore()
    assert numbers(state.model) == kept


def test_a_state_without_copies_refuses_to_go_back(elastic_job):
    model, optimizer, state = distributed(batch=0)
    with pytest.raises(RuntimeError, match="call save()"):
        state.restore()
    state.save()
    kept = numbers(model)
    step(model, optimizer)
    state.restore()
    assert numbers(model) == kept
    state.commit()
    with pytest.raises(RuntimeError, match="call save()"):
        state.restore()


def test_commit_of_a_subclass_calls_its_save(elastic_job):
    calls = []

    class Mine(elastic.TorchState):
        def save(self):
            calls.append("save")
            super().save()

    state = Mine(torch.nn.Linear(1, 1))
    state.commit()
    assert calls == ["save", "save"]  # when it was made, and by commit()


def test_a_loss_rolls_back_only_what_no_optimizer_knows(elastic_job):
    model, optimizer, state = distributed(batch=0)
    step(model, optimizer)
    kept, state.batch = numbers(model), 1
    state._failed()
    assert numbers(model) == kept and state.batch == 1
    plain_model, plain_optimizer, plain = training(batch=0)
    kept = numbers(plain_model)
    step(plain_model, plain_optimizer)
    plain.batch = 1
    plain._failed()
    assert numbers(plain_model) == kept and plain.batch == 0


def test_lbfgs_changes_parameters_between_reductions_so_it_is_copied(elastic_job):
    model = torch.nn.Linear(1, 1)
    optimizer = horo.DistributedOptimizer(torch.optim.LBFGS(model.parameters()))
    state = elastic.TorchState(model, optimizer)
    state.commit()
    state.restore()


def test_an_optimizer_works_in_the_next_generation(elastic_job):
    """Also when gradients were left behind, in the arena, and in a group."""
    for options in ({}, {"gradients_in_shared_memory": True}, {"groups": 1}, {"op": horo.Adasum}):
        model = torch.nn.Linear(2, 1)
        twin = copy.deepcopy(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        optimizer = horo.DistributedOptimizer(optimizer, model.named_parameters(), **options)
        plain = torch.optim.SGD(twin.parameters(), lr=0.5)
        for generations in range(3):
            for _ in range(2):
                step(model, optimizer)
                step(twin, plain)
            model(torch.ones(1, 2)).sum().backward()  # its step will never come
            horo.shutdown()
            if options.get("op") != horo.Adasum:  # it does not see backwards
                assert model.weight.grad is None
            horo.init(comm=[0])
        for one, other in zip(numbers(model), numbers(twin)):
            assert torch.allclose(torch.tensor(one), torch.tensor(other)), options
        assert optimizer._horo_reducer.steps == 6


def test_an_optimizer_of_a_process_set_ends_with_the_generation(elastic_job):
    own = horo.ProcessSet([0])
    own.names = type(horo.global_process_set.names)(0)  # one rank has no second set
    model = torch.nn.Linear(2, 1)
    optimizer = horo.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1), process_set=own)
    horo.shutdown()
    horo.init(comm=[0])
    with pytest.raises(ValueError, match="process set that ended"):
        step(model, optimizer)


# -- Digests -----------------------------------------------------------------------------------------


def test_digests_differ_by_one_bit():
    tensors = [torch.arange(12.0).reshape(3, 4), torch.ones(3, dtype=torch.bfloat16), torch.empty(0)]
    first = elastic.digest_of(tensors)
    assert first == elastic.digest_of([one.clone() for one in tensors]) and len(first) == 16
    assert first == elastic.digest_of([tensors[0].t().contiguous().t(), *tensors[1:]])
    tensors[1][2] = 1.0078125
    assert first != elastic.digest_of(tensors)


# -- The sampler -------------------------------------------------------------------------------------


def as_rank(monkeypatch, rank, size):
    from horo.torch import _sampler

    monkeypatch.setattr(_sampler._job, "is_initialized", lambda: True)
    monkeypatch.setattr(_sampler._job, "rank", lambda: rank)
    monkeypatch.setattr(_sampler._job, "size", lambda: size)


def parts(monkeypatch, size, count, **arguments):
    found = []
    for rank in range(size):
        as_rank(monkeypatch, rank, size)
        found.append(elastic.ElasticSampler(range(count), **arguments))
    return found


def test_ranks_get_different_samples(monkeypatch):
    samplers = parts(monkeypatch, 3, 11)
    assert [len(one) for one in samplers] == [4, 4, 4]
    everything = [sample for one in samplers for sample in one]
    assert set(everything) == set(range(11)) and len(everything) == 12
    assert list(samplers[0]) == list(samplers[0]) != sorted(samplers[0])


def test_the_order_is_that_of_horovod(monkeypatch):
    """random.Random(seed + epoch).shuffle, dealt in turn."""
    import random

    (sampler,) = parts(monkeypatch, 1, 9, seed=4)
    sampler.set_epoch(3)
    order = list(range(9))
    random.Random(7).shuffle(order)
    assert list(sampler) == order
    (sampler,) = parts(monkeypatch, 1, 9, shuffle=False)
    assert list(sampler) == list(range(9))


def test_an_epoch_continues_where_it_was(monkeypatch):
    sampler, _ = parts(monkeypatch, 2, 20, shuffle=False)
    sampler.record_batch(0, 3)
    as_rank(monkeypatch, 0, 1)
    sampler.set_epoch(0)  # programs call it before each epoch, also when they begin again
    sampler.reset()
    assert list(sampler) == list(range(6, 20)) and sampler.processed_num == 6
    sampler.record_batch(1, 100)
    assert sampler.processed_num == 20
    sampler.reset()
    assert list(sampler) == [] and len(sampler) == 0
    sampler.set_epoch(0)
    assert len(sampler) == 20 and sampler.processed_num == 0
    sampler.record_batch(0, 3)
    sampler.set_epoch(1)
    assert sampler.processed_num == 0 and sampler.epoch == 1


def test_a_state_dict_moves_to_other_ranks(monkeypatch):
    first = parts(monkeypatch, 2, 30)[0]
    first.set_epoch(2)
    first.record_batch(0, 5)
    first.record_indices([first._order[20]])
    told = first.state_dict()
    others = parts(monkeypatch, 3, 30)
    for rank, one in enumerate(others):
        as_rank(monkeypatch, rank, 3)
        one.load_state_dict(told)
    found = sorted(sample for one in others for sample in one)
    assert set(found) == set(first._order[10:]) - {first._order[20]} and len(found) == 21  # 19 are left
    others[0].load_state_dict({"epoch": 1, "processed_num": 4})  # as Horovod writes it
    assert others[0].processed_num == 4


def test_loaders_read_through_it(monkeypatch):
    (sampler,) = parts(monkeypatch, 1, 7, shuffle=False)
    data = torch.utils.data.TensorDataset(torch.arange(7))
    batches = [one[0].tolist() for one in torch.utils.data.DataLoader(data, 3, sampler=sampler)]
    assert batches == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.parametrize("record_first", (False, True))
@pytest.mark.parametrize("passes", (1, 2))
def test_a_batch_whose_step_did_not_end_is_visited_again(elastic_job, record_first, passes):
    model = torch.nn.Linear(2, 1)
    optimizer = horo.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.5),
        model.named_parameters(),
        backward_passes_per_step=passes,
    )
    sampler = elastic.ElasticSampler(range(100))
    state = elastic.TorchState(model, optimizer, sampler=sampler)
    state.sync()

    def batch(steps=True):
        for number in range(passes):
            if record_first:
                sampler.record_batch(number, 3)
            model(torch.ones(1, 2)).sum().backward()
            if not record_first and (number + 1 < passes or steps):
                if number + 1 == passes:
                    optimizer.step()
                sampler.record_batch(number, 3)
        if record_first and steps:
            optimizer.step()

    batch()
    batch()
    batch(steps=False)
    horo.shutdown()
    state.on_reset()
    assert sampler.processed_num == 2 * 3 * passes
    horo.init(comm=[0])
    batch()
    horo.shutdown()
    assert sampler.processed_num == 3 * 3 * passes


def test_batches_may_be_recorded_once_per_step_of_several_backwards(elastic_job):
    """Before the backwards, as programs for Horovod do it, also with steps that a scaler leaves out."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    optimizer = horo.DistributedOptimizer(
        optimizer, model.named_parameters(), backward_passes_per_step=3
    )
    sampler = elastic.ElasticSampler(range(100))
    state = elastic.TorchState(model, optimizer, sampler=sampler)
    state.sync()

    def batch(backwards=3, left_out=False):
        sampler.record_batch(0, 6)
        optimizer.zero_grad()
        for _ in range(backwards):
            model(torch.ones(1, 2)).sum().backward()
        if left_out:
            optimizer.synchronize()
        elif backwards == 3:
            optimizer.step()

    batch()
    batch(left_out=True)
    batch()
    batch(backwards=2)
    next_generation(state)
    assert sampler.processed_num == 3 * 6
    batch(backwards=0)
    next_generation(state)
    assert sampler.processed_num == 3 * 6
    batch()
    optimizer.set_backward_passes_per_step(2)
    next_generation(state)
    assert sampler.processed_num == 4 * 6


def next_generation(state):
    """As in a loop that a program has written."""
    horo.shutdown()
    horo.init(comm=[0])
    state.sync()


# -- Several optimizers ------------------------------------------------------------------------------


def steps_of(way, model, optimizer):
    """One step, taken in one of three ways. Returns what step() does."""

    def backward():
        optimizer.zero_grad()
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        return loss.item()

    if way == "closure":
        return optimizer.step(backward)
    backward()
    if way == "plain":
        return optimizer.step()
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        return optimizer.step()


@pytest.mark.parametrize("way", ("plain", "closure", "skip"))
def test_a_step_that_was_done_already_is_left_out(elastic_job, way):
    model, optimizer, _ = distributed()
    steps_of(way, model, optimizer)
    kept, reducer = numbers(model), optimizer._horo_reducer
    reducer.ahead = 1
    found = steps_of(way, model, optimizer)
    assert numbers(model) == kept and (reducer.steps, reducer.ahead) == (1, 0)
    assert not reducer.within_step() and not reducer.torn
    assert found is None if way != "closure" else isinstance(found, float)
    steps_of(way, model, optimizer)
    assert numbers(model) != kept and reducer.steps == 2


def test_an_optimizer_that_stepped_before_another_one_failed_is_ahead(elastic_job):
    model, optimizer, _ = distributed()
    other, its_optimizer, _ = distributed()
    state = elastic.TorchState(model, optimizer, other=other, its_optimizer=its_optimizer)
    reducers = [optimizer._horo_reducer, its_optimizer._horo_reducer]
    for _ in range(2):
        step(model, optimizer)
        step(other, its_optimizer)
        state.check_host_updates()
    step(model, optimizer)
    state.sync()
    assert [one.ahead for one in reducers] == [1, 0] and [one.steps for one in reducers] == [3, 2]
    step(model, optimizer)
    step(other, its_optimizer)
    state.sync()
    assert [one.ahead for one in reducers] == [0, 0] and [one.steps for one in reducers] == [3, 3]


# -- Files -------------------------------------------------------------------------------------------


def packed(value):
    from horo._elastic.saving import Buffers
    from horo.torch._saved_tensors import pack, unpack

    parts = pack(value, Buffers())
    return parts, unpack([bytearray(part) for part in parts])


def test_tensors_of_a_file_are_as_they_were():
    base = torch.arange(12.0).reshape(3, 4)
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    value = {
        "strided": base.t()[1:],
        "twice": [base, base],
        "none": torch.empty(0, 3),
        "scalar": torch.tensor(7, dtype=torch.int64),
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
        "complex": torch.view_as_complex(torch.ones(3, 2)).conj(),
        "bool": torch.tensor([True, False]),
        "sparse": torch.eye(2).to_sparse(),
        "parameter": parameter,
        "leaf": torch.ones(1, requires_grad=True),
        "other": {"a": (1, None)},
    }
    parts, found = packed(value)
    assert found["twice"][0] is found["twice"][1] and len(parts) == 12
    for name in ("strided", "none", "scalar", "half", "complex", "bool"):
        assert found[name].dtype is value[name].dtype and torch.equal(found[name], value[name]), name
    assert torch.equal(found["sparse"].to_dense(), torch.eye(2))
    assert type(found["parameter"]) is torch.nn.Parameter and not found["parameter"].requires_grad
    assert found["leaf"].requires_grad and found["other"] == value["other"]


def test_a_copy_for_a_file_is_not_changed_by_later_steps():
    tensor = torch.zeros(4)
    parts, _ = packed([tensor])
    tensor += 1
    assert bytes(parts[1]) == bytes(16)


def test_tensors_are_not_copied_when_something_cannot_be_pickled():
    import threading

    from horo.torch._saved_tensors import pack

    with pytest.raises(TypeError, match="lock"):
        pack([torch.ones(4), threading.Lock()], None)


def resumed(tmp_path, *arguments, **values):
    model, optimizer, state = training(*arguments, **values)
    state.save_to(tmp_path, every=1, keep=2)
    state.resume()
    return model, optimizer, state


def test_a_torch_state_resumes_from_its_files(alone, tmp_path, capfd):
    data = list(range(20))
    sampler = elastic.ElasticSampler(data, shuffle=False)
    model, optimizer, state = resumed(tmp_path, sampler=sampler, batch=0, row=torch.ones(2))
    for number in range(3):
        step(model, optimizer)
        state.batch += 1
        sampler.record_batch(number, 2)
        state.commit()
        state._saver._writer.finish()
    kept, momentum = numbers(model), copy.deepcopy(optimizer.state_dict()["state"])
    step(model, optimizer)
    sampler = elastic.ElasticSampler(data, shuffle=False)
    other, its_optimizer, state = resumed(tmp_path, sampler=sampler, batch=0, row=None)
    assert "resumes after commit 3" in capfd.readouterr().err
    assert numbers(other) == kept and state.batch == 3 and state.row.tolist() == [1, 1]
    assert list(sampler) == list(range(6, 20))
    for one, same in zip(its_optimizer.state_dict()["state"].values(), momentum.values()):
        assert torch.equal(one["momentum_buffer"], same["momentum_buffer"])
    step(other, its_optimizer)
    state.restore()
    assert numbers(other) == kept


def test_a_file_with_other_objects_does_not_fit(alone, tmp_path):
    _, _, state = resumed(tmp_path)
    state._end_saving()
    with pytest.raises(ValueError, match="the file and the state do not both have sampler"):
        resumed(tmp_path, sampler=elastic.ElasticSampler([1]))


def test_a_state_is_not_saved_within_a_step(elastic_job, tmp_path):
    model, optimizer, state = distributed(batch=0)
    optimizer.set_backward_passes_per_step(2)
    state.save_to(tmp_path, every=1)
    state.resume()

    def files():
        state._saver._writer.finish()
        return sorted(path.name for path in tmp_path.iterdir())

    model(torch.ones(1, 2)).sum().backward()
    state.check_host_updates()
    assert files() == []
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state.check_host_updates()
    assert files() == ["horo-000000000002.state"]
    _, other, state = distributed(batch=0)
    state.save_to(tmp_path)
    state.resume()
    assert other._horo_reducer.steps == 1 and state._saver.boundaries == 2


def test_a_file_tells_the_steps_of_the_training_and_not_of_all_optimizers(elastic_job):
    model, _, state = distributed()
    other = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.5)
    state = elastic.TorchState(model, state.optimizer, other=horo.DistributedOptimizer(other))
    for reducer in state._reducers():
        reducer.steps = 5
    assert len(state._reducers()) == 2 and state._steps() == 5
