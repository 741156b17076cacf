#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "common/base/error.h"
#include "common/core/container_facts.h"
#include "common/sys/clock.h"

namespace podqos::nri {

/// What the runtime has told of a pod or container.
struct News {
  enum class What : std::uint8_t { kStarted, kChanged };
  What what;
  core::ContainerFacts facts;
  std::uint32_t pid;
  int tries = 0;  ///< so far, after the first
};

/// News that could not be acted on because somebody held the lock of the state for too long
/// (kTimeout). In their order; few and short, so that they take no more memory than is given away
/// for that.
class LateNews {
 public:
  using Act = std::function<Status(const News&)>;

  /// @param clock  outlives the object
  explicit LateNews(const sys::Clock& clock) : clock_(clock) {}

  /// Before later news of the same pod or container are acted on: acts on what is left of it, but
  /// for news of the same kind, of which the later say all.
  /// @return kTimeout: the lock is still held. Other errors are past remedy.
  [[nodiscard]] Status act_before(const News& later, const Act& act);
  /// For a later time; what is too much or too long is dropped.
  void keep(News news);
  /// The pod or container has ended.
  void forget(const std::string& id);
  /// All containers that run are told of anew.
  void forget_starts();
  /// Acts on what is kept, as long as it does not take long, and as often as it makes sense.
  /// @return the error of one that is dropped; kNotFound is none, for then it has ended.
  [[nodiscard]] Status act(const Act& act);

 private:
  const sys::Clock& clock_;
  std::deque<News> news_;  ///< oldest first
};

/// Is it the lock?
[[nodiscard]] bool is_late(const Status& done);

}  // namespace podqos::nri
