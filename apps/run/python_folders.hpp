// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace horo::apps {

/// Folders of the Python package that go first in the ranks' PYTHONPATH.
inline constexpr std::string_view kHorovodNames = "names";  ///< `import horovod` finds Horo.
/// torch.distributed's backend horo takes the place of gloo.
inline constexpr std::string_view kTorchBackendFolder = "torch_backend";

/// A PYTHONPATH of the folder, then `inherited`. This is `inherited` where the installation has no
/// such folder. Blocks: for the file system.
std::string python_path_with(std::string_view folder, std::string_view inherited);

/// Whether a program called by this name acts as `horo run --horovod`.
bool is_horovodrun(std::string_view called);

}  // namespace horo::apps
