# SPDX-License-Identifier: Apache-2.0
"""horo.tensorflow.elastic under Horovod's name."""

from horo.tensorflow.elastic import TensorFlowKerasState, TensorFlowState, run
