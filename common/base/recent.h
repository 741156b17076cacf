#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace podqos {

/// The values that were asked for last, each under its key; few enough to be looked through.
template <class Key, class Value>
class Recent {
 public:
  /// @param most  how many are kept
  explicit Recent(std::size_t most) : most_(most) {}

  /// nullptr: not among them. Valid until the next put().
  template <class Wanted>
  [[nodiscard]] const Value* find(const Wanted& wanted) {
    const auto found =
        std::ranges::find_if(kept_, [&](const auto& entry) { return entry.first == wanted; });
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return &found->second;
  }

  /// Takes the place of what was there under this key.
  void put(Key key, Value value) {
    std::erase_if(kept_, [&](const auto& entry) { return entry.first == key; });
    kept_.emplace_front(std::move(key), std::move(value));
    if (kept_.size() > most_) kept_.pop_back();
  }

 private:
  std::list<std::pair<Key, Value>> kept_;  ///< the one asked for last first
  std::size_t most_;
};

}  // namespace podqos
