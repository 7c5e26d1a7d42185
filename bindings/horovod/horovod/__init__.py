# SPDX-License-Identifier: Apache-2.0
"""Horo under Horovod's name. The modules are those of the package horo, in horo/compat/names, so that
both always belong to one release."""

import os

from horo import compat

__path__ = [os.path.join(compat.NAMES, "horovod")]
__file__ = os.path.join(__path__[0], "__init__.py")

with open(__file__) as _file:
    exec(compile(_file.read(), __file__, "exec"))
