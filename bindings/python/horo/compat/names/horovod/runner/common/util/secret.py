# SPDX-License-Identifier: Apache-2.0
"""Keys that messages are signed with."""

import hashlib
import hmac
import secrets

HOROVOD_SECRET_KEY = "_HOROVOD_SECRET_KEY"
DIGEST_LENGTH = 32  # bytes


def make_secret_key():
    """A new random key of 32 bytes."""
    return secrets.token_bytes(32)


def compute_digest(secret_key, payload):
    """The signature of a message of bytes."""
    return hmac.new(secret_key, payload, hashlib.sha256).digest()


def check_digest(secret_key, payload, digest):
    """Whether `digest` is the signature of the message."""
    return hmac.compare_digest(compute_digest(secret_key, payload), digest)
