# SPDX-License-Identifier: Apache-2.0
"""Each lint check finds exactly the planted faults, and accepts a tree without faults.

usage: selftest.py [--clang] [--shellcheck]
"""

import json
import os
import sys
import tempfile
import unittest

import classes
import files
import folders
import functions
import headers
import knobs
import layers
import locks
import shell
import versions
import words

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

    def test_an_include_against_the_order_of_the_runtime_folders_is_found(self):
        self.plant("runtime/board/board.hpp", SPDX)
        self.plant("runtime/backends/flat/flat.cpp", '#include "runtime/bucket/backend.hpp"\n')
        self.plant("runtime/bucket/backend.hpp", '#include "runtime/host/arena.hpp"\n')
        self.plant("runtime/host/arena.hpp", SPDX)
        self.expect(layers.check)
        self.plant("runtime/host/bad.cpp", '#include "runtime/board/board.hpp"\n')
        self.plant("runtime/attic/new.cpp", '#include "runtime/board/board.hpp"\n')
        self.expect(layers.check, "runtime/attic has no place", "runtime/host/bad.cpp:1: runtime/host includes runtime/board")

    def test_the_tables_of_folders_have_no_cycle(self):
        for top, rooms in layers.INSIDE.items():
            before = set()
            for room, may in rooms.items():
                self.assertEqual(set(may) - before, set(), f"{top}/{room} may include a folder that comes later in the table")
                before.add(room)

    def test_folders_inside_a_top_folder(self):
        self.plant("discovery/host.hpp", "")
        self.plant("discovery/sources/slurm.hpp", '#include "discovery/host.hpp"\n')
        self.plant("discovery/search/find.cpp", '#include "discovery/sources/slurm.hpp"\n#include "discovery/host.hpp"\n')
        self.expect(layers.check)
        self.plant("discovery/topology/bad.cpp", '#include "discovery/sources/slurm.hpp"\n')
        self.expect(layers.check, "topology/bad.cpp:1: discovery/topology includes discovery/sources")

    def test_cycles(self):
        self.plant("apps/a/one.hpp", '#include "apps/b/two.hpp"\n#include "apps/a/own.hpp"\n')
        self.plant("apps/b/two.hpp", '#include "apps/c/three.hpp"\n')
        self.plant("apps/c/three.hpp", "")
        self.expect(layers.check)
        self.plant("apps/c/back.cpp", '#include "apps/a/one.hpp"\n')
        self.expect(layers.check, "folders include each other: apps/a, apps/b, apps/c (")

    def test_third_party_homes(self):
        self.plant("base/loop/loop.cpp", "#include <boost/asio.hpp>\n")
        self.plant("launcher/process/pump.cpp", "#include <boost/asio/read.hpp>\n")
        self.plant("launcher/process/group.hpp", "#include <boost/process/v2.hpp>\n")
        self.plant("apps/common/yaml.cpp", "#include <yaml-cpp/yaml.h>\n")
        self.plant("bench/peer.cpp", "#include <mpi.h>\n")
        self.expect(layers.check)
        self.plant("apps/run/main.cpp", "#include <yaml-cpp/yaml.h>\n")
        self.plant("launcher/agent/pump.hpp", "#include <boost/asio/read.hpp>\n")
        self.plant("launcher/job/spawn.cpp", "#include <boost/process/v2.hpp>\n")
        self.plant("runtime/engine/store.cpp", "#include <gloo/context.h>\n")
        self.expect(layers.check, "yaml-cpp/yaml.h> belongs to apps/common", "boost/asio/read.hpp> belongs to base/loop",
                    "boost/process/v2.hpp> belongs to launcher/process", "gloo/context.h> belongs to runtime/backends/gloo")


