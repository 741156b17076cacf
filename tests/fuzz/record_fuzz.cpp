#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "common/codec/record_json.h"
#include "tests/fuzz/require.h"

namespace {

using podqos::ErrorCode;
using podqos::fuzz::require;

/// What is read must be written so that it is read again; `parse` and `format` belong together.
template <class Parse, class Format>
void check_record(std::string_view text, Parse parse, Format format) {
  const auto record = parse(text);
  if (!record) {
    require(record.error().code == ErrorCode::kCorrupt ||
            record.error().code == ErrorCode::kUnsupported);
    return;
  }
  require(nlohmann::json::accept(text) && !text.contains('\0'));
  const std::string formatted = format(*record);
  require(nlohmann::json::accept(formatted));
  const auto again = parse(formatted);
  require(again && *again == *record);
  require(format(*again) == formatted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text = podqos::fuzz::text_of(bytes, size);
  check_record(text, podqos::codec::parse_pod_record, podqos::codec::format_pod_record);
  check_record(text, podqos::codec::parse_node, podqos::codec::format_node);
  return 0;
}
