# SPDX-License-Identifier: Apache-2.0
"""Steps of `pip install .` that put the files of a CMake build into the wheel. Not installed itself.

The wheel holds libhoro, its backends, the extension module and the tools, which go to `bin` of the environment.
It needs only the system's C and C++ libraries. Other libraries that the backend gloo uses are inside, with their licences. The
MPI backends use the MPI of the ranks. The file NOTICES has the terms of the code that is compiled in.
"""

import atexit
import functools
import glob
import os
import re
import shutil
import subprocess
import tempfile

from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_BUILT = os.path.join(_ROOT, "build", "release", "lib", "libhoro.so")
# Libraries that every Linux has, as in the list of auditwheel.
SYSTEM = r"(linux-vdso|libc|libm|libdl|libpthread|librt|libz|libstdc\+\+|libgcc_s)\.so\.\d+|ld-linux.*"
# Code that is compiled into the library and the tools, and the Debian package that has its terms.
COMPILED_IN = {
    "CLI11": "libcli11-dev",
    "fmt": "libfmt-dev",
    "libsodium": "libsodium-dev",
    "yaml-cpp": "libyaml-cpp-dev",
}
BOOST = """Boost

Under the Boost Software License 1.0, https://www.boost.org/LICENSE_1_0.txt, which asks for no more of what is
compiled.
"""
_STAGE = os.path.join("build", "wheel", "tools")


def built_library():
    """Path of the libhoro.so to ship, or None."""
    path = os.environ.get("HORO_LIBRARY") or _BUILT
    return path if os.path.exists(path) else None


