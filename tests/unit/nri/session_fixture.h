#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/connection.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/wire.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri::test {

inline ConnectionOptions podqos_plugin() {
  ConnectionOptions options;
  options.index = "10";
  options.name = "podqos";
  return options;
}

/// Limits that a few pods reach.
inline ConnectionOptions small_limits() {
  ConnectionOptions options = podqos_plugin();
  options.node_state_bytes = 10'000;
  return options;
}

/// A piece of a Synchronize.
inline std::string part(int pods, int containers, bool more) {
  api::SynchronizeRequest request;
  for (int i = 0; i < pods; ++i)
    request.add_pods()->set_id("p" + std::to_string(i));
  for (int i = 0; i < containers; ++i)
    request.add_containers()->set_id("c" + std::to_string(i));
  request.set_more(more);
  return request.SerializeAsString();
}

class SessionTest : public ::testing::Test {
 protected:
  explicit SessionTest(const ConnectionOptions& options = podqos_plugin())
      : session_{{}, options, handler_} {}

  /// What the session sends for these bytes, as the runtime takes it.
  std::vector<Message> answers(std::string_view bytes) {
    const Status fed = session_.feed(bytes);
    EXPECT_TRUE(fed.has_value()) << fed.error().message;
    const std::string out{session_.output()};
    session_.sent(out.size());
    return hear(out);
  }

  /// The text of the one answer, which is an error, to the call with stream 1 or 3.
  std::string refusal(std::string_view bytes) {
    const auto heard = answers(bytes);
    EXPECT_THAT(heard, ::testing::SizeIs(1));
    if (heard.empty()) return "";
    EXPECT_LE(heard[0].stream, 3U);
    const auto answer = parse_answer(heard[0].payload);
    return answer ? "none" : answer.error().message;
  }

  /// The one answer to a call: its payload, or the error's text.
  Result<std::string> answer(const std::string& method, const std::string& payload) {
    const auto heard = answers(call(stream_, method, payload, std::chrono::seconds{2}));
    EXPECT_THAT(heard, ::testing::SizeIs(1));
    if (heard.empty()) return fail(ErrorCode::kIo, "none");
    EXPECT_EQ(heard[0].channel, Channel::kPlugin);
    EXPECT_EQ(heard[0].type, MessageType::kResponse);
    EXPECT_EQ(heard[0].stream, stream_);
    stream_ += 2;
    return parse_answer(heard[0].payload);
  }

  RecordingHandler handler_;
  Connection session_;
  std::uint32_t stream_ = 1;
};

/// A plugin for which a Synchronize takes its time.
class SlowHandler : public RecordingHandler {
 public:
  SlowHandler(LeapingClock& clock, std::chrono::nanoseconds time) : clock_(clock), time_(time) {}
  Status synchronize(NodeState node) override {
    clock_.pass(time_);
    return RecordingHandler::synchronize(std::move(node));
  }

 private:
  LeapingClock& clock_;
  std::chrono::nanoseconds time_;
};

}  // namespace podqos::nri::test
