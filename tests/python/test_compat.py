# SPDX-License-Identifier: Apache-2.0
"""Programs written for Horovod run unchanged."""

import os
import subprocess
import sys

import pytest

import api
import job

HERE = os.path.dirname(os.path.abspath(__file__))
TRAIN = os.path.join(HERE, "horovod", "train.py")


def launched(command, **environment):
    done = subprocess.run(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=job.LIMIT_S,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "options",
    (
        ["--batches-per-allreduce", "2", "--fp16-allreduce", "--gradient-predivide-factor", "2"],
        ["--use-adasum", "--epochs", "6"],
    ),
)
def test_training_under_horo_run(options):
    # Without PYTHONPATH: --horovod must be enough.
    code, output = launched(
        [job.HORO, "run", "--horovod", "-np", "2", sys.executable, TRAIN, *options], PYTHONPATH=""
    )
    assert code == 0 and output.count("OK size 2 SGD") == 1, output


def test_training_continues_from_its_checkpoint(tmp_path):
    command = [job.HORO, "run", "--horovod", "-np", "2", sys.executable, TRAIN]
    for epochs, begin in (("1", 0), ("4", 1)):
        options = ["--checkpoint", str(tmp_path / "checkpoint"), "--epochs", epochs]
        code, output = launched([*command, *options], PYTHONPATH="")
        assert code == 0 and f"SGD from epoch {begin}" in output, output


def test_training_under_horovodrun():
    horovodrun = os.path.join(os.environ["HORO_TEST_BIN"], "horovodrun")
    code, output = launched([horovodrun, "-np", "2", sys.executable, TRAIN], PYTHONPATH="")
    assert code == 0 and "[0]<stdout>:OK size 2 SGD" in output, output


def test_training_by_the_module():
    done = job.run(1, ["-m", "horo.compat", TRAIN, "--epochs", "8"])
    assert done.code == 0 and "OK size 1 SGD" in done.output, done.output


def test_module_passes_arguments_and_children(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess, sys\n"
        "import beside, horovod\n"
        "assert __name__ == '__main__' and sys.argv[1:] == ['--one', 'two'], sys.argv\n"
        "child = 'import horovod.torch as h, horo.torch as o; assert h.allreduce is o.allreduce'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n"
        "print('fine')\n"
    )
    (tmp_path / "beside.py").write_text("")
    code, output = launched([sys.executable, "-m", "horo.compat", str(script), "--one", "two"])
    assert code == 0 and output.strip() == "fine", output
    code, output = launched(
        [sys.executable, "-m", "horo.compat", "-m", "beside"], PYTHONPATH=os.pathsep.join(
            [os.environ["PYTHONPATH"], str(tmp_path)]
        )
    )
    assert code == 0, output


def test_module_under_a_safe_path(tmp_path):
    """Python then puts no folder first in sys.path, so the first one is the user's."""
    (tmp_path / "mine.py").write_text("")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text("import mine, horovod; print('fine')")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    command = [sys.executable, "-m", "horo.compat", str(script)]
    code, output = launched(command, PYTHONPATH=path, PYTHONSAFEPATH="1")
    assert code == 0 and output.strip() == "fine", output


def test_missing_modules_say_so():
    done = job.run_alone(
        """
        from horo import compat
        compat.install()
        import horovod
        for name in ("spark", "ray"):
            try:
                __import__("horovod." + name)
            except ImportError as error:
                assert f"horovod.{name} is not part of Horo" in str(error), error
            else:
                raise SystemExit(name)
        from horovod.common.process_sets import global_process_set
        from horovod.data.data_loader_base import AsyncDataLoaderMixin
        from horovod.runner import run
        """
    )
    assert done.code == 0, done.output


def test_every_public_name_resolves():
    """Every name exists in Horovod's modules and is the object that horo.torch has under it."""
    tables = {"FUNCTIONS": list(api.FUNCTIONS), "NAMES": api.NAMES + api.OPS, "MODULES": api.MODULES}
    done = job.run_alone(
        f"""
        import importlib
        import torch
        from horo import compat
        compat.install()
        import horovod.torch
        assert horovod.torch.mpi_ops.Average == horovod.torch.Average
        assert horovod.torch.compression.Compression is horovod.torch.Compression
        import horo.torch
        tables = {tables!r}
        for module in ("horovod.torch", "horovod.torch.mpi_ops"):
            found = importlib.import_module(module)
            for name in [*tables["FUNCTIONS"], *tables["NAMES"]]:
                assert getattr(found, name) is getattr(horo.torch, name), (module, name)
        for module, names in tables["MODULES"].items():
            found = importlib.import_module(module)
            for name in names.split(", "):
                one = getattr(found, name)
                if ".util" not in module and hasattr(horo.torch, name) and name != "__version__":
                    assert one is getattr(horo.torch, name), (module, name)
        from horovod.common.basics import HorovodBasics
        basics = HorovodBasics(__file__ if "__file__" in globals() else "", "mpi_lib_v2")
        basics.init()
        assert (basics.rank(), basics.size(), basics.is_homogeneous()) == (0, 1, True)
        """
    )
    assert done.code == 0, done.output


