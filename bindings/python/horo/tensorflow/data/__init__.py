# SPDX-License-Identifier: Apache-2.0
"""Input pipelines that other processes compute, by the service of tf.data.

    horo run -np 4 python3 -m horo.tensorflow.data.compute_worker config.json     # on machines without GPUs

    config = TfDataServiceConfig.read("config.json", wait_for_file_creation=True)
    with tf_data_service(config, horo.rank()) as service:
        dataset = dataset.apply(tf.data.experimental.service.distribute("distributed_epoch", service))
        model.fit(dataset)
"""

from horo.tensorflow.data.compute_service import (
    TfDataServiceConfig,
    send_to_data_service,
    tf_data_service,
)

__all__ = ["send_to_data_service", "tf_data_service", "TfDataServiceConfig"]
