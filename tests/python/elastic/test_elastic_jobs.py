# SPDX-License-Identifier: Apache-2.0
"""Elastic trainings under `horo run --min-np`, whose ranks are killed, come and go."""

import collections
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading

import pytest

import horo
import job

HERE = os.path.dirname(os.path.abspath(__file__))
JOBS = os.path.join(HERE, "jobs")
SAMPLES = 60
# A slot that fails is started again, so that each loss is followed by a new rank.
AGAIN = ("--slot-restarts", "9")


def program(name):
    return os.path.join(JOBS, name)


class Told:
    """The lines that the workers of train.py have written."""

    def __init__(self, folder):
        self.lines = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name)) as file:
                self.lines += [json.loads(line) for line in file]

    def of(self, what):
        return [line for line in self.lines if line["what"] == what]

    def sizes(self):
        """The number of ranks of each generation."""
        found = {}
        for line in self.of("enters"):
            assert found.setdefault(line["generation"], line["size"]) == line["size"]
        return [found[one] for one in sorted(found)]

    def require_equal_parameters(self):
        """After each step, and whenever the training begins again, all ranks have the same."""
        for what in ("did", "enters", "ends"):
            found = collections.defaultdict(set)
            for line in self.of(what):
                found[line["generation"], line.get("step")].add(line["digest"])
            differing = [place for place, digests in found.items() if len(digests) > 1]
            assert not differing, (what, differing)

    def require_no_step_lost(self, losses=1):
        """Each step ends in one generation, and no other ends it again. A loss makes the ranks try one
        step again. A lost rank may have ended its last step alone."""
        stayed = {line["worker"] for line in self.of("ends")}
        ended = collections.defaultdict(set)
        for line in self.of("did"):
            if line["worker"] in stayed:
                ended[line["step"]].add(line["generation"])
        assert sorted(ended) == list(range(1, len(ended) + 1))
        twice = {step: sorted(found) for step, found in ended.items() if len(found) > 1}
        assert not twice, twice
        tried = collections.defaultdict(set)
        for line in self.of("tries"):
            tried[line["step"]].add(line["generation"])
        assert sum(len(found) - 1 for found in tried.values()) <= losses, tried
        return {step: found.pop() for step, found in ended.items()}

    def require_every_sample_once(self, losses=1):
        """A step that ends takes the samples of all ranks that tried it in its generation, also of
        one that is lost afterwards. Each epoch takes every sample; only at its end some twice, fewer
        than there are ranks."""
        ended = self.require_no_step_lost(losses)
        used = collections.defaultdict(collections.Counter)
        for line in self.of("tries"):
            if ended.get(line["step"]) == line["generation"]:
                used[line["epoch"]].update(line["samples"])
        for epoch, counts in used.items():
            assert set(counts) == set(range(SAMPLES)), (epoch, set(range(SAMPLES)) - set(counts))
            assert sum(counts.values()) - SAMPLES < max(self.sizes()), (epoch, counts.most_common(5))


def train(tmp_path, ranks, until, *deaths, options=("--min-np", "1", *AGAIN), epochs=1):
    """Runs train.py: until generation `until` and at least `epochs` epochs."""
    words = [str(word) for word in (tmp_path, until, epochs, *itertools.chain(*deaths))]
    done = job.run(ranks, [program("train.py"), *words], options=options)
    assert done.code == 0 and "Traceback" not in done.output, done.output
    return Told(tmp_path), done.output


def test_nothing_happens(tmp_path):
    told, _ = train(tmp_path, 2, 1)
    assert told.sizes() == [2]
    told.require_equal_parameters()
    told.require_every_sample_once()


@pytest.mark.parametrize("worker", (0, 2))
@pytest.mark.parametrize("phase", ("before", "backward", "after", "check"))
def test_a_killed_rank_costs_no_step(tmp_path, worker, phase):
    """The others continue with the step in which it was killed, or behind it, and a new one joins."""
    told, output = train(tmp_path, 3, 3, (worker, 12, phase))
    assert told.sizes()[0] == 3 and 2 in told.sizes() and told.sizes()[-1] == 3, told.sizes()
    told.require_equal_parameters()
    told.require_every_sample_once()
    resumed = re.findall(r"generation (\d+): training goes on after .*; (.*) repeated", output)
    assert resumed[0][0] == "2" and resumed[0][1] in ("1 step is", "no step is"), output
    assert {steps for _, steps in resumed[1:]} == {"no step is"}, output
    if phase in ("before", "backward"):
        assert resumed[0][1] == "1 step is", output
    assert {line["worker"] for line in told.of("ends")} == {0, 1, 2, 3} - {worker}, output
    (lost,) = {line["generation"] for line in told.of("tries") if line["worker"] == worker}
    ranks = {line["worker"]: line["rank"] for line in told.of("enters") if line["generation"] > lost}
    assert ranks[3] == 2, "the new rank comes last"


