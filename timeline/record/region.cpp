// SPDX-License-Identifier: Apache-2.0
#include "timeline/record/region.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace horo::timeline {

namespace {

void put_text(std::array<char, 64>& to, std::string_view text) {
  to.fill('\0');
  text.copy(to.data(), to.size());
}

std::string text_of(const std::array<char, 64>& from) {
  return {from.data(), strnlen(from.data(), from.size())};
}

/// The part of a header that readers read at once: the fields before the rings.
constexpr std::size_t kHeaderWords = offsetof(RegionHeader, rings);

}  // namespace

void RankIdentity::set_host(std::string_view text) {
  put_text(host, text);
}

void RankIdentity::set_job(std::string_view text) {
  put_text(job, text);
}

std::string RankIdentity::host_text() const {
  return text_of(host);
}

std::string RankIdentity::job_text() const {
  return text_of(job);
}

std::size_t region_bytes(std::uint32_t ring_records, std::uint32_t name_slots) {
  return ring_offset(ring_records, name_slots, kRings);
}

std::size_t name_offset(std::uint32_t slot) {
  return kRegionHeaderBytes + std::size_t{slot} * sizeof(NameSlot);
}

std::size_t ring_offset(std::uint32_t ring_records, std::uint32_t name_slots, std::size_t ring) {
  return name_offset(name_slots) + ring * ring_records * kRingBytesPerRecord;
}

std::size_t words_offset(std::uint32_t ring_records, std::uint32_t name_slots, std::size_t ring) {
  return ring_offset(ring_records, name_slots, ring) + ring_records * sizeof(Record);
}

std::uint32_t name_slot_of(std::uint16_t set, std::uint32_t id, std::uint32_t slots) {
  constexpr std::uint32_t kPrime = 7919;  // Sets of few tensors each seldom meet.
  return (id + std::uint32_t{set} * kPrime) % slots;
}