def test_elastic_names_are_those_of_horo(tmp_path):
    """hvd.elastic is there without a further import, and host discovery works by itself."""
    done = job.run_alone(
        f"""
        from horo import compat
        compat.install()
        import horovod.torch as hvd
        import horo.torch
        assert hvd.elastic.run is horo.torch.elastic.run
        assert hvd.elastic.TorchState is hvd.elastic.state.TorchState is horo.torch.elastic.TorchState
        from horovod.common.exceptions import HorovodInternalError, HostsUpdatedInterrupt
        assert HostsUpdatedInterrupt is horo.torch.elastic.HostsUpdatedInterrupt
        assert issubclass(horo.torch.PeerLostError, HorovodInternalError)
        assert HostsUpdatedInterrupt(skip_sync=True).skip_sync
        from horovod.common.elastic import ObjectState, notification_manager
        from horovod.runner.elastic.worker import HostUpdateResult
        notification_manager.init()
        state = ObjectState(bcast_object=hvd.broadcast_object, get_rank=hvd.rank, epoch=1)
        notification_manager.register_listener(state)
        notification_manager.handle_hosts_updated(1, HostUpdateResult.removed)
        notification_manager.remove_listener(state)
        notification_manager.handle_hosts_updated(2, HostUpdateResult.added)
        try:
            state.check_host_updates()
            raise SystemExit("nothing was announced")
        except HostsUpdatedInterrupt as interrupt:
            assert interrupt.skip_sync
        from horovod.runner.elastic.discovery import FixedHosts, HostDiscoveryScript
        found = HostDiscoveryScript("printf ' a:2 \\n\\nb\\nc:1\\n'", 4)
        assert found.find_available_hosts_and_slots() == dict(a=2, b=4, c=1)
        assert FixedHosts(dict(a=1)).find_available_hosts_and_slots() == dict(a=1)
        for wrong in ("echo a:b", "exit 3"):
            try:
                HostDiscoveryScript(wrong, None).find_available_hosts_and_slots()
                raise SystemExit(wrong)
            except Exception as error:
                assert wrong in str(error), error
        """
    )
    assert done.code == 0, done.output


def test_modules_of_the_launcher_say_what_to_use():
    done = job.run_alone(
        """
        from horo import compat
        compat.install()
        import importlib
        import horovod.runner.elastic
        words = {
            "runner.gloo_run": "horovod.run()",
            "runner.mpi_run": "horo run --mpi",
            "runner.common.util.network": "socket",
            "runner.common.util.safe_shell_exec": "subprocess",
            "runner.elastic.driver": "horo run --min-np",
            "runner.util.lsf": "horo discover",
            "mxnet_of_nobody": "horovod.torch is",
        }
        for name, word in words.items():
            try:
                importlib.import_module("horovod." + name)
                raise SystemExit(name)
            except ModuleNotFoundError as error:
                assert f"horovod.{name} is not part of Horo" in str(error) and word in str(error), error
        """
    )
    assert done.code == 0, done.output


def test_helpers_of_the_launcher(tmp_path):
    (tmp_path / "hosts").write_text("a slots=2\n\n# none\nb  # one slot\n")
    (tmp_path / "wrong").write_text("a slots=many\n")
    done = job.run_alone(
        f"""
        from horo import compat
        compat.install()
        import horovod, os
        from horovod.runner.common.util import codec, env, host_hash, hosts, secret, timeout
        found = hosts.parse_hosts(hosts.parse_host_files({str(tmp_path / "hosts")!r}))
        assert [(one.hostname, one.slots) for one in found] == [("a", 2), ("b", 1)], found
        for function in (lambda: hosts.parse_hosts("a:x"), lambda: hosts.parse_host_files({str(tmp_path / "wrong")!r})):
            try:
                function()
                raise SystemExit("accepted")
            except ValueError as error:
                assert "a:x" in str(error) or "slots=many" in str(error), error
        assert codec.loads_base64(codec.dumps_base64({{1: "two"}})) == {{1: "two"}}
        os.environ["HOROVOD_HOSTNAME"] = "node7.example"
        assert host_hash.host_hash() == host_hash.host_hash() != host_hash.host_hash("salt")
        assert host_hash.host_hash().startswith("node7-")
        assert env.is_exportable("PATH") and not env.is_exportable("OLDPWD")
        assert env.get_env_rank_and_size() == (0, 1)
        os.environ.update(RANK="1", WORLD_SIZE="3")
        assert env.get_env_rank_and_size() == (1, 3)
        key = secret.make_secret_key()
        digest = secret.compute_digest(key, b"text")
        assert len(digest) == secret.DIGEST_LENGTH
        assert secret.check_digest(key, b"text", digest) and not secret.check_digest(key, b"test", digest)
        assert timeout.Timeout(1000, "").remaining() > 900
        try:
            timeout.Timeout(-1, "Too long for {{activity}}.").check_time_out_for("a start")
            raise SystemExit("not timed out")
        except timeout.TimeoutException as error:
            assert "Too long for a start." in str(error), error
        """
    )
    assert done.code == 0, done.output


