# SPDX-License-Identifier: Apache-2.0
"""horo.numpy: process sets, join, groups, and barriers from many threads."""

import threading

import numpy

from expect import fails
import horo.numpy as horo


def total(value, **arguments):
    return horo.allreduce(numpy.array([float(value)]), op=horo.Sum, **arguments)[0]


def goes_on():
    assert total(1) == horo.size()
    assert total(1, name="goes_on") == horo.size()


def rings():
    """Overlapping sets: each rank is in two of them. With two ranks, each is alone in one set."""
    n = horo.size()
    if n == 2:
        return [[0], [1]]
    return [sorted([r, (r + 1) % n]) for r in range(n)]


class Sets:
    """Process sets that exist for one block."""

    def __init__(self, *ranks):
        self.ranks = ranks

    def __enter__(self):
        self.sets = [horo.add_process_set(ranks) for ranks in self.ranks]
        return self.sets

    def __exit__(self, kind, *_):
        for process_set in self.sets if kind is None else []:
            assert horo.remove_process_set(process_set)


def check_life_of_a_set():
    n, me = horo.size(), horo.rank()
    given = horo.ProcessSet(range(n - 1))
    assert given.process_set_id is None and given.rank() is None and given.size() is None
    assert horo.add_process_set(given) is given
    assert given.process_set_id == 1 and given.ranks == list(range(n - 1)) and given.size() == n - 1
    assert given.included() == horo.is_process_set_included(given) == (me < n - 1)
    assert horo.is_process_set_included(1) == given.included()
    if given.included():
        assert given.rank() == me
    else:
        fails(ValueError, given.rank, f"rank {me}", "process set 1")
    with Sets([n - 1]) as (other,):
        assert other.process_set_id == 2 and other.included() == (me == n - 1)
        found = horo.get_process_set_ids_and_ranks()
        assert found == {0: list(range(n)), 1: given.ranks, 2: [n - 1]}, found
    assert horo.remove_process_set(given) and given.process_set_id is None
    assert not horo.remove_process_set(given)
    assert not horo.remove_process_set(horo.global_process_set)
    assert horo.add_process_set(given).process_set_id == 1
    assert horo.remove_process_set(given)
    world = horo.global_process_set
    assert (world.process_set_id, world.rank(), world.size()) == (0, me, n) and world.included()
    assert world.ranks == list(range(n))


def check_every_collective_by_the_sets_ranks():
    with Sets(*rings()) as sets:
        for process_set in sets:
            if not process_set.included():
                continue
            n, me, ranks = process_set.size(), process_set.rank(), process_set.ranks
            there = {"name": "same", "process_set": process_set}
            mine = numpy.full((n, 2), float(horo.rank()))
            mean = numpy.full((n, 2), sum(ranks) / n)
            assert numpy.array_equal(horo.allreduce(mine, **there), mean)
            assert numpy.array_equal(horo.allreduce_(mine.copy(), **there), mean)
            twice = numpy.concatenate([mine, mine])
            wanted = numpy.concatenate([mean, mean])[:2]
            assert numpy.array_equal(horo.reducescatter(twice, **there), wanted)
            for found in horo.grouped_allreduce([mine, mine], **there):
                assert numpy.array_equal(found, mean)
            for found in horo.grouped_allreduce_([mine.copy()], **there):
                assert numpy.array_equal(found, mean)
            for found in horo.grouped_reducescatter([mine, mine], **there):
                assert numpy.array_equal(found, mean[:1])
            rows = numpy.repeat(numpy.array(ranks, float), n)
            assert numpy.array_equal(horo.allgather(mine, **there)[:, 0], rows)
            for found in horo.grouped_allgather([mine, mine], **there):
                assert numpy.array_equal(found[:, 0], rows)
            for root in ranks:
                assert (horo.broadcast(mine, root, **there) == root).all()
                assert (horo.broadcast_(mine.copy(), root, **there) == root).all()
                assert horo.broadcast_object({root: horo.rank()}, root, **there) == {root: root}
            found, received = horo.alltoall(mine, [1] * n, **there)
            assert found[:, 0].tolist() == ranks and received.tolist() == [1] * n
            assert horo.alltoall(mine, process_set=process_set)[me, 0] == horo.rank()
            horo.barrier(process_set)
    goes_on()


