# SPDX-License-Identifier: Apache-2.0
"""Files of elastic states: their format, damage, the thread that writes them, and what stays."""

import errno
import io
import os
import pickle
import sys
import threading

import pytest

from horo import errors
from horo._elastic import resuming, saved_file, saving
from horo._elastic.saved_file import Damaged, Head, Newer, Unusable
from horo._elastic.saver import Saver
from horo._elastic.state import ObjectState, State

PARTS = [b"first", bytearray(b"second" * 50), b"", bytearray(b"x")]


def head(number, steps=-1, ranks=2):
    return Head(number, steps, generation=3, ranks=ranks, saved_at=1e9, version="1.2.3")


def write(folder, number, parts=PARTS):
    saved_file.write(str(folder), head(number), parts)
    return folder / head(number).name()


def names(folder):
    return sorted(os.listdir(folder))


# -- The format --------------------------------------------------------------------------------------


def test_a_file_has_what_was_written(tmp_path):
    path = write(tmp_path / "new" / "folder", 17)
    assert names(path.parent) == ["horo-000000000017.state"]
    found, parts = saved_file.read(str(path))
    assert parts == [bytearray(part) for part in PARTS]
    assert (found.number, found.steps, found.generation, found.ranks) == (17, -1, 3, 2)
    assert (found.saved_at, found.version, found.describe()) == (1e9, "1.2.3", "commit 17")
    assert head(17, steps=40).describe() == "step 40"
    saved_file.verify(str(path))


def test_a_file_of_any_shorter_length_is_torn(tmp_path):
    path = write(tmp_path, 1)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        for use in (saved_file.read, saved_file.verify):
            with pytest.raises(Damaged, match="torn"):
                use(str(path))
    path.write_bytes(whole + b"x")
    with pytest.raises(Damaged, match="corrupt"):
        saved_file.read(str(path))


def test_a_file_with_any_other_byte_is_damaged(tmp_path):
    path = write(tmp_path, 1)
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        for use in (saved_file.read, saved_file.verify):
            with pytest.raises(Damaged):
                use(str(path))


def test_a_file_of_a_later_format_is_refused_and_not_passed_over(tmp_path):
    import hashlib

    path = write(tmp_path, 1)
    changed = bytearray(path.read_bytes())[: -saved_file.CHECKSUM]
    changed[8] = 2
    path.write_bytes(changed + hashlib.blake2b(changed, digest_size=saved_file.CHECKSUM).digest())
    with pytest.raises(Newer, match="Horo 1.2.3 has written it in format 2"):
        saved_file.newest(str(tmp_path))
    with pytest.raises(ValueError, match="cannot resume.*000001.state.*format 2"):
        resuming.find(str(tmp_path), lambda *_: None)


def test_a_file_that_cannot_be_written_leaves_the_others(tmp_path, monkeypatch):
    write(tmp_path, 1)
    monkeypatch.setattr(saved_file.os, "fsync", lambda fd: os.stat(str(tmp_path / "gone")))
    with pytest.raises(FileNotFoundError):
        write(tmp_path, 2)
    assert names(tmp_path) == ["horo-000000000001.state"]


# -- The folder --------------------------------------------------------------------------------------


def test_the_newest_files_stay(tmp_path):
    good = {}
    for number in range(1, 6):
        write(tmp_path, number)
        saved_file.remove_old(str(tmp_path), 2, head(number).name(), good)
    assert names(tmp_path) == [head(number).name() for number in (4, 5)]
    assert set(good) == set(names(tmp_path))


def test_files_that_are_not_good_do_not_count_among_those_that_stay(tmp_path):
    for number in range(1, 6):
        write(tmp_path, number)
    torn, corrupt = tmp_path / head(3).name(), tmp_path / head(4).name()
    torn.write_bytes(torn.read_bytes()[:-1])
    corrupt.write_bytes(corrupt.read_bytes().replace(b"first", b"worst"))
    saved_file.remove_old(str(tmp_path), 2, head(5).name(), {})
    assert names(tmp_path) == [head(number).name() for number in (2, 5)]


