#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "nri/connection.h"
#include "tests/unit/nri/oracle.h"
#include "tests/unit/nri/recording_handler.h"
#include "tests/unit/nri/wire.h"

/// The bytes between real runtimes' side of NRI and Go plugins, played to the session.
namespace podqos::nri {
namespace {

using test::hear;
using test::message;
using test::RecordingHandler;
using ::testing::Combine;
using ::testing::ElementsAreArray;
using ::testing::TestWithParam;
using ::testing::Values;

constexpr std::size_t kWhole = 0;
constexpr std::size_t kRandomPieces = 1 << 20;

std::string unhex(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string{text.substr(i, 2)}, nullptr, 16));
  return out;
}

/// All that one side has sent.
std::string sent_by(std::string_view side, const std::string& transcript) {
  std::ifstream file{PODQOS_TEST_DATA "/nri/" + transcript + ".jsonl"};
  std::string out;
  for (std::string line; std::getline(file, line);) {
    const auto read = nlohmann::json::parse(line);
    if (read.at("dir") == side) out += unhex(read.at("hex").get<std::string>());
  }
  EXPECT_FALSE(out.empty()) << transcript;
  return out;
}

/// @param size  of each piece; kWhole, or kRandomPieces.
void feed(Connection& session, std::string_view bytes, std::size_t size) {
  std::uint32_t seed = 7;
  while (!bytes.empty()) {
    seed = seed * 1664525U + 1013904223U;
    const std::size_t random = 1 + (seed >> 22U);
    const std::size_t piece = size == kWhole ? bytes.size() : size == kRandomPieces ? random : size;
    const Status fed = session.feed(bytes.substr(0, piece));
    ASSERT_TRUE(fed.has_value()) << fed.error().message;
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
}

/// Answers CreateContainer as the recorded plugin did, and keeps what it was asked.
class RecordedPlugin : public RecordingHandler {
 public:
  explicit RecordedPlugin(bool adjusts) : adjusts_{adjusts} {}

  std::vector<PodEvent> created;

  Result<std::string> handle(Request request, const PodEvent& event, Budget budget) override {
    if (request == Request::kCreateContainer) {
      created.push_back(event);
      create_answer->mutable_adjust();
      if (adjusts_) {
        auto& adjust = *create_answer->mutable_adjust()->mutable_linux();
        adjust.set_cgroups_path("podqos-burstable.slice:podqos:" + event.container.facts.id);
        auto& resources = *adjust.mutable_resources();
        resources.mutable_memory()->mutable_reservation()->set_value(4096);
        (*resources.mutable_unified())["memory.high"] = "100000000";
      }
    }
    return RecordingHandler::handle(request, event, budget);
  }

 private:
  bool adjusts_;
};

bool adjusts(const std::string& transcript) {
  return transcript.ends_with("-adjusting");
}

ConnectionOptions as_recorded(const std::string& transcript) {
  ConnectionOptions options;
  options.index = "10";
  options.name = adjusts(transcript) ? "ref10" : "t";
  options.newest_events = false;  // an older runtime has refused the newest
  return options;
}

/// In every version the same, whatever the events look like on the wire.
const std::vector<std::string> kLife = {
    "configure containerd v2.3.3", "synchronize 0 0",         "run-pod p1-guaranteed",
    "create p1-guaranteed/c0",     "start p1-guaranteed/c0",  "run-pod p2-burstable",
    "create p2-burstable/c0",      "start p2-burstable/c0",   "run-pod p3-besteffort",
    "create p3-besteffort/c0",     "start p3-besteffort/c0",  "update p2-burstable/c0 shares 1024",
    "stop p1-guaranteed/c0",       "remove p1-guaranteed/c0", "stop-pod p1-guaranteed",
    "remove-pod p1-guaranteed",    "stop p2-burstable/c0",    "remove p2-burstable/c0",
    "stop-pod p2-burstable",       "remove-pod p2-burstable", "stop p3-besteffort/c0",
    "remove p3-besteffort/c0",     "stop-pod p3-besteffort",  "remove-pod p3-besteffort"};
const std::vector<std::string> kLifeOfCreations = {
    "configure containerd v2.3.3", "synchronize 0 0",         "create p1-guaranteed/c0",
    "create p2-burstable/c0",      "create p3-besteffort/c0",
};

class Replay : public TestWithParam<std::tuple<std::string, std::size_t>> {
 protected:
  [[nodiscard]] static std::string transcript() { return std::get<0>(GetParam()); }

  void play() {
    session_.begin();
    feed(session_, sent_by("runtime", transcript()), std::get<1>(GetParam()));
  }

  RecordedPlugin plugin_{adjusts(transcript())};
  Connection session_{{}, as_recorded(transcript()), plugin_};
};

TEST_P(Replay, CallsForEachRequestAndAnswersAsTheRecordedPluginDid) {
  play();
  EXPECT_THAT(plugin_.heard, ElementsAreArray(adjusts(transcript()) ? kLifeOfCreations : kLife));
  // The runtime grants 2 s, and says what is left of them.
  for (const Budget& budget : plugin_.budgets) {
    ASSERT_TRUE(budget.has_value());
    EXPECT_GT(*budget, std::chrono::milliseconds{1900});
    EXPECT_LE(*budget, std::chrono::seconds{2});
  }
  const std::vector<Message> got = hear(session_.output());
  const std::vector<Message> want = hear(sent_by("plugin", transcript()));
  ASSERT_EQ(got.size(), want.size());
  api::RegisterPluginRequest ours;
  api::RegisterPluginRequest theirs;
  ASSERT_TRUE(ours.ParseFromString(parse_call(got[0].payload).value().payload));
  ASSERT_TRUE(theirs.ParseFromString(parse_call(want[0].payload).value().payload));
  EXPECT_EQ(ours.plugin_name(), theirs.plugin_name());
  EXPECT_EQ(ours.plugin_idx(), theirs.plugin_idx());
  // Which events a plugin asks for is its own affair: podqos knows more than that plugin did.
  const bool newest = transcript().starts_with("0.12");
  EXPECT_EQ(got[1].payload, newest ? "\x12\x03\x10\xaf\x1d" : "\x12\x03\x10\xaf\x0d");
  for (std::size_t i = 2; i < got.size(); ++i)
    EXPECT_EQ(got[i], want[i]) << i;
}

TEST_P(Replay, ReadsAPodAndItsContainer) {
  play();
  ASSERT_EQ(plugin_.created.size(), 3U);
  const core::ContainerFacts& pod = plugin_.created[0].pod.facts;
  EXPECT_EQ(pod.id, "pod0000000000000000000000000000000000000000000000000000000000001");
  EXPECT_EQ(pod.engine->pod_uid, "00000001-1111-2222-3333-000000000001");
  EXPECT_EQ(pod.engine->pod_namespace, "default");
  EXPECT_EQ(pod.annotations.at("podqos.io/class"), "guaranteed");
  const core::ContainerFacts& container = plugin_.created[0].container.facts;
  EXPECT_EQ(container.id, "ctr0000000000000000000000000000000000000000000000000000000000100");
  EXPECT_EQ(plugin_.created[0].container.sandbox, pod.id);
  EXPECT_EQ(container.oom_score_adj, -997);
  EXPECT_EQ(
      container.cgroups_path,
      "kubepods-pod00000001_1111_2222_3333_000000000001.slice:cri-containerd:" + container.id);
  const core::EngineResources& resources = container.resources;
  EXPECT_EQ(resources.memory_limit, 268'435'456);
  EXPECT_EQ(resources.memory_swap, std::nullopt);
  EXPECT_EQ(resources.cpu_shares, 512);
  EXPECT_EQ(resources.cpu_quota, 50'000);
  EXPECT_EQ(resources.cpu_period, 100'000);
}

const auto kTranscripts =
    Values("0.6.1", "0.8.0", "0.10.0", "0.12.2", "0.8.0-adjusting", "0.12.2-adjusting");
INSTANTIATE_TEST_SUITE_P(Transcripts, Replay,
                         Combine(kTranscripts, Values(kWhole, 1, 7, 4096, kRandomPieces)));

class Encoding : public TestWithParam<std::string> {};

TEST_P(Encoding, IsGosByteForByte) {
  for (const std::string_view side : {"plugin", "runtime"}) {
    const std::vector<Message> all = hear(sent_by(side, GetParam()));
    EXPECT_GT(all.size(), 5U);
    for (const Message& heard : all) {
      const bool is_request = heard.type == MessageType::kRequest;
      const std::string ours =
          is_request ? encode_request(heard.stream, parse_call(heard.payload).value())
                     : encode_response(heard.stream, parse_answer(heard.payload).value());
      EXPECT_EQ(ours, message(heard.stream, is_request ? 1 : 2, heard.payload));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Transcripts, Encoding, kTranscripts);

}  // namespace
}  // namespace podqos::nri
