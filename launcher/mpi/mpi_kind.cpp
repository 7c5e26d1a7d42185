// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_kind.hpp"

#include <array>
#include <utility>

#include "discovery/program.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kVersionTimeout = std::chrono::seconds(10);

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
  HORO_TRY(auto running, discovery::RunningProgram::start({program, "--version"})
                             .context(fmt::format("'{} --version'", program)));
  const auto end = running.hear({Deadline::in(SteadyClock::instance(), kVersionTimeout), cancel});
  if (end) return recognise_mpi(program, end->output + end->errors);
  if (end.error().code == Errc::cancelled)
    return fail(Errc::cancelled, "nobody waits for '{} --version' any longer", program);
  if (end.error().code == Errc::timed_out)
    return fail(Errc::timed_out, "'{} --version' has not ended within 10 s", program);
  return fail(end.error().code, "'{} --version': {}", program, end.error().message);
}

}  // namespace horo::launcher