def test_files_before_which_the_training_has_gone_back_stay_until_it_reaches_them(tmp_path):
    for number in (1, 2, 8):
        write(tmp_path, number)
    saved_file.remove_old(str(tmp_path), 1, head(2).name(), {})
    assert names(tmp_path) == [head(number).name() for number in (2, 8)]


def test_what_a_killed_writer_has_left_is_removed(tmp_path):
    import fcntl

    for name in (".horo-a-1.part", ".horo-b-2.part", "other.part"):
        (tmp_path / name).write_bytes(b"half")
    with open(tmp_path / ".horo-b-2.part", "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        saved_file.remove_torn(str(tmp_path))
    assert names(tmp_path) == [".horo-b-2.part", "other.part"]


def test_files_are_tried_from_the_newest_on(tmp_path, capfd):
    for number in (3, 20, 1000, 7):
        write(tmp_path, number)
    torn, corrupt = tmp_path / head(1000).name(), tmp_path / head(20).name()
    torn.write_bytes(torn.read_bytes()[:100])
    corrupt.write_bytes(corrupt.read_bytes().replace(b"first", b"worst"))
    loaded = []
    assert resuming.find(str(tmp_path), lambda found, parts: loaded.append(parts))[1].number == 7
    assert [bytes(part) for part in loaded[0]] == [bytes(part) for part in PARTS]
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 3 and all(line.startswith("horo: ") for line in said), said
    assert f"{torn} is passed over: it is torn: it has 100 of" in said[0]
    assert f"{corrupt} is passed over: it is corrupt: its checksum is wrong" in said[1]
    assert "resumes after commit 7" in said[2] and "by 2 rank(s)" in said[2]


def test_a_training_without_a_usable_file_says_that_it_begins_anew(tmp_path, capfd):
    assert resuming.find(str(tmp_path / "none"), None) is None
    assert capfd.readouterr().err == ""
    write(tmp_path, 1).write_bytes(b"")
    assert resuming.find(str(tmp_path), None) is None
    assert f"no file in {tmp_path} can be used: the training begins anew" in capfd.readouterr().err
    assert resuming.find("/dev/null", None) is None
    assert "/dev/null is passed over: it cannot be read: Not a directory" in capfd.readouterr().err


opened = []


def note(what):
    opened.append(what)


class Trap:
    """Unpickling it is noticed."""

    def __reduce__(self):
        return note, (1,)


def test_nothing_is_unpickled_before_the_checksum_is_right(tmp_path):
    path = write(tmp_path, 1, [pickle.dumps({"commits": 0, "values": {"one": Trap()}})])
    whole = path.read_bytes()
    for place in (97, len(whole) // 2, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        state = ObjectState(one=None)
        state.save_to(tmp_path)
        state.resume()
        assert opened == [] and not state._whole
    path.write_bytes(whole)
    state = ObjectState(one=None)
    state.save_to(tmp_path)
    state.resume()
    assert opened == [1] and state._whole


def test_a_good_file_of_another_program_is_not_passed_over(tmp_path):
    write(tmp_path, 1, [pickle.dumps(7)])
    state = ObjectState()
    state.save_to(tmp_path)
    with pytest.raises(ValueError, match="0001.state is good, but this training cannot load it"):
        state.resume()


# -- When --------------------------------------------------------------------------------------------


def test_a_state_is_due_after_a_number_of_boundaries_or_minutes(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(saving.time, "monotonic", lambda: now[0])
    schedule = saving.Schedule(3, None)
    assert [schedule.due() for _ in range(4)] == [False, False, True, True]
    schedule.restart()
    assert not schedule.due()
    schedule = saving.Schedule(None, 2)
    now[0] = 119.0
    assert not schedule.due()
    now[0] = 120.0
    assert schedule.due()
    schedule.restart()
    assert not schedule.due()
    schedule = saving.Schedule(2, 1)
    assert [schedule.due(), schedule.due()] == [False, True]
    schedule.restart()
    now[0] += 60
    assert schedule.due()
    now[0] += 10 * 60 - 1
    assert not saving.Schedule(None, None).due()


@pytest.mark.parametrize(
    "wrong", ({"every": 0}, {"every": 1.5}, {"minutes": 0}, {"minutes": "1"}, {"keep": 0}, {"keep": None})
)
def test_wrong_arguments_are_refused(tmp_path, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ObjectState().save_to(tmp_path, **wrong)


# -- The thread --------------------------------------------------------------------------------------


class Disk:
    """Takes the place of the function that writes files. It can be told to wait or to fail."""

    def __init__(self, monkeypatch):
        self.open, self.entered = threading.Event(), threading.Semaphore(0)
        self.open.set()
        self.problem = None
        self.written = []
        monkeypatch.setattr(saved_file, "write", self.write)

    def write(self, _folder, given, parts):
        self.entered.release()
        assert self.open.wait(300)
        if self.problem is not None:
            raise self.problem
        self.written.append((given.number, [bytes(part) for part in parts]))


def test_a_state_that_waits_gives_way_to_a_newer_one(tmp_path, monkeypatch):
    disk, writer = Disk(monkeypatch), saving.Writer(str(tmp_path), 3)
    disk.open.clear()
    for number in range(1, 5):
        buffer = writer.buffers().take(8)
        buffer[:] = b"%08d" % number
        writer.write(head(number), [buffer])
        if number == 1:
            assert disk.entered.acquire(timeout=300)
    disk.open.set()
    writer.finish()
    assert disk.written == [(1, [b"00000001"]), (4, [b"00000004"])]
    assert writer._thread is None
    writer.write(head(5), [b"5"])
    writer.finish()
    assert disk.written[-1] == (5, [b"5"])


def test_memory_of_copies_is_used_again(tmp_path, monkeypatch):
    disk, writer = Disk(monkeypatch), saving.Writer(str(tmp_path), 3)
    first = writer.buffers().take(100)
    writer.write(head(1), [first])
    writer.finish()
    buffers = writer.buffers()
    assert buffers.take(100) is first and buffers.take(100) is not first
    assert len(disk.written) == 1


def test_a_disk_that_fails_is_told_once_and_again_when_it_works(tmp_path, monkeypatch, capfd):
    disk, writer = Disk(monkeypatch), saving.Writer(str(tmp_path), 3)

    def said(number, problem):
        disk.problem = problem
        writer.write(head(number), [b"1"])
        writer.finish()
        return capfd.readouterr().err.splitlines()

    full = OSError(errno.ENOSPC, "No space left on device")
    (line,) = said(1, full)
    assert f"could not be saved in {tmp_path}: [Errno 28] No space left" in line
    assert said(2, full) == []
    (line,) = said(3, OSError(errno.EIO, "Input/output error"))
    assert "Input/output error" in line
    (line,) = said(4, None)
    assert "is saved again" in line and head(4).name() in line
    assert said(5, None) == []
    assert len(said(6, full)) == 1


# -- States ------------------------------------------------------------------------------------------


def begin(state, directory, **options):
    state.save_to(directory, **options)
    state.resume()
    return state


def test_an_object_state_resumes_from_its_files(tmp_path):
    state = begin(ObjectState(epoch=0, found=[]), tmp_path, every=2, keep=2)
    for epoch in range(1, 8):
        state.epoch = epoch
        state.found.append(epoch)
        state.commit()
        state._saver._writer.finish()
    assert names(tmp_path) == [head(number).name() for number in (4, 6)]
    other = begin(ObjectState(epoch=0, found=[], added=5), tmp_path)
    assert (other.epoch, other.found, other.added) == (6, [1, 2, 3, 4, 5, 6], 5)
    other.epoch = 9
    other.restore()
    assert other.epoch == 6
    assert other._saver.boundaries == 6 and other._standing().whole
    other.epoch = 10
    other._end_saving()
    assert begin(ObjectState(), tmp_path).epoch == 10


def test_a_state_that_has_begun_loads_no_file(tmp_path):
    state = begin(ObjectState(epoch=1), tmp_path)
    state._end_saving()
    state.epoch, state._whole = 2, True
    state.resume()
    assert state.epoch == 2


def test_the_rank_that_has_loaded_a_file_knows_its_number_after_a_loss(tmp_path, monkeypatch):
    """Else the next files have lower numbers, and an old one is the newest."""
    written = begin(ObjectState(epoch=1), tmp_path)
    written._saver.boundaries = 7
    written._end_saving()

    def gather(value, name):
        if name == "elastic.resumed":
            raise errors.PeerLostError("rank 1")
        return [value]

    state = ObjectState(epoch=0)
    with monkeypatch.context() as lost:
        lost.setattr(resuming, "gather", gather)
        with pytest.raises(errors.PeerLostError):
            begin(state, tmp_path)
    state.resume()
    assert state.epoch == 1 and state._saver.boundaries == 7


def test_callbacks_are_called_when_other_ranks_have_saved(tmp_path):
    for ranks, wanted in ((1, []), (2, ["reset"])):
        content = pickle.dumps({"commits": 4, "values": {"epoch": 3}})
        saved_file.write(str(tmp_path), head(1, ranks=ranks), [content])
        state, called = ObjectState(epoch=0), []
        state.register_reset_callbacks([lambda: called.append("reset")])
        begin(state, tmp_path)
        assert state.epoch == 3 and called == wanted


class Own(State):
    """A state that a program has written for itself."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def save(self):
        pass

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


def test_a_state_of_the_program_is_saved_by_its_state_dict(tmp_path):
    state = begin(Own(), tmp_path, every=1)
    state.count = 5
    state.commit()
    state.count = 6
    state._saver._writer.finish()
    assert begin(Own(), tmp_path).count == 5
    with pytest.raises(TypeError, match="State.state_dict()"):
        State().save_to(tmp_path)


def test_a_value_that_cannot_be_pickled_is_told_once_and_the_training_goes_on(tmp_path, capfd):
    state = begin(ObjectState(lock=threading.Lock()), tmp_path, every=1)
    for _ in range(3):
        state.commit()
    state._end_saving()
    (line,) = capfd.readouterr().err.splitlines()
    assert "could not be saved" in line and "lock" in line and "goes on" in line
    state.lock = None
    state.commit()
    state._saver._writer.finish()
    assert "is saved again" in capfd.readouterr().err
    assert len(names(tmp_path)) == 1


def test_a_training_without_standard_error_goes_on_when_it_cannot_save(monkeypatch):
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    state = ObjectState(epoch=0)
    state.save_to("/dev/null/saved", every=1)
    state.commit()
    state._end_saving()


def test_a_directory_that_cannot_be_made_is_told_once(tmp_path, capfd):
    (tmp_path / "file").write_text("")
    state = begin(ObjectState(epoch=1), tmp_path / "file" / "folder", every=1)
    capfd.readouterr()
    for _ in range(3):
        state.commit()
        state._saver._writer.finish()
    (line,) = capfd.readouterr().err.splitlines()
    assert "Not a directory" in line


def test_the_directory_stays_when_the_program_changes_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saver = Saver("saved", None, None, 1)
    monkeypatch.chdir("/")
    assert saver._writer.folder == str(tmp_path / "saved")


def test_a_file_without_rights_is_passed_over(tmp_path, monkeypatch, capfd):
    path = write(tmp_path, 1)

    def refuse(*_arguments, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(Unusable, match="Permission denied") as caught:
        saved_file.read(str(path))
    assert not isinstance(caught.value, Damaged)
