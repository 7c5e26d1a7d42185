# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.data.compute_service under Horovod's name."""

from horo.tensorflow.data.compute_service import (
    TfDataServiceConfig,
    send_to_data_service,
    tf_data_service,
)