def test_several_losses_one_after_the_other(tmp_path):
    told, _ = train(tmp_path, 3, 4, (1, 5, "backward"), (0, 17, "after"))
    told.require_equal_parameters()
    told.require_every_sample_once(losses=2)


@pytest.mark.parametrize("phase", ("syncs", "enters"))
def test_a_rank_killed_in_a_recovery(tmp_path, phase):
    """Worker 0 dies in a step, worker 2 while the others recover from it, and worker 3 when it comes."""
    told, _ = train(tmp_path, 3, 4, (0, 9, "backward"), (2, 2, phase), (3, 3, phase), epochs=8)
    told.require_equal_parameters()
    told.require_every_sample_once(losses=3)


def test_two_ranks_killed_in_one_step(tmp_path):
    told, _ = train(tmp_path, 4, 3, (0, 7, "backward"), (2, 7, "before"))
    assert 2 in told.sizes(), told.sizes()
    told.require_equal_parameters()
    told.require_every_sample_once(losses=2)


@pytest.mark.parametrize("seed", range(int(os.environ.get("HORO_TEST_SEEDS", "3"))))
def test_random_losses(tmp_path, seed):
    """Workers die in random steps and phases, also those that have come for others."""
    chance = random.Random(seed)
    within, between = ("before", "backward", "after", "check"), ("syncs", "enters")
    deaths = []
    for worker in chance.sample([0, 2, 3, 4, 5, 6], 5):  # worker 1 sees everything
        if chance.random() < 0.4:
            deaths.append((worker, chance.randint(1, 8), chance.choice(between)))
        else:
            deaths.append((worker, chance.randint(1, 200), chance.choice(within)))
    told, _ = train(tmp_path, 3, 1, *deaths, epochs=25)
    told.require_equal_parameters()
    told.require_every_sample_once(losses=len(deaths))


def test_a_new_rank_with_another_script_says_so(tmp_path):
    """The script is changed while the job runs, so the rank that replaces a lost one is another one."""
    told, script = tmp_path / "told", tmp_path / "train.py"
    told.mkdir()
    with open(program("train.py")) as file:
        text = file.read()
    dies = "        os.kill(os.getpid(), signal.SIGKILL)"
    assert text.count(dies) == 1
    changes = '        open(__file__, "a").write("# changed" + chr(10))'
    script.write_text(text.replace(dies, f"{changes}\n{dies}"))
    words = [str(script), str(told), "3", "1", "1", "12", "before"]
    done = job.run(2, words, options=("--min-np", "1", *AGAIN))
    assert done.code == 0 and "Traceback" not in done.output, done.output
    warnings = re.findall(
        r"rank (\d) runs another program than rank 0: train.py sha256 (\w+) instead of sha256 (\w+)", done.output
    )
    assert warnings and all(own != others for _, own, others in warnings), done.output


def two_optimizers(critics, *death):
    """The digests of the ranks that ended, and the steps of both optimizers."""
    words = [program("two_optimizers.py"), "12", str(critics), *death]
    done = job.run(2, words, options=("--min-np", "1", *AGAIN))
    assert done.code == 0 and "Traceback" not in done.output, done.output
    found = set(re.findall(r"digest (\w+) steps (\d+) (\d+)", done.output))
    assert len(found) == 1, done.output
    digest, first, second = found.pop()
    return digest, int(first), int(second)


@pytest.fixture(scope="module")
def undisturbed_pair():
    return two_optimizers(1)


@pytest.mark.parametrize("worker", ("0", "1"))
@pytest.mark.parametrize("phase", ("first", "second"))
def test_two_optimizers_lose_and_repeat_no_step(undisturbed_pair, worker, phase):
    """In the second phase the first optimizer has done its step of the round, which begins again."""
    assert two_optimizers(1, worker, "7", phase) == undisturbed_pair


def test_optimizers_with_different_numbers_of_steps_keep_those_that_they_have_done(undisturbed_pair):
    """Nothing tells which steps of the round were done: all of them are done again."""
    digest, first, second = two_optimizers(3, "1", "7", "second")
    assert (first, second) == (12 * 3 + 3, 12)


def joined(tmp_path, ranks, how, *options):
    """Runs joins.py, and returns the line of the worker that comes for worker 1."""
    arguments = [program("joins.py"), str(tmp_path), how]
    done = job.run(ranks, arguments, options=("--min-np", "1", *AGAIN, *options))
    assert done.code == 0 and "Traceback" not in done.output, done.output
    told = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("*.json"))]
    assert [one["worker"] for one in told] == [0, 2], (told, done.output)
    assert told[0]["weights"] == told[1]["weights"], told
    return told[1]


