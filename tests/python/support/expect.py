# SPDX-License-Identifier: Apache-2.0
"""Expectations that the checks of several jobs share."""


def fails(kind, function, *words):
    try:
        function()
    except kind as error:
        assert all(str(word) in str(error) for word in words), (words, str(error))
        return
    raise AssertionError(f"no {kind.__name__}")
