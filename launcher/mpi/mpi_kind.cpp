// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_kind.hpp"

#include <array>
#include <unistd.h>
#include <utility>

#include "base/loop/loop.hpp"
#include "launcher/process/process_group.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kVersionTimeout = std::chrono::seconds(10);
constexpr std::size_t kMostText = 65536;

/// Spectrum MPI and Intel MPI also print the name of the MPI that they derive from, so they come
/// first.
constexpr std::array kSigns{
    std::pair{std::string_view("IBM Spectrum MPI"), MpiKind::spectrum},
    std::pair{std::string_view("Intel(R) MPI"), MpiKind::intel},
    std::pair{std::string_view("Open MPI"), MpiKind::open_mpi},
    std::pair{std::string_view("OpenRTE"), MpiKind::open_mpi},
    std::pair{std::string_view("MPICH"), MpiKind::mpich},
    std::pair{std::string_view("HYDRA"), MpiKind::mpich},
};

Environment own_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace

std::string_view name(MpiKind kind) {
  switch (kind) {
    case MpiKind::open_mpi:
      return "Open MPI";
    case MpiKind::spectrum:
      return "Spectrum MPI";
    case MpiKind::mpich:
      return "MPICH";
    case MpiKind::intel:
      return "Intel MPI";
  }
  return "";
}

Result<MpiKind> recognise_mpi(std::string_view program, std::string_view version_text) {
  for (const auto& [sign, kind] : kSigns) {
    if (version_text.find(sign) != std::string_view::npos) return kind;
  }
  const auto first = version_text.substr(0, version_text.find('\n'));
  return fail(Errc::unsupported,
              "'{} --version' says '{}', which is none of Open MPI, IBM Spectrum MPI, MPICH and "
              "Intel MPI; name another with --mpirun, or leave --mpi out",
              program, first.substr(0, 200));
}

Result<MpiKind> ask_for_mpi(const std::string& program, int cancel) {
  HORO_TRY(const auto loop, Loop::make());
  HORO_TRY(const auto group, ProcessGroup::spawn(*loop, {.arguments = {program, "--version"},
                                                         .environment = own_environment(),
                                                         .directory = {},
                                                         .descriptors = {},
                                                         .descriptor_limit = {}}));
  std::string text;
  group->on_output([&text](Stream, std::string_view bytes) {
    if (text.size() < kMostText) text += bytes;
  });
  bool ended = false;
  group->on_exit([&](ExitStatus) {
    ended = true;
    loop->stop();
  });
  const auto limit = loop->after(kVersionTimeout, [&loop] { loop->stop(); });
  bool cancelled = false;
  Descriptor cancellation;
  if (cancel >= 0) {
    HORO_TRY(cancellation, loop->watch(cancel));
    cancellation.on_readable([&] {
      cancelled = true;
      loop->stop();
    });
  }
  loop->run();
  if (cancelled)
    return fail(Errc::cancelled, "nobody waits for '{} --version' any longer", program);
  if (!ended) return fail(Errc::timed_out, "'{} --version' has not ended within 10 s", program);
  return recognise_mpi(program, text);
}

}  // namespace horo::launcher
