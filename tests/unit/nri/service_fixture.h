#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <pthread.h>

#include "common/app/log.h"
#include "nri/notify.h"
#include "nri/plugin_process.h"
#include "nri/service.h"
#include "nri/sockets.h"
#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/runtime_peer.h"
#include "tests/unit/nri/service_clock.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::nri::test {

/// The events that the plugin asks a runtime for, and one that has ended the connection at these.
inline constexpr std::int32_t kAllEvents = 0x0eaf;
inline constexpr std::int32_t kOldestEvents = 0x06af;

/// A service in a thread of its own. What it has done may be looked at once it has ended.
class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    options_.session.index = "10";
    options_.session.name = "podqos";
    options_.socket = temporary_.path("nri.sock");
    options_.times = {.first_retry = std::chrono::milliseconds{10},
                      .longest_retry = std::chrono::milliseconds{40},
                      .absent = std::chrono::milliseconds{40},
                      .configure = kLong,
                      .synchronize = kLong,
                      .standby = std::chrono::milliseconds{50}};
  }
  ~ServiceTest() override {
    if (thread_.joinable()) static_cast<void>(stop());
  }

  void start() {
    std::promise<void> started;
    auto ready = started.get_future();
    thread_ = std::thread{[this, &started] {
      core::Settings settings;
      settings.log_sink = temporary_.path("log");
      settings.log_level = core::LogLevel::kDebug;
      app::Log log{"podqos-nri", settings};
      // Signals that are sent to this thread are taken by this thread only.
      const auto signals = open_signals();
      HttpServer http{listener_.get(), kLong};
      Service service{
          options_,
          {.handler = handler_,
           .signals = signals->get(),
           .notify = notify_,
           .log = log,
           .reload = [this] { ++reloads_; },
           .hold = [this]() -> Status {
             if (++attempts_to_hold_ < held_at_) return fail(hold_refusal_, "another plugin");
             return {};
           },
           .record = [this](std::string_view status) { recorded_.emplace_back(status); },
           .housekeep = [this] { return ++housekeepings_ < wanted_housekeepings_; },
           .http = http,
           .page =
               [](std::string_view path, const ConnectionStatus& status) {
                 return HttpAnswer{.body = std::string{path} + ": " + status.obstacle};
               },
           .clock = clock_}};
      started.set_value();
      result_ = service.run();
      status_ = service.status();
      clock_.end();
    }};
    ready.get();
  }
  /// Starts it at a runtime that listens already: runtime_.
  void start_at_runtime() {
    runtime_.emplace(options_.socket);
    start();
  }
  /// Waits for it to connect: connection_.
  void accept() { connection_ = runtime_->accept(); }
  /// The same, and closes the connection.
  void turn_away() { static_cast<void>(runtime_->accept()); }
  /// Waits for it, and accepts its registration.
  void accept_registration() {
    accept();
    ASSERT_TRUE(connection_->accepts_registration());
  }
  /// The same, and synchronizes it.
  void welcome() {
    accept();
    ASSERT_TRUE(connection_->welcomes());
  }
  /// Starts it at a runtime that has accepted its registration.
  void start_registered() {
    start_at_runtime();
    accept_registration();
  }
  /// The same at one that has configured it.
  void start_configured() {
    start_registered();
    EXPECT_EQ(connection_->configure(), kAllEvents);
  }
  /// The same at one that has synchronized it.
  void start_synchronized() {
    start_at_runtime();
    welcome();
  }
  /// The runtime closes the connection, and the plugin connects again after a while.
  void close_and_pass(std::chrono::milliseconds time) {
    connection_->close();
    clock_.pass(time);
  }
  /// Waits until the plugin has closed the connection, and for its next attempt; it ends then.
  void expect_left(std::string_view reason) {
    EXPECT_TRUE(connection_->ends());
    clock_.pass(std::chrono::milliseconds{10});
    turn_away();
    EXPECT_TRUE(stop());
    EXPECT_EQ(logged(reason), 1) << reason;
  }
  void send(int signal) { EXPECT_EQ(::pthread_kill(thread_.native_handle(), signal), 0); }
  [[nodiscard]] Status join() {
    thread_.join();
    return result_;
  }
  [[nodiscard]] Status stop() {
    send(SIGTERM);
    return join();
  }
  /// The log's lines with `text` in them.
  [[nodiscard]] int logged(std::string_view text) const {
    const std::string log = temporary_.read("log");
    int lines = 0;
    for (std::size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at)
      ++lines;
    return lines;
  }

  /// Longer than what the tests let pass.
  static constexpr std::chrono::hours kLong{1};

  TemporaryDirectory temporary_;
  ServiceClock clock_;
  ServiceOptions options_;
  RecordingHandler handler_;
  Notify notify_;
  sys::UniqueFd listener_;  ///< for whoever asks for pages
  std::optional<RuntimePeer> runtime_;
  std::optional<PeerConnection> connection_;
  int reloads_ = 0;
  std::vector<std::string> recorded_;  ///< to be read when it has stopped
  int attempts_to_hold_ = 0;
  ErrorCode hold_refusal_ = ErrorCode::kTimeout;  ///< kTimeout: another plugin has the lock
  int held_at_ = 1;  ///< the attempt to be the only plugin that succeeds
  int housekeepings_ = 0;
  int wanted_housekeepings_ = 0;  ///< so many at once, with requests between them
  Status result_;
  ConnectionStatus status_;

 private:
  std::thread thread_;
};

}  // namespace podqos::nri::test
