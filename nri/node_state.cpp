#include "nri/node_state.h"

#include <cstdint>
#include <utility>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "common/base/text.h"

namespace podqos::nri {

namespace {

using google::protobuf::internal::WireFormatLite;

struct Count {
  std::size_t pods = 0;
  std::size_t containers = 0;
};

/// Without making any of them: two bytes are enough for an empty pod, which takes hundreds in
/// memory.
Count count_elements(std::string_view payload) {
  Count count;
  google::protobuf::io::CodedInputStream input{
      reinterpret_cast<const std::uint8_t*>(payload.data()), static_cast<int>(payload.size())};
  for (std::uint32_t tag = input.ReadTag(); tag != 0; tag = input.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (field == api::SynchronizeRequest::kPodsFieldNumber) ++count.pods;
    if (field == api::SynchronizeRequest::kContainersFieldNumber) ++count.containers;
    // What cannot be read, the parser refuses.
    if (!WireFormatLite::SkipField(&input, tag)) break;
  }
  return count;
}

Status check_limit(std::string_view what, std::size_t number, std::size_t limit) {
  if (number <= limit) return {};
  return fail(ErrorCode::kTooLarge, cat("Synchronize: ", number, " ", what, ", at most ", limit));
}

}  // namespace

Status NodeState::check_size(std::string_view payload) const {
  if (auto ok = check_limit("parts", parts_ + 1, limits_.parts); !ok) return ok;
  if (auto ok = check_limit("bytes", bytes_ + payload.size(), limits_.bytes); !ok) return ok;
  const Count count = count_elements(payload);
  const auto pods = static_cast<std::size_t>(collected_.pods_size()) + count.pods;
  if (auto ok = check_limit("pods", pods, limits_.pods); !ok) return ok;
  const auto containers = static_cast<std::size_t>(collected_.containers_size()) + count.containers;
  return check_limit("containers", containers, limits_.containers);
}

Result<bool> NodeState::add(std::string_view payload) {
  if (auto ok = check_size(payload); !ok) {
    static_cast<void>(take());
    return fail(std::move(ok).error());
  }
  // The last part leaves the field out.
  collected_.clear_more();
  if (!collected_.MergeFromString({payload.data(), payload.size()})) {
    static_cast<void>(take());
    return fail(ErrorCode::kInvalidArgument, "not a SynchronizeRequest");
  }
  ++parts_;
  bytes_ += payload.size();
  return !collected_.more();
}

api::SynchronizeRequest NodeState::take() {
  parts_ = 0;
  bytes_ = 0;
  return std::exchange(collected_, {});
}

}  // namespace podqos::nri