def check_sets_do_not_wait_for_each_other():
    """Each rank submits to its sets and waits for them in its own order."""
    with Sets(*rings()) as sets:
        mine = [process_set for process_set in sets if process_set.included()]
        for round in range(20):
            started = [
                (s, horo.allreduce_async(numpy.ones(1000), op=horo.Sum, name="x", process_set=s))
                for s in (mine if (horo.rank() + round) % 2 else mine[::-1])
            ]
            for process_set, handle in started[::-1]:
                assert (horo.synchronize(handle) == process_set.size()).all()
            unnamed = [horo.allgather_async(numpy.ones(1), process_set=s) for s in mine]
            for process_set, handle in zip(mine, unnamed):
                assert len(horo.synchronize(handle)) == process_set.size()


def check_adding_and_removing_while_others_run():
    wrong, rounds = [], 60

    def work(process_set, name):
        for i in range(rounds):
            found = total(i, name=name, process_set=process_set)
            if found != i * process_set.size():
                wrong.append((name, i, found))

    with Sets([0]) as (steady,):
        threads = [threading.Thread(target=work, args=(horo.global_process_set, "busy"))]
        if steady.included():
            threads.append(threading.Thread(target=work, args=(steady, "alone")))
        for thread in threads:
            thread.start()
        for i in range(12):
            with Sets([horo.size() - 1] if i % 2 else range(1, horo.size())) as (fleeting,):
                if fleeting.included():
                    assert total(1, process_set=fleeting) == fleeting.size()
        for thread in threads:
            thread.join()
    assert not wrong, wrong


def check_removal_ends_incomplete_operations():
    if horo.size() == 2:
        return
    process_set = horo.add_process_set([0, 1])
    handle = None
    if horo.rank() == 0:
        handle = horo.allreduce_async(numpy.ones(3), process_set=process_set)
    assert horo.remove_process_set(process_set)
    if handle is not None:
        fails(horo.ShutDownError, lambda: horo.synchronize(handle))
    one = numpy.ones(1)
    fails(ValueError, lambda: horo.allreduce(one, process_set=process_set), "does not exist")
    goes_on()


def check_refused_sets():
    n = horo.size()
    fails(ValueError, lambda: horo.add_process_set([]), "without ranks")
    fails(ValueError, lambda: horo.add_process_set([0, n]), n)
    fails(ValueError, lambda: horo.add_process_set([0, 0]), "twice")
    fails(ValueError, lambda: horo.add_process_set(range(n)), "already")
    fails(ValueError, lambda: horo.add_process_set("zero"), "zero")
    fails(ValueError, lambda: horo.add_process_set(7), "7")
    with Sets([0]) as (process_set,):
        fails(ValueError, lambda: horo.add_process_set([0]), "process set 1 already")
        fails(ValueError, lambda: horo.add_process_set(process_set), "already")
        other = [0, n - 1] if n > 2 else [1]
        mine = other if horo.rank() else [1] if n > 2 else [0, 1]
        fails(horo.MismatchError, lambda: horo.add_process_set(mine), "in the same order")
    fails(ValueError, lambda: horo.remove_process_set(1), "ProcessSet")
    fails(ValueError, lambda: horo.is_process_set_included(9), "9")
    goes_on()


def check_refused_operations():
    one = numpy.ones((1, 1))
    fails(ValueError, lambda: horo.allreduce(one, process_set=3), "3", "add_process_set")
    never = horo.ProcessSet([0])
    fails(ValueError, lambda: horo.barrier(never), "[0]", "does not exist")
    with Sets([0]) as (process_set,):
        if horo.rank():
            words = (f"rank {horo.rank()} is not in process set 1", "[0]")
            arguments = {"process_set": process_set}
            fails(ValueError, lambda: horo.allreduce(one, **arguments), *words)
            fails(ValueError, lambda: horo.allgather(one, **arguments), *words)
            fails(ValueError, lambda: horo.reducescatter(one, **arguments), *words)
            fails(ValueError, lambda: horo.alltoall(one, **arguments), *words)
            fails(ValueError, lambda: horo.broadcast(one, 0, **arguments), *words)
            fails(ValueError, lambda: horo.grouped_allreduce([one], **arguments), *words)
            fails(ValueError, lambda: horo.barrier(process_set), *words)
            fails(ValueError, lambda: horo.join(process_set), *words)
        else:
            horo.barrier(process_set)
            fails(ValueError, lambda: horo.broadcast(one, 1, process_set=process_set), 1)
    goes_on()


