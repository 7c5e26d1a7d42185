# SPDX-License-Identifier: Apache-2.0
"""A name for this host."""

import hashlib
import os
import socket


def host_hash(salt=None):
    """The same text for all processes of a host, and another one for each other host and `salt`. HOROVOD_HOSTNAME names
    the host, if it is set."""
    host = os.environ.get("HOROVOD_HOSTNAME") or socket.gethostname()
    text = host if salt is None else f"{host}-{salt}"
    return f"{host.split('.')[0]}-{hashlib.sha256(text.encode()).hexdigest()[:32]}"