def test_the_launcher_can_be_called_as_a_module():
    names = os.path.join(os.environ["PYTHONPATH"].split(os.pathsep)[0], "horo", "compat", "names")
    path = os.pathsep.join([names, os.environ["PYTHONPATH"]])
    command = [sys.executable, "-m", "horovod.runner.launch"]
    code = "import horovod.torch as hvd; hvd.init(); print('rank', hvd.rank())"
    code, output = launched([*command, "-np", "2", sys.executable, "-c", code], PYTHONPATH=path)
    assert code == 0 and "rank 0" in output and "rank 1" in output, output


def test_helpers_of_horovods_util():
    """The public helpers of horovod.common.util answer as Horovod's."""
    done = job.run_alone(
        """
        from horo import compat
        compat.install()
        import horovod.torch
        import horo.torch
        from horovod.common import util
        assert util.extension_available("torch") and not util.extension_available("tensorflow")
        assert util.gloo_built(verbose=True) is horo.torch.gloo_built()
        util.check_extension("horovod.torch", "HOROVOD_WITH_PYTORCH", "torch")
        assert util.split_list([1, 2, 3, 4, 5], 2) == [[1, 2, 3], [4, 5]]
        import os, warnings
        os.environ["KEPT"] = "1"
        with util.env(KEPT="2", MADE="3", IGNORED=None):
            assert (os.environ["KEPT"], os.environ["MADE"]) == ("2", "3")
            assert "IGNORED" not in os.environ
        assert os.environ["KEPT"] == "1" and "MADE" not in os.environ
        resolve = util.get_average_backwards_compatibility_fun(horo.torch)
        assert resolve(None, None) == horo.torch.Average
        assert resolve(horo.torch.Min, None) == horo.torch.Min
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            assert resolve(None, False) == horo.torch.Sum
            assert resolve(None, True) == horo.torch.Average
        try:
            resolve(horo.torch.Sum, True)
            raise SystemExit("both were taken")
        except ValueError:
            pass
        assert util.is_iterable([]) and not util.is_iterable(1)
        assert util.get_extension_full_path("/a/b.py", "c", "d") == "/a/c/d" + util.get_ext_suffix()
        assert util.is_version_greater_equal_than("2.10.0+cpu", "2.9")
        assert not util.is_version_greater_equal_than("1.13.0a0", "2.0")
        assert not util.nccl_built() and not util.cuda_built()
        assert [n for n in range(9) if util.num_rank_is_power_2(n)] == [1, 2, 4, 8]
        """
    )
    assert done.code == 0, done.output


def test_version_and_compressor():
    """Programs ask for a version of Horovod's interface, and bring compressors of their own."""
    done = job.run_alone(
        """
        from horo import compat
        compat.install()
        import horovod.torch
        import horo.torch
        horo.torch.init()
        import torch
        assert tuple(map(int, horovod.__version__.split("."))) >= (0, 28, 0), horovod.__version__
        assert horovod.torch.__version__ == horovod.__version__ != horo.__version__
        from horovod.torch.compression import Compressor
        class Halves(Compressor):
            @staticmethod
            def compress(tensor):
                return tensor / 2, None
            @staticmethod
            def decompress(tensor, ctx):
                return tensor * 2
        one = horo.torch.allreduce(torch.ones(2), compression=Halves)
        assert one.tolist() == [1.0, 1.0]
        """
    )
    assert done.code == 0, done.output


def test_missing_script_is_an_error():
    code, output = launched([sys.executable, "-m", "horo.compat", "nowhere.py"])
    assert code == 2 and "nowhere.py" in output and "Traceback" not in output, output
    code, output = launched([sys.executable, "-m", "horo.compat", "-m", "nomodule"])
    assert code == 1 and "nomodule" in output and "Traceback" not in output, output


def test_usage():
    code, output = launched([sys.executable, "-m", "horo.compat"])
    assert code == 1 and "usage:" in output
