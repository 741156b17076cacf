#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace podqos {

/// A small least-recently-used cache with linear lookup. Use RecentByName for many entries.
template <class Key, class Value>
class Recent {
 public:
  /// @param most  maximum number of entries; put() drops the least recently used one beyond it
  explicit Recent(std::size_t most) : most_(most) {}

  /// Returns the value and marks it as the most recently used; nullptr if there is none.
  /// The pointer is valid until the next put().
  template <class Wanted>
  [[nodiscard]] const Value* find(const Wanted& wanted) {
    const auto found =
        std::ranges::find_if(kept_, [&](const auto& entry) { return entry.first == wanted; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return &found->second;
  }

  /// Inserts the value or replaces the one with this key.
  void put(Key key, Value value) {
    std::erase_if(kept_, [&](const auto& entry) { return entry.first == key; });
    kept_.emplace_front(std::move(key), std::move(value));
    if (kept_.size() > most_) kept_.pop_back();
  }

 private:
  std::list<std::pair<Key, Value>> kept_;  ///< most recently used first
  std::size_t most_;
};

/// A least-recently-used cache keyed by name, with an index for constant-time lookup.
template <class Value>
class RecentByName {
 public:
  /// @param most  maximum number of entries; put() drops the least recently used one beyond it
  explicit RecentByName(std::size_t most) : most_(most) {}
  // index_ refers to the nodes of kept_: a copy would refer to the original's, a move keeps them.
  RecentByName(const RecentByName&) = delete;
  RecentByName& operator=(const RecentByName&) = delete;
  RecentByName(RecentByName&&) noexcept = default;
  RecentByName& operator=(RecentByName&&) noexcept = default;
  ~RecentByName() = default;

  /// Returns the value and marks it as the most recently used; nullptr if there is none.
  /// The pointer is valid until the next put().
  [[nodiscard]] const Value* find(std::string_view name) {
    const auto found = index_.find(name);
    if (found == index_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found->second);
    return &found->second->second;
  }

  /// Inserts the value or replaces the one with this name.
  void put(std::string name, Value value) {
    if (const auto found = index_.find(name); found != index_.end()) drop(found->second);
    kept_.emplace_front(std::move(name), std::move(value));
    index_.emplace(kept_.front().first, kept_.begin());
    if (kept_.size() > most_) drop(std::prev(kept_.end()));
  }

 private:
  using Kept = std::list<std::pair<std::string, Value>>;

  void drop(typename Kept::iterator entry) {
    index_.erase(entry->first);
    kept_.erase(entry);
  }

  Kept kept_;  ///< most recently used first
  std::unordered_map<std::string_view, typename Kept::iterator> index_;
  std::size_t most_;
};

}  // namespace podqos