class Knobs(LintTest):
    def test_each_rule(self):
        row = "inline constexpr Knob<bool> {}{{\n    .text = {{.key = \"x\"{}}}}};\n"
        self.plant("base/knobs/knobs.hpp", row.format("kRead", "") + row.format("kDead", ', .inert = "no"'))
        self.plant("base/knobs/knob_table.cpp", "row(knobs::kRead),\nrow(knobs::kDead),\n")
        self.plant("runtime/options.cpp", "settings.get(knobs::kRead);\nis_set(knobs::kDead.text.key);\n")
        self.expect(knobs.check)
        self.plant("base/knobs/more_knobs.hpp", row.format("kIgnored", "") + row.format("kUsed", ', .inert = "no"'))
        self.plant("launcher/plan.cpp", "settings.get(knobs::kUsed);\nname(knobs::kIgnored.text.key);\n")
        self.plant("base/knobs/knob_table.cpp", "row(knobs::kRead),\nrow(knobs::kDead),\nrow(knobs::kIgnored),\n")
        self.expect(knobs.check, "no code reads kIgnored", "kUsed is not in", "kUsed is declared inert")


class Files(LintTest):
    def test_each_rule(self):
        good = SPDX + "#pragma once\nint f();\n"
        self.plant("base/good.hpp", good)
        self.plant("scripts/good", "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n")
        self.plant("runtime/kernels/table.cpp", SPDX + "int x;\n" * 700)
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
                    "e.cpp:2: white space", "f.cpp:2: 'FIX", "g.cpp:2: a deferred", "h.cpp:2: a path that exists", "i.py:2: the first line",
                    "j.md:1: the link to 'base/good.hpp'")


CPP_FUNCTIONS = """
#include <vector>
namespace a {
template <typename T = std::vector<int>>
struct alignas(64) Big final : Base {
  explicit Big(int x)
      : x_{x}, y_(std::max(x, 1)) {
    work();  // a brace: {
  }
  bool operator()(const Big& other) const noexcept override { return x_ < other.x_; }
  int x_ = 0;
};
const std::array kTable{Row{"{", [](int x) { return x; }}, Row{'{', nullptr}};
auto long_one(int x)
    -> std::vector<int>
{
  struct Local { int f() { return 1; } };
  for (;;) { if (x) break; }
  const char* raw = R"json({"a": [}} )json";
  return {x};
}
}  // namespace a
"""


class Functions(LintTest):
    def test_functions_are_found(self):
        self.assertEqual(functions.cpp_functions(CPP_FUNCTIONS), [(6, 9), (10, 10), (13, 13), (14, 21)])
        self.assertEqual(functions.python_functions("class A:\n  @property\n  def f(self):\n    return 1\n"), [(3, 4)])
        with self.assertRaises(ValueError):
            functions.cpp_functions("void f() {\n")

    def test_long_functions(self):
        self.plant("base/good.cpp", "void f() {\n" + "  work();\n" * 58 + "}\n")
        self.plant("base/good.py", "def f():\n" + "    work()\n" * 59)
        self.expect(lambda root: functions.check(root, 0, 2))
        self.plant("base/bad.cpp", "void f() {\n" + "  work();\n" * 59 + "}\n")
        self.plant("base/bad.py", "def f():\n" + "    work()\n" * 60)
        self.expect(lambda root: functions.check(root, 0, 4), "bad.cpp:1: a function of 61", "bad.py:1: a function of 61")
        self.expect(lambda root: functions.check(root, 2, 3), "4 functions are over 40 lines, at most 3")


class Folders(LintTest):
    def test_large_folders(self):
        for number in range(25):
            self.plant(f"launcher/agent/a{number}.cpp", "")
        self.plant("launcher/agent/CMakeLists.txt", "")
        self.plant("launcher/agent/deep/a.cpp", "")
        for number in range(30):
            self.plant(f"tests/unit/a{number}.cpp", "")
        self.expect(folders.check)
        self.plant("launcher/agent/more.py", "")
        self.expect(folders.check, "launcher/agent: 26 code files, at most 25")

    def test_header_names(self):
        self.plant("base/log.hpp", "")
        self.plant("runtime/log.cpp", "")
        self.expect(folders.check)
        self.plant("tests/support/log.hpp", "")
        self.expect(folders.check, "log.hpp: the name of 2 headers: base/log.hpp, tests/support/log.hpp")
        self.expect(lambda root: folders.check(root, {"log.hpp": "a reason"}))
        many = {f"{number}.hpp": "a reason" for number in range(5)}
        self.expect(lambda root: folders.check(root, {**many, "log.hpp": "a reason"}), "6 header names may be shared")


