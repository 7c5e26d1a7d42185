# SPDX-License-Identifier: Apache-2.0
"""The data service: another process computes the elements of a dataset."""

import os
import socket
import subprocess
import sys

import pytest
import tensorflow as tf

from horo.errors import HoroError, TimeOutError
from horo.tensorflow.data import TfDataServiceConfig, _registry, send_to_data_service, tf_data_service


@pytest.mark.parametrize("side", ("compute", "training"))
def test_a_dataset_is_computed_elsewhere(tmp_path, side):
    path = str(tmp_path / "config.json")
    command = [sys.executable, "-m", "horo.tensorflow.data.compute_worker", "--dispatcher-side", side, path]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        config = TfDataServiceConfig.read(path, wait_for_file_creation=True)
        assert os.stat(path).st_mode & 0o077 == 0  # it has the key
        with tf_data_service(config, 0) as service:
            elsewhere = tf.data.Dataset.range(10).map(lambda x: x + 1)
            found = elsewhere.apply(tf.data.experimental.service.distribute("distributed_epoch", service))
            assert sorted(found.as_numpy_iterator()) == list(range(1, 11))
        output, _ = worker.communicate(timeout=60)
    finally:
        worker.kill()
    assert worker.returncode == 0, output
    assert not os.path.exists(path)


def test_strangers_at_the_table_stop_nobody():
    registry = _registry.Registry(b"key")
    address = f"127.0.0.1:{registry.port}"
    with socket.create_connection(("127.0.0.1", registry.port)):  # says nothing
        socket.create_connection(("127.0.0.1", registry.port)).close()
        with socket.create_connection(("127.0.0.1", registry.port)) as other:
            other.sendall(b"GET / HTTP/1.1\r\n\r\n")
            _registry.put(address, b"key", "name", 1)
            assert _registry.wait(address, b"key", "name", 10) == 1
    registry.close()


def test_bad_input(tmp_path):
    registry = _registry.Registry(b"key")
    address = f"127.0.0.1:{registry.port}"
    config = TfDataServiceConfig(1, 1, "compute", address, b"key", timeout=0)
    with pytest.raises(TimeOutError, match="dispatcher 0"):
        with tf_data_service(config, 1):
            pass
    with pytest.raises(HoroError, match="another key"):
        _registry.put(address, b"wrong", "name", 1)
    registry.close()
    with pytest.raises(ValueError, match="multiple"):
        send_to_data_service(None, TfDataServiceConfig(2, 1, "compute", address, b"key"), 0, size=3)
    with pytest.raises(ValueError, match="round_robin"):
        send_to_data_service(None, config, 0, round_robin=True)
    with pytest.raises(ValueError, match="dispatcher_side"):
        TfDataServiceConfig(1, 1, "other", address, b"key")
    path = str(tmp_path / "config.json")
    config.write(path)
    assert TfDataServiceConfig.read(path) == config
