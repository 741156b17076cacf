#include "common/codec/oci_state.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_place.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// podqos's bounds; the runtime-spec has none.
constexpr std::size_t kMaxIdSize = 1024;
constexpr std::size_t kMaxBundleSize = 4096;

/// Printable ASCII without space: an id appears in log lines.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

Result<OciState> read_state(const JsonPlace& root) {
  PODQOS_TRY(root.expect(Kind::kObject));
  PODQOS_ASSIGN(const auto id, root.member("id", Kind::kString));
  if (id.text().empty()) return refuse_value("id is missing or empty");
  if (id.text().size() > kMaxIdSize) return id.refuse(cat("longer than ", kMaxIdSize, " bytes"));
  if (!is_printable(id.text()))
    return id.refuse(cat("\"", printable(id.text()), "\" contains unprintable bytes"));
  PODQOS_ASSIGN(const auto pid, root.integer("pid", 0, std::numeric_limits<std::int32_t>::max()));
  PODQOS_ASSIGN(const auto bundle, root.member("bundle", Kind::kString));
  if (bundle.text().size() > kMaxBundleSize)
    return bundle.refuse(cat("longer than ", kMaxBundleSize, " bytes"));
  if (bundle.text().contains('\0')) return bundle.refuse("contains a NUL byte");
  PODQOS_ASSIGN(const auto object, root.member("annotations", Kind::kObject));
  PODQOS_ASSIGN(auto annotations, read_known_annotations(object));
  OciState state{.id = std::string{id.text()},
                 .pid = {},
                 .bundle = std::string{bundle.text()},
                 .annotations = std::move(annotations)};
  // crun writes 0 in poststop, where runc omits the member.
  if (pid.value_or(0) != 0) state.pid = Pid{*pid};
  return state;
}

}  // namespace

Result<OciState> parse_oci_state(std::string_view text) {
  const auto tree = parse_json_tree(text, {.bytes = kMaxStateSize});
  auto state = tree ? read_state(JsonPlace{*tree, "state", text}) : fail(tree.error());
  if (!state) return fail(std::move(state).error().with_context("OCI state"));
  return state;
}

}  // namespace podqos::codec
