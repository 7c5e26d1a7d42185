// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "discovery/sources/hostfile.hpp"
#include "discovery/sources/local.hpp"
#include "discovery/sources/static.hpp"

using namespace horo;
using namespace horo::discovery;

namespace {

Result<HostSet> list(const std::string& text) {
  auto listing = StaticSource(text).list(Deadline::never());
  if (!listing) return Failure(listing.error());
  return listing->hosts;
}

}  // namespace

TEST_CASE("the host list of the command line keeps the order and ignores blanks around entries") {
  CHECK(list(" b:2 , a:1,c").value().hosts() == std::vector<Host>{{"b", 2}, {"a", 1}, {"c", 1}});
  CHECK(list("a:2,a:2").value().hosts() == std::vector<Host>{{"a", 4}});
}

TEST_CASE("an empty host list or entry is refused") {
  const auto* text = GENERATE("", "  ", "a:2,", ",a:2", "a:1,,b:1", ",");
  INFO(text);
  REQUIRE(!list(text));
  CHECK(list(text).error().code == Errc::invalid_argument);
  CHECK_THAT(list(text).error().message, Catch::Contains("empty"));
}

TEST_CASE("a host file has one host per line, with comments and both spellings of slots") {
  const auto hosts =
      parse_hostfile("# cluster\n\na slots=4\nb:2  # two\n  c\r\n[::1] slots=3\n[::2]:5");
  REQUIRE(hosts);
  CHECK(hosts->hosts() == std::vector<Host>{{"a", 4}, {"b", 2}, {"c", 1}, {"::1", 3}, {"::2", 5}});
}

TEST_CASE("host files of Open MPI, MPICH and Windows are read") {
  // The samples in the manuals of mpirun and Hydra.
  CHECK(parse_hostfile("aa slots=2\nbb slots=2 max_slots=20\ncc max-slots=3\n").value().hosts() ==
        std::vector<Host>{{"aa", 2}, {"bb", 2}, {"cc", 3}});
  CHECK(parse_hostfile("donner:2\nfoo:4\nshakti:1\n").value().slots() == 7);
  CHECK(parse_hostfile("\xef\xbb\xbfnode1 slots=4\r\n\r\n# end\r\nnode2:2\r\n").value().hosts() ==
        std::vector<Host>{{"node1", 4}, {"node2", 2}});
  CHECK(parse_hostfile("node[1-2] slots=4\nnode3", 8).value().hosts() ==
        std::vector<Host>{{"node1", 4}, {"node2", 4}, {"node3", 8}});
}

TEST_CASE("an error in a host file names the line") {
  const auto [text, part] = GENERATE(table<std::string, std::string>({
      {"a:1\n\nb:x\n", "line 3: slots in 'b:x'"},
      {"a slots=x", "line 1: slots in 'a slots=x'"},
      {"a max=4", "line 1: 'max=4' after host 'a'"},
      {"a slots=4 b", "line 1: 'b' after host 'a'"},
      {"a:2 slots=4", "line 1: host 'a:2' gives its slots twice"},
      {"a slots=4 slots=4", "line 1: 'slots=4' after host 'a'"},
      {"a slots=4 max_slots=3", "line 1: host 'a' has 4 slots, more than its max_slots=3"},
      {"a[1-999999999] slots=4", "line 1: host 'a[1-999999999]' stands for more than 100000 hosts"},
      {"# nothing\n", "it names no host"},
      {"", "it names no host"},
  }));
  INFO(text);
  const auto hosts = parse_hostfile(text);
  REQUIRE(!hosts);
  CHECK_THAT(hosts.error().message, Catch::Contains(part));
}

TEST_CASE("a host file with too many hosts is refused at the line where there are too many") {
  std::string text;
  for (std::size_t i = 0; i <= kMaxHosts + 5; ++i) text += fmt::format("h{}\n", i);
  const auto hosts = parse_hostfile(text);
  REQUIRE(!hosts);
  CHECK(hosts.error().message ==
        "line 100001: with 'h100000' there would be more than 100000 hosts");
}

TEST_CASE("the error for an unreadable host file has its name and the reason") {
  const auto hosts = HostfileSource("/nonexistent/hosts").list(Deadline::never());
  REQUIRE(!hosts);
  CHECK(hosts.error().code == Errc::not_found);
  CHECK_THAT(hosts.error().message, Catch::Contains("hostfile '/nonexistent/hosts'"));
  CHECK(!HostfileSource("/").list(Deadline::never()));
}

TEST_CASE("a host file is read from the disk") {
  std::string path = "/tmp/horo_hostfile_XXXXXX";
  const int fd = mkstemp(path.data());
  REQUIRE(fd >= 0);
  const std::string_view text = "a:2\nb slots=3\n";
  REQUIRE(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  close(fd);
  const auto hosts = HostfileSource(path).list(Deadline::never());
  std::remove(path.c_str());
  REQUIRE(hosts);
  CHECK(hosts->hosts.slots() == 5);
}

TEST_CASE("without hosts the job runs on this machine, with the requested slots") {
  CHECK(LocalSource(3).list(Deadline::never()).value().hosts.hosts() ==
        std::vector<Host>{{"localhost", 3}});
}
