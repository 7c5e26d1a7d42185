# SPDX-License-Identifier: Apache-2.0
"""Trainings whose whole job is lost, and which resume from the files of their state."""

import collections
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading

import pytest

import job

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "jobs", "saves.py")
SAMPLES, BATCH = 60, 2
LIMIT_S = job.LIMIT_S


class Told:
    """The lines that the processes of saves.py have written, attempt by attempt or run by run."""

    def __init__(self, folder):
        self.lines = []
        for name in sorted(os.listdir(folder)):
            if name.endswith(".jsonl"):
                with open(os.path.join(folder, name)) as file:
                    self.lines += [json.loads(line) for line in file if line.endswith("\n")]

    def of(self, what):
        return [line for line in self.lines if line["what"] == what]

    def digest(self):
        """That of the parameters at the end, the same on all ranks."""
        (found,) = {line["digest"] for line in self.of("ends")}
        return found

    def begins(self):
        """The step before which each attempt began."""
        found = {}
        for line in self.of("begins"):
            if line["generation"] <= 1:
                assert found.setdefault(line["attempt"], line["step"]) == line["step"]
        return [found[one] for one in sorted(found)]

    def require_equal_parameters(self):
        """A step that is done again, after a file was loaded, gives the same as before."""
        found = collections.defaultdict(set)
        for line in self.of("did"):
            found[line["step"]].add(line["digest"])
        differing = [step for step, digests in found.items() if len(digests) > 1]
        assert not differing, differing


