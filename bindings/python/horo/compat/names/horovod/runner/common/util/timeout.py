# SPDX-License-Identifier: Apache-2.0
"""A limit of time."""

import time


class TimeoutException(Exception):
    """The time is up."""


class Timeout:
    """Ends `timeout` seconds from now. In `message`, `{activity}` stands for what was waited for."""

    def __init__(self, timeout, message):
        self._seconds = timeout
        self._end = time.monotonic() + timeout
        self._message = message

    def remaining(self):
        """Seconds until the end; 0 after it."""
        return max(0.0, self._end - time.monotonic())

    def timed_out(self):
        """Whether the time is up."""
        return time.monotonic() > self._end

    def check_time_out_for(self, activity):
        """Fails: TimeoutException (the time is up)."""
        if self.timed_out():
            text = self._message.format(activity=activity)
            raise TimeoutException(f"{text} The limit was {self._seconds} seconds.")
