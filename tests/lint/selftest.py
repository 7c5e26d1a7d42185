# SPDX-License-Identifier: Apache-2.0
"""The lint checks find planted faults, each exactly, and pass a tree without.

usage: selftest.py [--shellcheck]
"""

import os
import sys
import tempfile
import unittest

import files
import headers
import layers
import shell

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"


class LintTest(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def plant(self, path, content):
        full = os.path.join(self._folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(content)

    def expect(self, check, *words):
        """`check` reports one fault per word, in order, and nothing else."""
        faults = check(self._folder.name)
        self.assertEqual(len(faults), len(words), faults)
        for fault, word in zip(faults, words):
            self.assertIn(word, fault)


class Layers(LintTest):
    def test_arrows(self):
        for folder in ("base", "discovery", "launcher", "runtime/include/horo", "apps"):
            self.plant(f"{folder}/a.hpp", "")
        self.plant("launcher/job.cpp", '#include "base/a.hpp"\n#include <vector>\n#include "discovery/a.hpp"\n')
        self.plant("apps/run.cpp", '#include "launcher/a.hpp"\n#include "runtime/a.hpp"\n')
        self.plant("examples/e.cpp", "#include <horo/horo.hpp>\n")
        self.expect(layers.check)
        self.plant("base/bad.cpp", '#include "discovery/a.hpp"\n')
        self.plant("launcher/bad.cpp", "\n#include <horo/horo.h>\n")
        self.plant("runtime/bad.cpp", '# include "launcher/a.hpp"\n')
        self.plant("runtime/worse.cpp", '#include "worse.hpp"\n#include "../base/a.hpp"\n')
        self.expect(layers.check, "base/bad.cpp:1: base includes discovery", "launcher/bad.cpp:2: launcher includes runtime",
                    "runtime/bad.cpp:1: runtime includes launcher", '"worse.hpp" is not', '"../base/a.hpp" is not')

    def test_third_party_homes(self):
        self.plant("base/loop/loop.cpp", "#include <boost/asio.hpp>\n")
        self.plant("launcher/agent/pump.cpp", "#include <boost/asio/read.hpp>\n")
        self.plant("launcher/process/group.hpp", "#include <boost/process/v2.hpp>\n")
        self.plant("apps/common/yaml.cpp", "#include <yaml-cpp/yaml.h>\n")
        self.plant("bench/peer.cpp", "#include <mpi.h>\n")
        self.expect(layers.check)
        self.plant("apps/run/main.cpp", "#include <yaml-cpp/yaml.h>\n")
        self.plant("launcher/agent/pump.hpp", "#include <boost/asio/read.hpp>\n")
        self.plant("launcher/job/spawn.cpp", "#include <boost/process/v2.hpp>\n")
        self.plant("runtime/coordinator/store.cpp", "#include <gloo/context.h>\n")
        self.expect(layers.check, "yaml-cpp/yaml.h> belongs to apps/common", "boost/asio/read.hpp> belongs to base/loop",
                    "boost/process/v2.hpp> belongs to launcher/process", "gloo/context.h> belongs to runtime/backends/gloo")


class Files(LintTest):
    def test_each_rule(self):
        good = SPDX + "#pragma once\nint f();\n"
        self.plant("base/good.hpp", good)
        self.plant("scripts/good", "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n")
        self.plant("runtime/backends/shm/kernels/table.cpp", SPDX + "int x;\n" * 700)
        self.plant("docs/good.md", "[a](../base/good.hpp) [b](https://example.org) [c](#here)\n")
        self.expect(files.check)
        self.plant("base/a.hpp", "#pragma once\n")
        self.plant("base/b.cpp", SPDX + "int x;\n" * 600)
        self.plant("base/c.hpp", SPDX)
        self.plant("base/d.cpp", SPDX + "\tint x;\n")
        self.plant("base/e.cpp", SPDX + "int x; \n")
        self.plant("base/f.cpp", SPDX + "// FIX" + "ME\n")
        self.plant("base/g.cpp", SPDX + "// TO" + "DO later\n// TO" + "DO later, because the format is not settled\n")
        self.plant("base/h.cpp", SPDX + '// see /home' + '/me/notes\n')
        self.plant("base/i.py", "#!/usr/bin/python3\nimport os\n")
        self.plant("docs/j.md", "[a](base/good.hpp)\n")
        self.expect(files.check, "a.hpp:1: the first line", "b.cpp: 601 lines", "c.hpp: no '#pragma once'", "d.cpp:2: a tab",
                    "e.cpp:2: white space", "f.cpp:2: 'FIX", "g.cpp:2: a deferred", "h.cpp:2: a path", "i.py:2: the first line",
                    "j.md:1: the link to 'base/good.hpp'")


class Headers(LintTest):
    def test_missing_include_is_found(self):
        self.plant("base/good.hpp", "#pragma once\n#include <string>\ninline std::string f() { return {}; }\n")
        self.plant("base/own.hpp", "#pragma once\nstd::string own();\n")
        self.plant("base/own.cpp", '#include "base/own.hpp"\n')  # the build finds this one
        self.expect(headers.check)
        self.plant("base/bad.hpp", "#pragma once\ninline std::string g() { return {}; }\n")
        self.plant("base/late.hpp", "#pragma once\nstd::string late();\n")
        self.plant("base/late.cpp", '#include <string>\n#include "base/late.hpp"\n')
        self.plant("runtime/include/horo/bad.h", "#include <vector>\n")
        self.expect(headers.check, "base/bad.hpp: does not", "base/late.hpp: does not", "horo/bad.h: does not")


@unittest.skipUnless("--shellcheck" in sys.argv, "no shellcheck here")
class Shell(LintTest):
    def test_unquoted_variable_is_found(self):
        self.plant("scripts/good", "#!/bin/bash\necho hello\n")
        self.expect(shell.check)
        self.plant("scripts/bad", "#!/bin/bash\ncd $1\n")
        self.plant("tests/cli/bad.sh", "#!/bin/bash\nls $1\n")
        self.assertTrue(any("scripts/bad" in fault for fault in shell.check(self._folder.name)))
        self.assertTrue(any("tests/cli/bad.sh" in fault for fault in shell.check(self._folder.name)))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