class Run:
    """A `horo run` whose program is saves.py."""

    def __init__(self, ranks, folder, *words, options=("--min-np", "1"), **environment):
        os.makedirs(folder, exist_ok=True)
        command = [job.HORO, "run", "-np", str(ranks), *options, sys.executable, PROGRAM, str(folder)]
        self.process = subprocess.Popen(
            command + [str(word) for word in words],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        (folder / "launcher").write_text(str(self.process.pid))

    def end(self):
        """The exit code and the output."""
        try:
            output, _ = self.process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            raise AssertionError(f"the job did not end: {self.process.communicate()[0]}") from None
        return self.process.returncode, output


def train(*arguments, **options):
    code, output = Run(*arguments, **options).end()
    assert code == 0 and "Traceback" not in output, output
    return output


def wait_until(true):
    pause = threading.Event()
    for _ in range(LIMIT_S * 20):
        if true():
            return
        pause.wait(0.05)
    raise AssertionError("nothing has happened")


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The parameters after 4 epochs on 2 ranks."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train(2, folder / "told", folder / "files", 4, 1000)
    return Told(folder / "told").digest()


STEPS = 4 * SAMPLES // (2 * BATCH)
RESTARTS = ("--min-np", "1", "--max-restarts", "2")


def resumed_at(output):
    """The steps after which trainings resumed, as the user is told."""
    return [
        int(line.split("resumes after step ")[1].split(",")[0])
        for line in output.splitlines()
        if "the training resumes after step" in line
    ]


@pytest.mark.parametrize("every, least", ((1, RESTARTS[:2]), (7, RESTARTS[:2]), (1, ())))
def test_all_ranks_are_killed_at_once_and_the_launcher_starts_the_job_again(
    tmp_path, undisturbed, every, least
):
    """Also in a job with fixed ranks."""
    report = tmp_path / "report"
    options = (*least, *RESTARTS[2:], "--json-report", str(report))
    output = train(2, tmp_path / "told", tmp_path / "files", 4, every, "all", 25, options=options)
    told = Told(tmp_path / "told")
    assert told.digest() == undisturbed
    told.require_equal_parameters()
    (step,) = resumed_at(output)
    assert told.begins() == [0, step] and step % every == 0 and step <= 24
    assert "horo: restarting the job, restart 1 of 2" in output, output
    facts = json.loads(report.read_text())
    assert facts["exit_code"] == 0 and facts["restarts"] == 1 and len(facts["earlier_attempts"]) == 1
    assert facts["earlier_attempts"][0]["exit_code"] == 137


def test_a_reset_limit_ends_the_attempt_and_not_the_training(tmp_path, undisturbed):
    """Rank 0 dies while its thread writes, and no change is allowed."""
    options = (*RESTARTS, "--reset-limit", "0")
    code, output = Run(2, tmp_path / "told", tmp_path / "files", 4, 1, "writing", 20, options=options).end()
    told = Told(tmp_path / "told")
    assert code == 0 and told.digest() == undisturbed, output
    told.require_equal_parameters()
    assert len(resumed_at(output)) == 1 and 10 <= told.begins()[1] < STEPS, output
    assert "restart 1 of 2" in output
    assert not [name for name in os.listdir(tmp_path / "files") if name.endswith(".part")]
    assert "passed over" not in output, "a file that was not finished has no name of a file"


def test_rank_0_is_killed_while_it_writes_and_the_others_go_on(tmp_path):
    options = ("--min-np", "1", "--slot-restarts", "9")
    output = train(2, tmp_path / "told", tmp_path / "files", 8, 1, "writing", 20, options=options)
    assert resumed_at(output) == [] and (tmp_path / "told" / "happened").exists()
    files = sorted(os.listdir(tmp_path / "files"))
    assert len(files) == 3 and all(name.endswith(".state") for name in files), files
    # The result of the training is in the last file.
    output = train(3, tmp_path / "more", tmp_path / "files", 8, 1)
    ended = max(line["step"] for line in Told(tmp_path / "told").of("did"))
    assert resumed_at(output) == [ended] and Told(tmp_path / "more").begins() == [ended]


@pytest.mark.parametrize("ranks", (1, 3))
def test_the_launcher_is_killed_and_a_new_run_resumes_with_other_ranks(tmp_path, ranks):
    first = Run(2, tmp_path / "told", tmp_path / "files", 2, 1, "launcher", 20)
    code, _ = first.end()
    assert code == -signal.SIGKILL
    told = Told(tmp_path / "told")
    pids = {line["pid"] for line in told.lines}
    wait_until(lambda: not any(map(lives, pids)))
    output = train(ranks, tmp_path / "more", tmp_path / "files", 2, 1)
    more = Told(tmp_path / "more")
    (step,) = resumed_at(output)
    assert more.begins() == [step] and 0 < step < 20
    at_that_step = {line["digest"] for line in told.of("did") if line["step"] == step}
    assert {line["digest"] for line in more.of("begins")} == at_that_step
    visited = collections.Counter()
    for lines, wanted in ((told.of("did"), lambda one: one <= step), (more.of("did"), lambda one: one > step)):
        for line in lines:
            if wanted(line["step"]):
                visited.update((line["epoch"], sample) for sample in line["samples"])
    assert set(visited) == {(epoch, sample) for epoch in range(2) for sample in range(SAMPLES)}
    assert sum(visited.values()) - 2 * SAMPLES < 2 * ranks + 2, visited.most_common(5)


def test_a_job_whose_hosts_are_too_few_is_started_again(tmp_path):
    """The discovery script offers one slot less until the job has given up."""
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost:2\n")
    options = ["--min-np", "2", "--elastic-timeout", "2", "--start-timeout", "200", "--max-restarts", "9"]
    options += ["--host-discovery-script", f"cat {hosts}"]
    run = Run(2, tmp_path / "told", tmp_path / "files", 4, 1, "wait", 20, options=options)
    output = []
    reader = threading.Thread(target=lambda: output.extend(run.process.stdout))
    reader.start()
    wait_until(lambda: len(Told(tmp_path / "told").of("waits")) == 2)
    hosts.write_text("localhost:1\n")
    (tmp_path / "told" / "happened").write_text("")
    os.kill(Told(tmp_path / "told").of("waits")[0]["pid"], signal.SIGKILL)
    wait_until(lambda: any("restarting the job" in line for line in output))
    hosts.write_text("localhost:2\n")
    assert run.process.wait(LIMIT_S) == 0, "".join(output)
    reader.join()
    assert len(resumed_at("".join(output))) >= 1 and "Traceback" not in "".join(output)
    Told(tmp_path / "told").require_equal_parameters()


def test_a_failure_of_the_program_is_not_started_again(tmp_path):
    program = "import sys; sys.exit(3)"
    options = ("--min-np", "1", "--slot-restarts", "0", "--max-restarts", "5")
    done = job.run(2, ["-c", program], options=options)
    assert done.code == 3 and "not restarted: this is a failure of the program" in done.output, done.output
    done = job.run(2, ["-c", program], options=(*options[:-1], "1", "--restart-on", "3"))
    assert done.code == 3 and "restart 1 of 1" in done.output and "used up" in done.output, done.output


def test_damaged_files_are_passed_over(tmp_path):
    train(2, tmp_path / "told", tmp_path / "files", 2, 5)
    names = sorted(os.listdir(tmp_path / "files"))
    assert len(names) == 3, names
    torn, corrupt = (tmp_path / "files" / name for name in (names[2], names[1]))
    torn.write_bytes(torn.read_bytes()[:-100])
    content = bytearray(corrupt.read_bytes())
    content[len(content) // 2] ^= 1
    corrupt.write_bytes(content)
    output = train(2, tmp_path / "more", tmp_path / "files", 2, 5)
    assert f"{torn} is passed over: it is torn" in output, output
    assert f"{corrupt} is passed over: it is corrupt: its checksum is wrong" in output, output
    assert output.count("passed over") == 2
    (step,) = resumed_at(output)
    assert step == int(names[0].split("-")[1].split(".")[0])
    assert Told(tmp_path / "more").digest() == Told(tmp_path / "told").digest()
    # The damaged files were written anew.
    output = train(2, tmp_path / "again", tmp_path / "files", 2, 5)
    assert "passed over" not in output and len(resumed_at(output)) == 1, output


@pytest.fixture
def small_disk(tmp_path):
    path = tmp_path / "disk"
    path.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path], capture_output=True)
    if done.returncode:
        pytest.skip("this user cannot mount a file system")
    yield path
    subprocess.run(["umount", path], check=True)


