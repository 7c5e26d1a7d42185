// SPDX-License-Identifier: Apache-2.0
#include "apps/docs/header_page.hpp"

#include <catch2/catch.hpp>

using Catch::Matchers::Contains;
using horo::apps::c_page;
using horo::apps::cpp_page;

namespace {

std::string c_error(const std::string& declarations) {
  const auto page =
      c_page({.name = "x.h", .text = "#define HORO_ABI_VERSION 1\n\n" + declarations});
  return page ? "" : page.error().message;
}

std::string cpp_error(const std::string& declarations) {
  const auto text =
      "/// What it is.\n#pragma once\n\nnamespace horo {\n\n" + declarations + "\n}\n";
  const auto page = cpp_page({{.name = "x.hpp", .text = text}});
  return page ? "" : page.error().message;
}

constexpr const char* kHeaderOfC = R"(/* SPDX-License-Identifier: Apache-2.0 */
/* x.h: a header.
 *
 *   x_go();
 */
#define HORO_ABI_VERSION 1

/* -- Going -------------------
 *
 * One section. */

/* Goes. Thread: any. Blocks:
 * until it is there. Fails: IO,
 * NOT_FOUND. */
HORO_API horo_status x_go(void);
HORO_API horo_status x_come(const char* name);

#ifdef __cplusplus
}
)";

constexpr const char* kPageOfC = R"(
# x.h

x.h: a header.

```
x_go();
```

### `HORO_ABI_VERSION`

```c
#define HORO_ABI_VERSION 1
```

## Going

One section.

### `x_go`, `x_come`

```c
horo_status x_go(void);
horo_status x_come(const char* name);
```

Goes.

- **Thread:** any.
- **Blocks:** until it is there.
- **Fails:** IO, NOT_FOUND.
)";

constexpr const char* kHeaderOfCpp = R"(/// Ways.
#pragma once

namespace horo {

class Job;

/// A way. Thread: any.
class Way : public Base {
 public:
  Way() = default;

  /// Of so many steps. Units: metres. Fails: IO.
  explicit Way(int steps, const Where& where = {}) : steps_(steps), where_{where} {
    if (steps < 0) {
      throw 1;
    }
  }

  Way(Way&& other) noexcept : steps_(other.steps_) {}

  ~Way() { end(); }

  /// Length.
  int steps() const noexcept { return steps_; }

 private:
  void end();

  int steps_ = 0;
};

/// Two numbers.
struct Pair {
  int first;
  int second;
};

}  // namespace horo
)";

constexpr const char* kPageOfCpp = R"(
## x.hpp

Ways.

### Way

```cpp
class Way : public Base;
```

A way.

- **Thread:** any.

#### Way::Way

```cpp
explicit Way(int steps, const Where& where = {});
```

Of so many steps.

- **Units:** metres.
- **Fails:** IO.

#### Way::steps

```cpp
int steps() const noexcept;
```

Length.

### Pair

```cpp
struct Pair {
  int first;
  int second;
};
```

Two numbers.
)";

}  // namespace

TEST_CASE("a page of C has sections, declarations and labels as a list") {
  const auto page = c_page({.name = "x.h", .text = kHeaderOfC});
  REQUIRE(page);
  CHECK(*page == kPageOfC);
}

TEST_CASE("the error names a C function whose comment lacks a label") {
  const std::string function = "HORO_API int x_go(void);\n";
  CHECK_THAT(c_error(function), Contains("`x_go`") && Contains("Thread:"));
  CHECK_THAT(c_error("/* Goes. Thread: any. Fails: never. */\n" + function), Contains("Blocks:"));
  CHECK_THAT(c_error("/* Goes. Thread: any. Blocks: no. */\n" + function), Contains("Fails:"));
  CHECK(c_error("/* Goes. Thread: any. Blocks: no. Fails: never. */\n" + function).empty());
}

TEST_CASE("a page of C++ has the public functions without their bodies") {
  const auto page = cpp_page({{.name = "x.hpp", .text = kHeaderOfCpp}});
  REQUIRE(page);
  CHECK(*page == kPageOfCpp);
}

TEST_CASE("the error names a public C++ function without a comment or without Fails:") {
  CHECK_THAT(cpp_error("inline void go();"), Contains("go has no comment"));
  CHECK_THAT(cpp_error("/// Goes.\ninline void go();"), Contains("go lacks 'Fails:'"));
  CHECK(cpp_error("/// Goes. Fails: IO.\ninline void go();").empty());
  CHECK(cpp_error("/// Goes.\ninline void go() noexcept;").empty());
  CHECK_THAT(cpp_error("/// One.\nclass A {\n public:\n  void go() {\n  }\n};"),
             Contains("A::go has no comment"));
  CHECK(cpp_error("/// One.\nclass A {\n  void go() {\n  }\n};").empty());
  CHECK_THAT(cpp_error("struct Bare {\n  int x;\n};"), Contains("Bare has no comment"));
}
