// SPDX-License-Identifier: Apache-2.0
#include "runtime/board/directory/name_table.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/host/read_once.hpp"

namespace horo::runtime {

std::uint32_t NameTable::hash_of(std::string_view name) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<std::uint32_t>(hash >> 32U ^ hash);
}

Result<std::optional<TensorId>> NameTable::find(std::string_view name, std::uint32_t hash) const {
  auto bucket = hash & mask();
  for (std::uint32_t probes = 0; probes <= mask(); ++probes, bucket = (bucket + 1) & mask()) {
    const auto value = read_once(region_.tables().buckets[bucket]);
    if (value == 0) return std::optional<TensorId>();
    if (value > region_.params().capacity)
      return fail(Errc::protocol, "the board's name table holds id {}", value);
    const TensorId id{value - 1};
    if (region_.tensor(id).name_hash == hash && region_.tensor_name(id) == name)
      return std::optional(id);
  }
  return fail(Errc::protocol, "the board's name table is full");
}

std::optional<TensorId> NameTable::find_unlocked(std::string_view name) const {
  const auto hash = hash_of(name);
  const auto count = region_.tensor_count();
  for (std::uint32_t i = 0; i < count; ++i) {
    const TensorId id{i};
    if (region_.tensor(id).name_hash == hash && region_.tensor_name(id) == name) return id;
  }
  return std::nullopt;
}

Status NameTable::store(TensorSlot& slot, std::string_view name, std::uint32_t hash) {
  const auto units = [](std::size_t bytes) { return (bytes + kNameUnit - 1) / kNameUnit; };
  if (units(name.size()) > slot.name_room) {
    // Doubling the room bounds what names that grow again and again leave behind.
    const auto room = std::max(units(name.size()),
                               std::min<std::size_t>(2 * slot.name_room, units(kLongestName)));
    HORO_TRY(const auto place, heap_.take(HeapUse::names, room * kNameUnit));
    slot.name_place = static_cast<std::uint32_t>(place / kNameUnit);
    slot.name_room = static_cast<std::uint16_t>(room);
  }
  const auto at = read_once(slot.name_place) * kNameUnit;
  if (at > heap_.bytes() - name.size())
    return fail(Errc::protocol, "the board has the name '{}' outside its heap", name);
  std::memcpy(heap_.at(at), name.data(), name.size());
  slot.name_length = static_cast<std::uint16_t>(name.size());
  slot.name_hash = hash;
  return {};
}

void NameTable::insert(TensorId id) {
  auto* const buckets = region_.tables().buckets;
  auto bucket = region_.tensor(id).name_hash & mask();
  // Half of the buckets are free, unless another process has filled them.
  for (std::uint32_t probes = 0; buckets[bucket] != 0 && probes < mask(); ++probes)
    bucket = (bucket + 1) & mask();
  buckets[bucket] = id.value() + 1;
}

void NameTable::erase(TensorId id) {
  auto* const buckets = region_.tables().buckets;
  auto hole = region_.tensor(id).name_hash & mask();
  for (std::uint32_t probes = 0; read_once(buckets[hole]) != id.value() + 1; ++probes) {
    if (probes > mask()) return;
    hole = (hole + 1) & mask();
  }
  // Later entries that were displaced by this one move back, so that a search still finds them.
  auto at = hole;
  for (std::uint32_t probes = 0; probes < mask(); ++probes) {
    at = (at + 1) & mask();
    const auto value = read_once(buckets[at]);
    if (value == 0 || value > region_.params().capacity) break;
    const auto home = region_.tensor(TensorId{value - 1}).name_hash & mask();
    if (((at - home) & mask()) < ((at - hole) & mask())) continue;
    buckets[hole] = value;
    hole = at;
  }
  buckets[hole] = 0;
}

}  // namespace horo::runtime