def check_join_with_uneven_data():
    """Rank r has r + 1 batches of named, unnamed and grouped tensors, all in flight at once."""
    n = horo.size()
    for _ in range(2):
        for batch in range(horo.rank() + 1):
            left = n - batch  # ranks that still have data
            named = horo.allreduce_async(numpy.ones(3), op=horo.Sum, name=f"uneven{batch}")
            mean = horo.allreduce_async(numpy.ones(3))
            group = horo.grouped_allreduce_async([numpy.ones(2), numpy.ones(5)], op=horo.Sum)
            assert (horo.synchronize(named) == left).all()
            assert numpy.allclose(horo.synchronize(mean), left / n)
            for found in horo.synchronize(group):
                assert (found == left).all()
            horo.barrier()
        assert horo.join() == n - 1
        # Unnamed calls have the same numbers again.
        goes_on()
        horo.barrier()
        assert [len(part) for part in horo.grouped_allgather([numpy.ones(1)] * 2)] == [n, n]


def check_other_reductions_and_kinds_after_a_join():
    if horo.rank():
        for op, wanted in ((horo.Min, 1), (horo.Max, horo.size() - 1)):
            value = numpy.array([float(horo.rank())])
            assert horo.allreduce(value, op=op, name="extreme")[0] == wanted
        fails(horo.MismatchError, lambda: horo.allgather(numpy.ones(1), name="rows"))
        # The other ranks join after rank 0 has joined for certain.
        assert total(1, name="left") == horo.size() - 1
    assert 0 <= horo.join() < horo.size()
    goes_on()


def check_join_in_one_set_only():
    with Sets(*rings()) as sets:
        for process_set in sets:
            if process_set.included():
                if process_set.rank():
                    assert total(1, name="x", process_set=process_set) == process_set.size() - 1
                assert horo.join(process_set) == process_set.ranks[-1]
                assert total(1, process_set=process_set) == process_set.size()
        goes_on()


def check_nothing_is_submitted_after_a_join():
    """Rank 0 joins first and is refused. Rank 1 joins when a message in the world tells it so."""
    if horo.size() == 2:
        return  # there is no other set of two
    with Sets([0, 1]) as (pair,):
        maybe = {"name": "maybe", "process_set": pair}
        last = []
        if horo.rank() == 0:
            thread = threading.Thread(target=lambda: last.append(horo.join(pair)))
            thread.start()
            while True:  # until the other thread has joined
                try:
                    assert total(1, **maybe) == 2
                except ValueError as error:
                    assert "has joined" in str(error), error
                    break
            horo.barrier()
            thread.join()
        else:
            while horo.rank() == 1 and total(1, **maybe) == 2:
                pass
            horo.barrier()
            if horo.rank() == 1:
                last.append(horo.join(pair))
        assert last == ([1] if pair.included() else [])
    goes_on()


def check_groups_that_differ():
    parts = [numpy.ones(2 + horo.rank())] * (3 if horo.rank() else 2)
    fails(horo.MismatchError, lambda: horo.grouped_allreduce(parts, name="of 2 or 3"), "the group")
    goes_on()
    one = numpy.ones(1)
    if horo.rank():
        fails(horo.MismatchError, lambda: horo.grouped_allreduce([one] * 2, name="or none"))
    else:
        fails(horo.MismatchError, lambda: total(1, name="or none.0"), "the group", "none")
    goes_on()
    sizes = [2, 3 + horo.rank()]
    parts = [numpy.ones(size) for size in sizes]
    fails(horo.MismatchError, lambda: horo.grouped_allreduce(parts, name="shapes"), "shape")
    for found in horo.grouped_allreduce([numpy.ones(4)] * 2, name="shapes", op=horo.Sum):
        assert (found == horo.size()).all()


def check_a_group_is_submitted_whole_or_not_at_all():
    one, names = numpy.ones(1), ("half.2", "half.0", "half.1")
    if horo.rank() == 0:
        horo.barrier()
        started = [horo.allreduce_async(one, name=name, op=horo.Sum) for name in names]
    else:
        started = [horo.allreduce_async(one, name=names[0], op=horo.Sum)]
        refused = lambda: horo.grouped_allreduce_async([one] * 3, name="half")
        fails(horo.DuplicateNameError, refused, names[0])
        # The other members are not in flight.
        started += [horo.allreduce_async(one, name=name, op=horo.Sum) for name in names[1:]]
        horo.barrier()
    for handle in started:
        assert horo.synchronize(handle)[0] == horo.size()


def check_barriers_of_many_threads():
    with Sets(*rings()) as sets:
        mine = [horo.global_process_set, *(s for s in sets if s.included())]
        passed = []

        def work():
            for _ in range(15):
                for process_set in mine:
                    horo.barrier(process_set)
            passed.append(True)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(passed) == 8