def _installed(build):
    """Installs a build tree with `cmake --install` into a temporary folder, so that the files are stripped and
    hold no paths of the build tree. Returns None when the tree is not completely built."""
    if not os.path.exists(os.path.join(build, "CMakeCache.txt")) or not shutil.which("cmake"):
        return None
    prefix = tempfile.mkdtemp(prefix="horo-wheel-")
    atexit.register(shutil.rmtree, prefix, ignore_errors=True)
    command = ["cmake", "--install", build, "--prefix", prefix, "--strip"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return prefix
    print(f"the wheel has no tools: {' '.join(command)} failed: {done.stdout[-500:]}")
    return None


def _text(*command):
    """The output of a program; "" when it does not exist or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def _copyright(library):
    """The terms of a library of the system, from Debian's files; None when they are not found."""
    package = _text("dpkg", "-S", "*/" + os.path.basename(os.path.realpath(library))).partition(":")[0]
    return _terms(package or "none")


def _terms(package):
    path = os.path.join("/usr/share/doc", package, "copyright")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        text = file.read()
    for name in sorted(set(re.findall(r"/usr/share/common-licenses/([-.\w]*\w)", text))):
        with open(os.path.join("/usr/share/common-licenses", name)) as file:
            text += f"\n{name}:\n\n{file.read()}"
    return text


def _carried(module):
    """[(name, path, terms)] of the system's libraries that a module needs. Empty when the terms of one are
    not found."""
    needed = re.findall(r"^\s*(\S+) => (/\S+)", _text("ldd", module), re.MULTILINE)
    found = [(name, path, _copyright(path)) for name, path in needed if not re.fullmatch(SYSTEM, name)]
    without = [name for name, _, terms in found if terms is None]
    if without:
        print(f"the wheel carries no libraries of {module}: no copyright of {', '.join(without)}")
    return [] if without else found


def _notices():
    """The terms of the code that is compiled in."""
    found = {name: _terms(package) for name, package in COMPILED_IN.items()}
    without = [name for name, terms in found.items() if terms is None]
    if without:
        print(f"the wheel has no terms of {', '.join(without)}: add them before it is given away")
    texts = [f"{name}\n\n{terms}" for name, terms in found.items() if terms]
    texts.append(BOOST)
    line = "\n" + 80 * "-" + "\n\n"
    return "Horo contains parts of the following, under these terms:\n" + line + line.join(texts)


class Parts:
    """Files to ship: `library`, `backends`, the extension module `fastpath` and the images of the devices'
    `kernels`, where there are any, `tools`, and the `carried` libraries of the system."""

    def __init__(self):
        self.library, self.backends, self.fastpath, self.tools = built_library(), [], [], []
        self.kernels, self.carried = [], []
        if self.library is None:
            print(f"no {_BUILT}: the package will look for libhoro.so where it runs")
            return
        prefix = _installed(os.path.dirname(os.path.dirname(os.path.abspath(self.library))))
        if prefix:
            # libhoro.so is a link to the library.
            self.library = glob.glob(os.path.join(prefix, "lib*", "**", "libhoro.so"), recursive=True)[0]
            found = glob.glob(os.path.join(prefix, "bin", "horo*"))
            names = [path for path in found if re.match(r"horo(vodrun|-.*)?$", os.path.basename(path))]
            self.tools = sorted(names)
        folder = os.path.join(os.path.dirname(self.library), "horo")
        # Backends, and the modules that frameworks load.
        self.backends = sorted(glob.glob(os.path.join(folder, "horo-backend-*.so")))
        self.backends += sorted(glob.glob(os.path.join(folder, "horo-tensorflow.so")))
        self.backends += sorted(glob.glob(os.path.join(folder, "horo-jax.so")) + glob.glob(os.path.join(folder, "horo-mpiabi.so")))
        self.fastpath = glob.glob(os.path.join(folder, "horo-fastpath.abi3.so"))
        self.kernels = glob.glob(os.path.join(folder, "horo-kernels.*"))
        for path in self.backends:
            if path.endswith("-gloo.so"):
                self.carried = _carried(path)

    def carry(self, folder):
        """Copies the carried libraries into a folder, each with a file of its terms."""
        for name, path, terms in self.carried:
            os.makedirs(folder, exist_ok=True)
            shutil.copy(path, os.path.join(folder, name))
            with open(os.path.join(folder, name + ".copyright"), "w") as file:
                file.write(terms)

    def glibc(self):
        """The oldest version of the C library that all files can use, as (2, number), or None."""
        numbers = []
        carried = [one[1] for one in self.carried]
        for path in [self.library, *self.backends, *self.fastpath, *self.tools, *carried]:
            with open(path, "rb") as file:
                numbers += [int(number) for number in re.findall(rb"GLIBC_2\.(\d+)", file.read())]
        return (2, max(numbers)) if numbers else None


def _beside(paths):
    """Copies below the working folder, because setuptools accepts no other paths."""
    shutil.rmtree(_STAGE, ignore_errors=True)
    os.makedirs(_STAGE)
    return [shutil.copy(path, _STAGE) for path in paths]


@functools.lru_cache(maxsize=None)
def parts():
    return Parts()


class BuildPy(build_py):
    def run(self):
        super().run()
        package = os.path.join(self.build_lib, "horo")
        for left in ("libhoro.so", "horo", "NOTICES"):  # from an earlier build
            self._remove(os.path.join(package, left))
        if parts().library is None:
            return
        shutil.copyfile(parts().library, os.path.join(package, "libhoro.so"))
        for path in [*parts().backends, *parts().fastpath, *parts().kernels]:
            os.makedirs(os.path.join(package, "horo"), exist_ok=True)
            shutil.copy(path, os.path.join(package, "horo"))
        with open(os.path.join(package, "NOTICES"), "w") as file:
            file.write(_notices())
        parts().carry(os.path.join(package, "horo", "carried"))

    @staticmethod
    def _remove(path):
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.unlink(path)


class BdistWheel(bdist_wheel):
    """One wheel for every Python 3 on machines of this kind; on all machines when it holds no library."""

    def finalize_options(self):
        if parts().tools:
            self.distribution.data_files = [("bin", _beside(parts().tools))]
        binary = parts().library is not None
        self.distribution.has_ext_modules = lambda: binary
        super().finalize_options()
        self.root_is_pure = not binary

    def get_tag(self):
        python, abi, platform = super().get_tag()
        if self.root_is_pure:
            return python, abi, platform
        needed = parts().glibc()
        if needed and platform.startswith("linux_"):
            platform = "manylinux_%d_%d_%s" % (*needed, platform[len("linux_") :])
        return "py3", "none", platform