Result<UniqueFd> make_regions(int ranks) {
  const auto bytes = static_cast<off_t>(kRegionStride) * ranks;
  // Beyond this limit ftruncate() kills the process with SIGXFSZ.
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(bytes)) {
    return fail(Errc::unavailable,
                "files may have {} bytes here, {} are needed; raise ulimit -f to {}",
                limit.rlim_cur, bytes, (bytes + 1023) / 1024);
  }
  UniqueFd fd(memfd_create("horo-timeline", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fail_errno(errno, "making memory for the timeline");
  if (ftruncate(fd.value(), bytes) != 0) return fail_errno(errno, "making room for the timeline");
  if (fcntl(fd.value(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return fail_errno(errno, "sealing the timeline's memory");
  return fd;
}

int count_regions(int fd) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(fd, F_GET_SEALS);

  struct stat status {};

  if (seals < 0 || (seals & kSeals) != kSeals || fstat(fd, &status) != 0) return 0;
  return static_cast<int>(
      std::min<off_t>(status.st_size / static_cast<off_t>(kRegionStride), kMostRegions));
}

bool is_memory(int fd, int index) {
  const int count = count_regions(fd);
  return count > 0 && index < count;
}

void ask_for_device_times(int fd, int index, bool wanted) {
  const std::uint32_t value = wanted ? 1 : 0;
  const auto at = static_cast<off_t>(kRegionStride) * index +
                  static_cast<off_t>(offsetof(RegionHeader, device_times));
  static_cast<void>(!pwrite(fd, &value, sizeof value, at));
}

Result<RegionReader> RegionReader::open(int fd, int index) {
  const auto base = static_cast<std::uint64_t>(index) * kRegionStride;
  RegionReader reader(fd, base, {});
  alignas(RegionHeader) std::array<std::byte, kHeaderWords> bytes{};
  // The magic by itself and first: it is written last, and the bytes of one read have no order.
  std::uint64_t magic = 0;
  if (!reader.read_at(&magic, sizeof magic, offsetof(RegionHeader, magic)) ||
      !reader.read_at(bytes.data(), bytes.size(), 0))
    return fail(Errc::io, "the timeline's memory of local rank {} cannot be read", index);
  const auto take = [&bytes](auto& to, std::size_t offset) {
    std::memcpy(&to, bytes.data() + offset, sizeof to);
  };
  std::uint32_t version = 0;
  take(version, offsetof(RegionHeader, version));
  if (magic != kRegionMagic)
    return fail(Errc::not_found, "local rank {} has recorded nothing", index);
  if (version != kRegionVersion) {
    return fail(Errc::version_mismatch, "local rank {} records in version {}, this is version {}",
                index, version, kRegionVersion);
  }
  auto& about = reader.about_;
  take(about.ring_records, offsetof(RegionHeader, ring_records));
  take(about.name_slots, offsetof(RegionHeader, name_slots));
  std::uint32_t keep_ms = 0;
  take(keep_ms, offsetof(RegionHeader, keep_ms));
  about.keep = std::chrono::milliseconds(keep_ms);
  take(about.identity, offsetof(RegionHeader, identity));
  take(about.anchor, offsetof(RegionHeader, anchor));
  take(about.dropped, offsetof(RegionHeader, dropped));
  if (!std::has_single_bit(about.ring_records) || about.ring_records > kMostRingRecords ||
      about.name_slots == 0 || about.name_slots > kMostNameSlots ||
      region_bytes(about.ring_records, about.name_slots) > kRegionStride) {
    return fail(Errc::protocol, "the timeline's memory of local rank {} is damaged", index);
  }
  return reader;
}

void RegionReader::read_identity() {
  RankIdentity identity;
  if (read_at(&identity, sizeof identity, offsetof(RegionHeader, identity)))
    about_.identity = identity;
}

/// Bytes are read in the order of the calls: processors other than x86 may reorder what the kernel
/// copies.
bool RegionReader::read_at(void* to, std::size_t bytes, std::uint64_t offset) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  auto* at = static_cast<std::byte*>(to);
  while (bytes != 0) {
    const auto got = pread(fd_, at, bytes, static_cast<off_t>(base_ + offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

template <typename T>
Result<std::uint64_t> RegionReader::read_new(std::size_t head_at, std::size_t begins_at,
                                             std::uint64_t capacity, std::uint64_t& seen,
                                             std::vector<T>& to) const {
  const auto unreadable = [] { return fail(Errc::io, "the timeline's memory cannot be read"); };
  std::uint64_t head = 0;
  if (!read_at(&head, sizeof head, head_at)) return unreadable();
  // A counter that went backwards was not written by a recorder: continue from its present value.
  const auto before = std::min(std::exchange(seen, head), head);
  if (before == head) return 0;
  const auto first = std::max(before, head - std::min(head, capacity));
  const auto begin = to.size();
  to.resize(begin + (head - first));
  for (auto at = first; at < head;) {
    const auto place = at % capacity;
    const auto count = std::min(head - at, capacity - place);
    if (!read_at(to.data() + begin + (at - first), count * sizeof(T),
                 begins_at + place * sizeof(T))) {
      return unreadable();
    }
    at += count;
  }
  // The writer may have overwritten items meanwhile, and may be writing one more right now.
  std::uint64_t after = 0;
  if (!read_at(&after, sizeof after, head_at)) return unreadable();
  const auto oldest = after + 1 > capacity ? after + 1 - capacity : 0;
  const auto spoilt = std::min(std::max(oldest, first), head) - first;
  const auto from = to.begin() + static_cast<std::ptrdiff_t>(begin);
  to.erase(from, from + static_cast<std::ptrdiff_t>(spoilt));
  return first - before + spoilt;
}

Result<std::uint64_t> RegionReader::drain_ring(std::size_t ring, std::vector<Record>& to) {
  const auto head_at = offsetof(RegionHeader, rings) + ring * sizeof(RingHead);
  const auto note_lost = [this, &to](std::uint64_t lost, std::size_t begin) {
    if (lost != 0 && to.size() > begin) complete_from_ = std::max(complete_from_, to[begin].ticks);
  };
  auto begin = to.size();
  std::vector<std::uint64_t> words;
  HORO_TRY(auto lost_words,
           read_new(head_at + offsetof(RingHead, submitted),
                    words_offset(about_.ring_records, about_.name_slots, ring),
                    about_.ring_records * kWordsPerRecord, words_read_.at(ring), words));
  if (lost_words != 0) submissions_.at(ring).lose();
  lost_words += submissions_.at(ring).read(words, to);
  note_lost(lost_words, begin);
  begin = to.size();
  std::vector<Record> records;
  HORO_TRY(const auto lost, read_new(head_at + offsetof(RingHead, head),
                                     ring_offset(about_.ring_records, about_.name_slots, ring),
                                     about_.ring_records, read_.at(ring), records));
  for (const auto& record : records) unpack(record, to);
  note_lost(lost, begin);
  return lost_words + lost;
}

Result<std::uint64_t> RegionReader::drain(std::vector<Record>& to) {
  // One read tells which rings have news: mostly few of the rings of many ranks have any.
  alignas(RingHead) std::array<std::byte, sizeof(RegionHeader::rings)> heads{};
  if (!read_at(heads.data(), heads.size(), offsetof(RegionHeader, rings)))
    return fail(Errc::io, "the timeline's memory cannot be read");
  const auto value = [&heads](std::size_t ring, std::size_t field) {
    std::uint64_t number = 0;
    std::memcpy(&number, heads.data() + ring * sizeof(RingHead) + field, sizeof number);
    return number;
  };
  std::uint64_t lost = 0;
  for (std::size_t ring = 0; ring < kRings; ++ring) {
    if (value(ring, offsetof(RingHead, head)) == read_.at(ring) &&
        value(ring, offsetof(RingHead, submitted)) == words_read_.at(ring))
      continue;
    HORO_TRY(const auto overwritten, drain_ring(ring, to));
    lost += overwritten;
  }
  return lost;
}

std::optional<NameSlot> RegionReader::name_of(std::uint16_t set, std::uint32_t id) const {
  NameSlot slot;
  const auto at = name_offset(name_slot_of(set, id, about_.name_slots));
  const auto read_sequence = [this, at](std::uint32_t& to) {
    return read_at(&to, sizeof to, at + offsetof(NameSlot, sequence));
  };
  // If the row was being written each time, the next call finds it complete. The bytes of one read
  // have no order, so the sequence is read by itself before and after the row.
  for (int i = 0; i < 3; ++i) {
    std::uint32_t before = 0;
    std::uint32_t after = 0;
    if (!read_sequence(before) || !read_at(&slot, sizeof slot, at) || !read_sequence(after))
      return std::nullopt;
    if (before != after || before % 2 != 0) continue;
    if (before == 0 || slot.set != set || slot.id != id) return std::nullopt;
    return slot;
  }
  return std::nullopt;
}

std::vector<NameSlot> RegionReader::names() const {
  std::vector<NameSlot> before(about_.name_slots);
  std::vector<NameSlot> found(about_.name_slots);
  std::vector<NameSlot> after(about_.name_slots);
  const auto bytes = found.size() * sizeof(NameSlot);
  // As in name_of(): the sequences that count are those of the reads before and after.
  for (auto* const table : {&before, &found, &after}) {
    if (!read_at(table->data(), bytes, name_offset(0))) return {};
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto sequence = before[i].sequence;
    if (sequence == 0 || sequence % 2 != 0 || sequence != after[i].sequence) continue;
    if (kept != i) found[kept] = found[i];
    ++kept;
  }
  found.resize(kept);
  return found;
}

std::uint64_t RegionReader::dropped() const {
  std::uint64_t dropped = 0;
  return read_at(&dropped, sizeof dropped, offsetof(RegionHeader, dropped)) ? dropped : 0;
}

}  // namespace horo::timeline