def test_the_others_train_while_a_new_rank_prepares_itself(tmp_path):
    """It waits for steps of the others between init() and its training."""
    told = joined(tmp_path, 2, "loss")
    assert told["planned"] == [1, 2, 0, True] and told["place"] == [1, 2, 3], told
    assert told["renewed"] == [2] and told["sampled"] == [1, 2], told


def test_a_spare_prepares_itself_before_it_is_needed(tmp_path):
    """Worker 1 dies when the spare is ready to train."""
    told = joined(tmp_path, 2, "spare", "--max-np", "2", "--spares", "1", "-H", "localhost:3")
    assert told["planned"] == [2, 3, 0, True] and told["place"] == [1, 2, 2], told


def test_a_program_for_horovod_runs_unchanged(tmp_path):
    arguments = [program("as_for_horovod.py"), str(tmp_path), "3", "1", "4"]
    options = ("--min-np", "2", *AGAIN, "--horovod")
    done = job.run(3, arguments, options=options)
    assert done.code == 0 and "Traceback" not in done.output, done.output
    told = [json.loads(path.read_text()) for path in sorted(tmp_path.iterdir())]
    size = told[0]["size"]
    assert [one["rank"] for one in told] == list(range(size)), told
    for one in told:
        assert one["weights"] == told[0]["weights"]
        assert one["environment"] == [one["rank"], size] and one["rate"] == pytest.approx(0.01 * size)


def test_a_state_without_an_optimizer_goes_back_to_its_commit():
    done = job.run(3, [program("counts.py"), "40", "2", "17"], options=("--min-np", "2", *AGAIN))
    assert done.code == 0 and "Traceback" not in done.output, done.output
    assert done.output.count("counted to 40") >= 2, done.output


def test_results_of_a_function_are_those_of_the_last_ranks(monkeypatch):
    monkeypatch.syspath_prepend(JOBS)
    import functions

    found = horo.run(functions.trains, args=(200, 1), num_proc=3, min_num_proc=2)
    assert [rank for rank, _, _ in found] == list(range(len(found))), found
    assert all((size, step) == (len(found), 200) for _, size, step in found)


def test_the_example_loses_ranks_and_learns():
    path = os.path.join(HERE, "..", "..", "..", "examples", "elastic_torch.py")
    done = job.run(3, [path, "--deaths", "2"], options=("--min-np", "1", *AGAIN))
    assert done.code == 0 and "Traceback" not in done.output, done.output
    steps = [int(found) for found in re.findall(r"step (\d+): loss", done.output)]
    # Rank 0 prints. It prints nothing of a step that the others have finished without it.
    assert len(steps) == len(set(steps)) and max(steps) - len(steps) <= 2, done.output
    found = re.search(r"generation (\d+), \d+ rank\(s\): test accuracy ([\d.]+) %, (\d+) steps", done.output)
    assert found and int(found.group(1)) > 1 and float(found.group(2)) > 80, done.output
    assert int(found.group(3)) == max(steps)


def lines_of(process, sink):
    for line in process.stdout:
        sink.append(line)


def test_a_rank_that_is_removed_exits_with_code_0(tmp_path):
    """The host gets fewer slots while the training runs."""
    hosts, folder = tmp_path / "hosts", tmp_path / "told"
    hosts.write_text("localhost:3\n")
    folder.mkdir()
    command = [
        *(job.HORO, "run", "-np", "3", "--min-np", "2", "--max-np", "3"),
        *("--host-discovery-script", f"cat {hosts}"),
        *(sys.executable, program("train.py"), str(folder), "2", "1"),
    ]
    process = subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    output = []
    reader = threading.Thread(target=lines_of, args=(process, output))
    reader.start()
    try:
        wait_until(lambda: (folder / "2.jsonl").exists() and Told(folder).of("did"), process)
        hosts.write_text("localhost:2\n")
        assert process.wait(job.LIMIT_S) == 0, "".join(output)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
        reader.join()
    said = "".join(output)
    assert "Traceback" not in said and "no longer part of the job" in said, said
    told = Told(folder)
    assert told.sizes() == [3, 2], (told.sizes(), said)
    told.require_equal_parameters()
    told.require_every_sample_once()


def wait_until(true, process, limit=job.LIMIT_S):
    pause = threading.Event()
    for _ in range(limit * 20):
        if true() or process.poll() is not None:
            return
        pause.wait(0.05)
    raise AssertionError("nothing has happened")