CPP_CLASSES = """
#pragma once
namespace a {
class Later;
enum class Colour { red, green };
template <typename T = std::vector<int>>
class alignas(64) Big final : public Base<T> {
  void hidden();
 public:
  explicit Big(int x) : x_{x} { work(); }
  ~Big();
  Big& operator=(const Big&) = delete;
  using Report = std::function<void(int)>;
  using Base<T>::inherited;
  enum class Kind { one, two };
  struct Part { int a = 0; int f() { return a; } };
  static constexpr std::size_t kMost = 4;
  static Result<std::unique_ptr<Big>> open(int fd, std::function<void(int)> then = [](int) {});
  int size() const { return x_; }
  int size(int more) const;
  template <typename M> void take(int, const M&) {}
  bool operator==(const Big&) const = default;
  friend bool operator<(const Big& a, const Big& b);
  std::function<void(int)> on_end_ = nullptr;
  std::vector<int> list_{};
 protected:
  void inner();
 private:
  void secret() HORO_REQUIRES(mutex_);
  int x_;
};
template <> struct Big<int> { int f(); };
struct Open { void run(); int x = 0; };
}  // namespace a
"""


class Classes(LintTest):
    def test_public_declarations_are_counted(self):
        found = {one.name: one.public for one in classes.Parser(CPP_CLASSES).classes if one.first < 30}
        self.assertEqual(set(found), {"Colour", "Big", "Big::Kind", "Big::Part"})
        self.assertEqual(found["Big"], {classes._SPECIAL, "Report", "inherited", "Kind", "Part", "kMost", "open", "size", "take",
                                        "operator=="})
        self.assertEqual(found["Big::Part"], {"f"})
        with self.assertRaises(ValueError):
            classes.Parser("class A {};\n}\n")

    def test_many_public_declarations(self):
        functions_of = lambda count: "".join(f"  void f{number}(int);\n  void f{number}();\n" for number in range(count))  # noqa: E731
        self.plant("base/good.hpp", "class Good {\n public:\n" + functions_of(25) + " private:\n  void g();\n};\n")
        self.plant("tests/support/large.hpp", "struct Large {\n" + functions_of(30) + "};\n")
        self.expect(lambda root: classes.check(root, {}))
        self.plant("base/bad.hpp", "class Bad {\n public:\n" + functions_of(25) + "  Bad();\n};\n")
        self.expect(lambda root: classes.check(root, {}), "bad.hpp:1: Bad has 26 public declarations")

    def test_long_classes(self):
        member = "void Long::f() {\n" + "  work();\n" * 38 + "}\n"
        self.plant("base/long.hpp", "class Long {\n  void f();\n};\n" + "\n" * 57)
        self.plant("base/long.cpp", member * 10)
        self.plant("base/other.hpp", "class Other {\n  void f();\n};\n")
        self.plant("base/other.cpp", member + member.replace("Long", "Other") * 2)
        self.plant("runtime/own.cpp", "namespace {\nclass Long {\n  void f();\n};\n" + member * 2 + "}\n")
        self.expect(lambda root: classes.check(root, {}))
        self.plant("base/long.cpp", member * 10 + "void help() {}\n")
        self.expect(lambda root: classes.check(root, {}), "long.hpp: Long has 501 lines")

    def test_classes_that_no_header_has_are_counted_too(self):
        hidden = "namespace {\nclass Hidden {\n public:\n" + "".join(f"  void f{number}();\n" for number in range(26)) + "};\n}\n"
        self.plant("base/many.cpp", hidden)
        self.expect(lambda root: classes.check(root, {}), "many.cpp:2: Hidden has 26 public declarations")
        self.plant("base/many.cpp", "")
        long = "class Link {\n" + "  int work_;\n" * 494 + "};\n"
        self.plant("base/long.cpp", "namespace {\n" + long + "}\nvoid use() {}\nvoid help() {}\n")
        self.expect(lambda root: classes.check(root, {}))
        self.plant("base/long.cpp", "namespace {\n" + long + "}\nvoid use() {}\nvoid help() {}\nvoid more() {}\n")
        self.expect(lambda root: classes.check(root, {}), "long.cpp:2: Link has 501 lines")

    def test_class_names(self):
        self.plant("base/log.hpp", "struct Log {};\nclass Part;\n")
        self.plant("runtime/part.hpp", "struct Part {\n  struct Log {};\n};\ntemplate <> struct Part<int> {};\n")
        self.plant("runtime/own.cpp", "namespace {\nstruct Log {};\n}\n")
        self.plant("runtime/include/horo/log.hpp", "struct Log {};\n")
        self.plant("tests/support/log.hpp", "struct Log {};\n")
        self.expect(lambda root: classes.check(root, {}))
        self.plant("launcher/log.cpp", "namespace launcher {\nenum class Log { a };\n}\n")
        self.expect(lambda root: classes.check(root, {}), "Log: the name of 2 classes: base/log.hpp:1, launcher/log.cpp:2")
        self.expect(lambda root: classes.check(root, {"Log": "a reason"}))
        many = {f"A{number}": "a reason" for number in range(5)}
        self.expect(lambda root: classes.check(root, {**many, "Log": "a reason"}), "6 class names may be shared")


