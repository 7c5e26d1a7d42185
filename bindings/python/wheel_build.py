# SPDX-License-Identifier: Apache-2.0
"""Steps of `pip install .`: takes libhoro.so along when it has been built. Not installed itself."""

import glob
import os
import shutil

from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_BUILT = os.path.join(_ROOT, "build", "release", "lib", "libhoro.so")


def built_library():
    """Path of the libhoro.so to ship, or None."""
    path = os.environ.get("HORO_LIBRARY") or _BUILT
    return path if os.path.exists(path) else None


class BuildPy(build_py):
    def run(self):
        super().run()
        target = os.path.join(self.build_lib, "horo", "libhoro.so")
        if os.path.exists(target):
            os.unlink(target)
        library = built_library()
        if library is None:
            print(f"no {_BUILT}: the package will look for libhoro.so where it runs")
        else:
            shutil.copyfile(library, target)
        self.copy_backends(library)

    def copy_backends(self, library):
        """The loadable backends lie in horo/ beside libhoro.so, built or installed."""
        folder = os.path.join(self.build_lib, "horo", "horo")
        shutil.rmtree(folder, ignore_errors=True)
        backends = glob.glob(os.path.join(os.path.dirname(library), "horo", "horo-backend-*.so")) if library else []
        for backend in backends:
            os.makedirs(folder, exist_ok=True)
            shutil.copy(backend, folder)


class BdistWheel(bdist_wheel):
    """One wheel for every Python 3 of the machine's kind, or of any when it holds no library."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = built_library() is None

    def get_tag(self):
        python, abi, platform = super().get_tag()
        return (python, abi, platform) if self.root_is_pure else ("py3", "none", platform)
