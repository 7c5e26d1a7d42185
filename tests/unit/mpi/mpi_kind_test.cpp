// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_kind.hpp"

#include <cstdlib>
#include <fstream>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/unique_fd.hpp"

using namespace horo;
using namespace horo::launcher;

TEST_CASE("an mpirun is recognised by its version text") {
  CHECK(recognise_mpi("mpirun", "mpirun (Open MPI) 4.1.4\n\nReport bugs to ...").value() ==
        MpiKind::open_mpi);
  CHECK(recognise_mpi("mpirun", "mpirun.openmpi (OpenRTE) 4.1.4").value() == MpiKind::open_mpi);
  CHECK(recognise_mpi("mpirun", "HYDRA build details:\n    Version: 4.0.2").value() ==
        MpiKind::mpich);
}

TEST_CASE("an MPI that derives from another is not taken for that one") {
  CHECK(recognise_mpi("mpirun", "mpirun (IBM Spectrum MPI) 10.4.0 (Open MPI 3.0)").value() ==
        MpiKind::spectrum);
  CHECK(recognise_mpi("mpirun", "Intel(R) MPI Library for Linux* OS, Version 2021.9 (HYDRA)")
            .value() == MpiKind::intel);
}

TEST_CASE("an unknown mpirun is refused, quoting its text and naming the known MPIs") {
  const auto error = recognise_mpi("/opt/x/mpirun", "Frobnicator 3\nsecond line").error();
  CHECK(error.code == Errc::unsupported);
  for (const auto* part : {"/opt/x/mpirun", "Frobnicator 3", "Open MPI", "MPICH", "--mpirun"})
    CHECK(error.message.find(part) != std::string::npos);
  CHECK(error.message.find("second line") == std::string::npos);
}

TEST_CASE("the question to mpirun ends when nobody waits for the answer any longer") {
  std::string path = "/tmp/horo-test-XXXXXX";
  REQUIRE(UniqueFd(mkstemp(path.data())));
  std::ofstream(path) << "#!/bin/sh\nkill -STOP $$\n";
  REQUIRE(chmod(path.c_str(), 0700) == 0);
  const UniqueFd cancel(eventfd(1, EFD_CLOEXEC));
  const auto kind = ask_for_mpi(path, cancel.value());
  unlink(path.c_str());
  REQUIRE(!kind);
  CHECK(kind.error().code == Errc::cancelled);
}