class Words(LintTest):
    def test_good_comments(self):
        self.plant("base/a.hpp", '// The rank that waits.\n// Of two, the first wins.\nint x;  ///< Offset.\nauto s = "// Of who";\n')
        self.plant("base/b.py", '"""The rank that waits."""\nx = "Who waits"  # Offset.\ny = ("a"\n     """Of two""")\n')
        self.plant("docs/c.md", "# Who reads this\n")
        self.expect(lambda root: words.check(root, 0, 0))

    def test_fragments(self):
        self.plant("base/a.hpp", "int x;  ///< Of the rank.\nint y;  // What waits.\n/* To whom it may concern. */\n")
        self.plant("base/b.py", '"""Of a module."""\n')
        self.plant("base/c.sh", "#!/bin/bash\n# Of a script.\n")
        self.expect(lambda root: words.check(root, 0, 1), "a.hpp:1: fragment", "a.hpp:2: fragment", "a.hpp:3: fragment",
                    "b.py:1: fragment", "c.sh:2: fragment")
        self.expect(lambda root: words.check(root, 5, 1))

    def test_who(self):
        self.plant("base/a.cpp", "/* The rank\n   who waits. */\n// Those for whom it waits.\n")
        self.expect(lambda root: words.check(root, 0, 0), "a.cpp:2: who", "a.cpp:3: who")
        self.expect(lambda root: words.check(root, 0, 2))

    def test_questions_and_quoted_words(self):
        self.plant("base/a.hpp", '// Who owns it? The loop.\n\n/// What is it?\n\n// Prints "who", or `who`.\n')
        self.plant("base/b.py", '"""usage: run --who a,b\n\n`f(who)` runs "who"."""\n')
        self.expect(words.check)
        self.plant("base/a.hpp", "// Is it done? The rank who owns it.\n")
        self.expect(words.check, "a.hpp:1: who")


@unittest.skipUnless("--clang" in sys.argv, "no clang here")
class Headers(LintTest):
    def test_missing_include_is_found(self):
        self.plant("base/good.hpp", "#pragma once\n#include <string>\ninline std::string f() { return {}; }\n")
        self.expect(headers.check)
        self.plant("base/bad.hpp", "#pragma once\ninline std::string g() { return {}; }\n")
        self.plant("base/late.hpp", "#pragma once\nstd::string late();\n")
        self.plant("base/late.cpp", '#include <string>\n#include "base/late.hpp"\n')
        self.plant("runtime/include/horo/bad.h", "#include <vector>\n")
        self.expect(headers.check, "base/bad.hpp: does not", "base/late.hpp: does not", "horo/bad.h: does not")

    def test_a_header_sees_only_what_it_includes(self):
        for number in range(4):  # Enough users that the headers in common are kept for them.
            self.plant(f"base/user{number}.hpp", '#pragma once\n#include "base/text.hpp"\nstd::string f();\n')
            self.plant(f"base/user_too{number}.hpp", '#pragma once\n#include "base/list.hpp"\nstd::vector<Text> g();\n')
        self.plant("base/text.hpp", "#pragma once\n#include <string>\nusing Text = std::string;\n")
        self.plant("base/list.hpp", '#pragma once\n#include <vector>\n#include "base/text.hpp"\n')
        self.expect(headers.check)
        self.plant("base/bad1.hpp", '#pragma once\n#include "base/text.hpp"\nstd::vector<Text> h();\n')
        self.plant("base/bad2.hpp", '#pragma once\n#if 0\n#include "base/list.hpp"\n#endif\nstd::vector<int> h();\n')
        self.expect(headers.check, "base/bad1.hpp: does not", "base/bad2.hpp: does not")


