// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace horo::apps {

/// A PYTHONPATH with which `import horovod` finds Horo: the folder of the compatibility package,
/// then `inherited`. Empty: this installation has no such folder. Blocks: for the file system.
std::string horovod_python_path(std::string_view inherited);

/// Whether a program called by this name acts as `horo run --horovod`.
bool is_horovodrun(std::string_view called);

}  // namespace horo::apps
