# SPDX-License-Identifier: Apache-2.0
"""Lightning 2 on Horo, under `lightning` and under `pytorch_lightning`.

    import horo.lightning

    trainer = lightning.Trainer(accelerator="cpu", strategy="horo")

    horo run -np 4 python3 train.py

strategy="horovod", which Lightning dropped, is the same. The launcher says how many ranks there are; `devices` and
`num_nodes` of the Trainer are ignored for it. Without `horo run`, Lightning starts the ranks as for strategy="ddp".
"""

from __future__ import annotations

from horo.lightning._strategy import register

register()

__all__ = ["register"]
