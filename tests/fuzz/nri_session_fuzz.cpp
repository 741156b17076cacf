#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nri/connection.h"
#include "tests/fuzz/require.h"

namespace {

using podqos::Result;
using podqos::Status;
using podqos::fuzz::require;
using podqos::nri::Budget;
using podqos::nri::Channel;
using podqos::nri::Connection;
using podqos::nri::ConnectionOptions;
using podqos::nri::Handler;
using podqos::nri::MessageReader;
using podqos::nri::MessageType;
using podqos::nri::Request;

/// Answers with the texts that it was asked with, so that those come back over the wire.
class EchoingHandler : public Handler {
 public:
  int calls = 0;

  Status configure(const podqos::nri::ConfigureRequest& request) override {
    return answer(request.runtime_name);
  }
  Status synchronize(podqos::nri::NodeState state) override {
    return answer(state.containers.empty() ? "" : state.containers.front().facts.id);
  }
  Result<std::string> handle(Request request, const podqos::nri::PodEvent& event,
                             Budget budget) override {
    const podqos::core::ContainerFacts& container = event.container.facts;
    require(!budget || budget->count() > 0);
    if (auto done = answer(container.id); !done) return podqos::fail(done.error());
    if (request != Request::kCreateContainer) return std::string{};
    return podqos::nri::format_create_response(
        {.cgroups_path = container.cgroups_path,
         .values = {.hugepages = container.resources.hugepages,
                    .unified = container.resources.unified}});
  }

 private:
  /// An error with the text, if there is one.
  Status answer(const std::string& text) {
    ++calls;
    if (text.empty()) return {};
    return podqos::fail(podqos::ErrorCode::kIo, text);
  }
};

/// All that is sent can be read, and is what a plugin may say.
void check_output(std::string_view bytes) {
  MessageReader reader;
  while (true) {
    const auto message = reader.next(bytes);
    require(message.has_value());
    if (!*message) break;
    const auto& [channel, type, stream, payload, oversized] = **message;
    const bool is_call = channel == Channel::kRuntime;
    require(!oversized);
    require((type == MessageType::kRequest) == is_call);
    if (is_call) {
      require(stream == 1 && podqos::nri::parse_call(payload).has_value());
      continue;
    }
    const auto answer = podqos::nri::parse_answer(payload);
    require(answer.has_value() || answer.error().message.starts_with("refused with code "));
  }
}

/// What became of the bytes, given in pieces of one size.
struct Outcome {
  int calls = 0;
  std::string error;
  std::string output;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome play(std::string_view bytes, std::size_t piece_size) {
  EchoingHandler handler;
  ConnectionOptions options;
  options.index = "10";
  options.name = "podqos";
  options.node_state_bytes = 16384;
  Connection session{{}, options, handler};
  session.begin();
  Outcome outcome;
  while (!bytes.empty() && outcome.error.empty()) {
    const std::size_t size = std::min(piece_size, bytes.size());
    if (const Status fed = session.feed(bytes.substr(0, size)); !fed) {
      require(fed.error().code == podqos::ErrorCode::kTooLarge ||
              fed.error().code == podqos::ErrorCode::kConflict);
      outcome.error = fed.error().message;
    }
    bytes.remove_prefix(size);
  }
  outcome.calls = handler.calls;
  outcome.output = session.output();
  return outcome;
}

constexpr std::array kMethods = {
    "Configure",     "Synchronize",    "StateChange",   "CreateContainer",  "UpdateContainer",
    "StopContainer", "StartContainer", "RunPodSandbox", "UpdatePodSandbox", "Shutdown",
};

/// Calls as a runtime would send them: of each a byte for the method, one for the size of the
/// payload in units of four, and the payload.
std::string calls_from(std::string_view text) {
  std::string out;
  for (std::uint32_t stream = 1; text.size() >= 2; stream += 2) {
    const auto method = static_cast<unsigned char>(text[0]) % kMethods.size();
    const std::size_t size = std::size_t{4} * static_cast<unsigned char>(text[1]);
    const std::string_view payload = text.substr(2, size);
    text.remove_prefix(2 + payload.size());
    const std::string message =
        podqos::nri::encode_request(stream, {.service = "nri.pkg.api.v1alpha1.Plugin",
                                             .method = kMethods.at(method),
                                             .payload = std::string{payload},
                                             .budget = std::nullopt});
    podqos::nri::append_frames(out, Channel::kPlugin, message);
  }
  return out;
}

}  // namespace

/// The first byte is the size of the pieces, which must not matter; above 127 the rest is a list of
/// calls, else it is what goes over the wire.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text = podqos::fuzz::text_of(bytes + 1, size - 1);
  const std::string wire = bytes[0] > 127 ? calls_from(text) : std::string{text};
  const Outcome whole = play(wire, wire.size());
  check_output(whole.output);
  require(play(wire, std::max<std::size_t>(bytes[0], 1)) == whole);
  return 0;
}
