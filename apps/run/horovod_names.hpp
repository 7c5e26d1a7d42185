// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace horo::apps {

/// PYTHONPATH with which `import horovod` gives Horo: the folder of the Python package that has its
/// names, before `inherited`. Empty: no such folder belongs to this build or prefix. Blocks: for
/// the file system.
std::string horovod_python_path(std::string_view inherited);

/// Whether a program that was called so is `horo run --horovod`.
bool is_horovodrun(std::string_view called);

}  // namespace horo::apps
