#include "nri/late_news.h"

#include <chrono>
#include <cstddef>
#include <utility>

namespace podqos::nri {

namespace {

constexpr std::size_t kMost = 256;
constexpr std::size_t kLongest = std::size_t{64} << 10U;
/// How often one is tried again.
constexpr int kTries = 30;
/// So long may they take at a time; then a request has its turn.
constexpr std::chrono::milliseconds kAtOnce{200};

std::size_t size_of(const News& news) {
  std::size_t size = 0;
  for (const auto& [key, value] : news.facts.annotations)
    size += key.size() + value.size();
  return size;
}

}  // namespace

bool is_late(const Status& done) {
  return !done && done.error().code == ErrorCode::kTimeout;
}

Status LateNews::act_before(const News& later, const Act& act) {
  for (auto news = news_.begin(); news != news_.end();) {
    if (news->facts.id != later.facts.id) {
      ++news;
      continue;
    }
    auto done = news->what == later.what ? Status{} : act(*news);
    if (is_late(done)) return done;
    news = news_.erase(news);
  }
  return {};
}

void LateNews::keep(News news) {
  if (news_.size() < kMost && size_of(news) <= kLongest) news_.push_back(std::move(news));
}

void LateNews::forget(const std::string& id) {
  std::erase_if(news_, [&](const News& news) { return news.facts.id == id; });
}

void LateNews::forget_starts() {
  std::erase_if(news_, [](const News& news) { return news.what == News::What::kStarted; });
}

Status LateNews::act(const Act& act) {
  const auto end = clock_.now() + kAtOnce;
  while (!news_.empty() && clock_.now() < end) {
    News& news = news_.front();
    auto done = act(news);
    if (is_late(done) && ++news.tries < kTries) return {};
    news_.pop_front();
    if (!done && done.error().code != ErrorCode::kNotFound) return done;
  }
  return {};
}

}  // namespace podqos::nri