MUTEX = """#pragma once
class __attribute__((capability("mutex"))) Mutex {
 public:
  void lock() __attribute__((acquire_capability()));
  void unlock() __attribute__((release_capability()));
};
"""
COUNTER = """#pragma once
#include "base/mutex.hpp"
struct Counter {
  void add() { mutex.lock(); ++count; mutex.unlock(); }
  Mutex mutex;
  int count __attribute__((guarded_by(mutex))) = 0;
};
"""


@unittest.skipUnless("--clang" in sys.argv, "no clang here")
class Locks(LintTest):
    def setUp(self):
        super().setUp()
        self.plant("base/mutex.hpp", MUTEX)
        self.plant("base/counter.hpp", COUNTER)

    def test_an_access_without_the_mutex_is_found(self):
        self.plant("base/good.cpp", '#include "base/counter.hpp"\nvoid f(Counter& c) { c.add(); }\n')
        self.expect(locks.check)
        self.plant("base/between.hpp", '#pragma once\n#include "base/counter.hpp"\n')
        self.plant("launcher/bad.cpp", '#include "base/between.hpp"\nint f(Counter& c) { return c.count; }\n')
        self.expect(locks.check, "reading variable 'count' requires holding mutex 'c.mutex'")

    def test_an_access_in_a_header_that_no_source_file_includes_is_found(self):
        self.plant("base/bad.hpp", '#pragma once\n#include "base/counter.hpp"\ninline int f(Counter& c) { return c.count; }\n')
        self.expect(locks.check, "base/bad.hpp:")

    def test_other_mutexes_are_found(self):
        self.plant("tests/free.cpp", "#include <mutex>\nstd::mutex free_to_choose;\n")
        self.plant("base/good.cpp", "std::condition_variable changed;  // No std::mutex.\n")
        self.expect(locks.check)
        self.plant("timeline/bad.cpp", "#include <mutex>\nstd::recursive_mutex m;\nvoid f() { const std::scoped_lock lock(m); }\n")
        self.expect(locks.check, "timeline/bad.cpp:1: '#include <mutex>'", "bad.cpp:2: 'std::recursive_mutex'", "bad.cpp:3: 'std::scoped_lock'")


class Versions(LintTest):
    ROW = {"framework": "jax", "version": "0.6.2", "python": "3.11", "tests": 3, "day": "2026-11-26"}
    LINES = ("<!-- tested versions: written by scripts/frameworks table --write -->\n\n"
             "| framework | oldest | newest | all tested versions | Python |\n|---|---|---|---|---|\n"
             "| JAX | 0.6.2 | 0.6.2 | 0.6.2 | 3.11 |\n\n<!-- end of tested versions -->\n")

    def test_a_table_that_is_not_made_of_the_rows_is_found(self):
        self.plant("docs/tested-versions.json", json.dumps([self.ROW]))
        self.plant("README.md", "# Horo\n" + self.LINES)
        self.expect(versions.check)
        self.plant("README.md", "# Horo\n" + self.LINES.replace("| 0.6.2 |", "| 0.7.0 |", 1))
        self.expect(versions.check, "README.md: the table of tested versions is stale")
        self.plant("README.md", "# Horo\n")
        self.expect(versions.check, "README.md: the table of tested versions is stale")

    def test_a_row_that_no_test_wrote_is_found(self):
        self.plant("README.md", "# Horo\n" + self.LINES)
        self.plant("docs/tested-versions.json", json.dumps([{**self.ROW, "tests": 0}]))
        self.expect(versions.check, "no test passed")
        self.plant("docs/tested-versions.json", json.dumps([{**self.ROW, "framework": "caffe"}]))
        self.expect(versions.check, "not a row of scripts/frameworks")


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