def test_a_full_disk_is_told_once_and_the_training_goes_on(tmp_path, small_disk, undisturbed):
    with open(small_disk / "filler", "wb", buffering=0) as file:
        with pytest.raises(OSError):
            while True:
                file.write(bytes(4096))
    output = train(2, tmp_path / "told", small_disk / "files", 4, 1)
    assert output.count("could not be saved") == 1 and "No space left on device" in output, output
    assert Told(tmp_path / "told").digest() == undisturbed
    assert not [name for _, _, files in os.walk(small_disk / "files") for name in files]


@pytest.mark.parametrize("seed", range(int(os.environ.get("HORO_TEST_SEEDS", "3"))))
def test_processes_killed_at_any_time(tmp_path, seed, undisturbed):
    """All ranks, or the launcher, at random moments, again and again. Nothing is lost but time."""
    chance = random.Random(seed)
    folder, options = tmp_path / "told", ("--min-np", "2", "--slot-restarts", "0", "--max-restarts", "1")
    ended, output = False, ""
    for _ in range(6):
        run = Run(2, folder, tmp_path / "files", 4, 1, options=options)
        before = len(Told(folder).of("did"))
        wanted = before + chance.randint(1, 50)
        wait_until(lambda: len(Told(folder).of("did")) >= wanted or run.process.poll() is not None)
        pids = [line["pid"] for line in Told(folder).of("begins") if lives(line["pid"])]
        for pid in [run.process.pid] if chance.random() < 0.4 else pids:
            if lives(pid):
                os.kill(pid, signal.SIGKILL)
        code, said = run.end()
        output += said
        wait_until(lambda: not any(map(lives, {line["pid"] for line in Told(folder).lines})))
        if code == 0:
            ended = True
            break
    if not ended:
        output += train(2, folder, tmp_path / "files", 4, 1)
    told = Told(folder)
    told.require_equal_parameters()
    assert told.digest() == undisturbed and "passed over" not in output, output


def test_the_example_is_killed_as_a_whole_and_learns(tmp_path):
    path = os.path.join(HERE, "..", "..", "..", "examples", "elastic_torch.py")
    arguments = [path, "--save-to", str(tmp_path / "files"), "--losses", "2", "--epochs", "3"]
    done = job.run(2, arguments, options=("--min-np", "1", "--max-restarts", "9"))
    assert done.code == 0 and "Traceback" not in done.output, done.output
    assert len(resumed_at(done.output)) == 2, done.output
    found = re.search(r"test accuracy ([\d.]+) %, (\d+) steps in 3 epochs", done.output)
    assert found and float(found.group(1)) > 80, done.output
