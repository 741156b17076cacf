#include "common/codec/oci_state.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_events.h"

namespace podqos::codec {

namespace {

/// podqos's bounds; the runtime-spec has none.
constexpr std::size_t kMaxIdSize = 1024;
constexpr std::size_t kMaxBundleSize = 4096;

/// The members that podqos reads, in the order of kFieldNames.
enum class StateField : std::uint8_t { kId, kPid, kBundle, kAnnotations, kOther };
constexpr std::array<std::string_view, 4> kFieldNames{"id", "pid", "bundle", "annotations"};

/// Printable ASCII without space: an id appears in log lines.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

/// Reads the members of the state and its annotations; anything nested deeper is ignored.
class StateReader {
 public:
  explicit StateReader(const JsonCursor& cursor) : cursor_(cursor) {}

  Status scalar(JsonScalar& value);
  Status begin(JsonKind kind);
  Status end() {
    --depth_;
    return {};
  }
  Status key(std::string& name);

  Result<OciState> release() &&;

 private:
  /// Whether the current object is `annotations`.
  [[nodiscard]] bool in_annotations() const {
    return depth_ == 2 && field_ == StateField::kAnnotations;
  }
  Status set_text(std::string text);
  Status set_pid(std::int64_t value);
  Status set_annotation(JsonScalar& value);
  [[nodiscard]] std::unexpected<Error> refuse(std::string_view name, std::string_view problem,
                                              ErrorCode code = ErrorCode::kInvalidArgument) const {
    return fail(code, cat(printable(name), " at offset ", cursor_.offset(), ": ", problem));
  }
  [[nodiscard]] std::string_view field_name() const {
    return kFieldNames.at(static_cast<std::size_t>(field_));
  }

  const JsonCursor& cursor_;
  OciState state_;
  std::size_t depth_ = 0;
  StateField field_ = StateField::kOther;
  std::bitset<kFieldNames.size()> seen_;
  // Key of the annotation whose value comes next; "" if it is ignored.
  std::string annotation_;
};

Status StateReader::key(std::string& name) {
  if (in_annotations()) {
    annotation_.clear();
    if (!is_known_annotation(name)) return {};
    if (state_.annotations.contains(name)) return refuse(name, "annotation is repeated");
    annotation_ = std::move(name);
    return {};
  }
  if (depth_ != 1) return {};
  const auto index =
      static_cast<std::size_t>(std::ranges::find(kFieldNames, name) - kFieldNames.begin());
  field_ = static_cast<StateField>(index);
  if (field_ == StateField::kOther) return {};
  if (seen_.test(index)) return refuse(name, "member is repeated");
  seen_.set(index);
  return {};
}

Status StateReader::begin(JsonKind kind) {
  if (depth_ == 0 && kind != JsonKind::kObject) return refuse("state", "expected an object");
  // Of the known members only `annotations` is an object.
  const bool own = depth_ == 1 && field_ != StateField::kOther;
  const bool fits = field_ == StateField::kAnnotations && kind == JsonKind::kObject;
  if (own && !fits) return refuse(field_name(), cat("found ", format_json_kind(kind)));
  if (in_annotations() && !annotation_.empty()) return refuse(annotation_, "expected a string");
  ++depth_;
  return {};
}

Status StateReader::scalar(JsonScalar& value) {
  if (depth_ == 0) return refuse("state", "expected an object");
  if (in_annotations()) return set_annotation(value);
  if (depth_ != 1 || field_ == StateField::kOther || value.kind == JsonKind::kNull) return {};
  if (field_ == StateField::kPid && value.kind == JsonKind::kInteger) return set_pid(value.integer);
  const bool text = field_ == StateField::kId || field_ == StateField::kBundle;
  if (text && value.kind == JsonKind::kString) return set_text(std::move(*value.text));
  return refuse(field_name(), cat("found ", format_json_kind(value.kind)));
}

Status StateReader::set_pid(std::int64_t value) {
  if (value < 0 || value > std::numeric_limits<std::int32_t>::max())
    return refuse("pid", "out of range");
  // crun writes 0 in poststop, where runc omits the member.
  if (value != 0) state_.pid = Pid{value};
  return {};
}

Status StateReader::set_text(std::string text) {
  if (field_ == StateField::kId) {
    if (text.size() > kMaxIdSize) return refuse("id", cat("longer than ", kMaxIdSize, " bytes"));
    if (!is_printable(text))
      return refuse("id", cat("\"", printable(text), "\" contains unprintable bytes"));
    state_.id = std::move(text);
    return {};
  }
  if (text.size() > kMaxBundleSize)
    return refuse("bundle", cat("longer than ", kMaxBundleSize, " bytes"));
  if (text.contains('\0')) return refuse("bundle", "contains a NUL byte");
  state_.bundle = std::move(text);
  return {};
}

Status StateReader::set_annotation(JsonScalar& value) {
  if (annotation_.empty()) return {};
  if (value.kind != JsonKind::kString) return refuse(annotation_, "expected a string");
  if (value.text->size() > kMaxAnnotationSize) {
    return refuse(annotation_, cat("longer than ", kMaxAnnotationSize, " bytes"),
                  ErrorCode::kTooLarge);
  }
  if (state_.annotations.size() == kMaxKnownAnnotations) {
    return refuse("annotations", cat("more than ", kMaxKnownAnnotations, " that podqos reads"),
                  ErrorCode::kTooLarge);
  }
  state_.annotations.emplace(annotation_, std::move(*value.text));
  return {};
}

Result<OciState> StateReader::release() && {
  if (state_.id.empty())
    return fail(ErrorCode::kInvalidArgument, "OCI state: id is missing or empty");
  return std::move(state_);
}

}  // namespace

Result<OciState> parse_oci_state(std::string_view text) {
  if (text.size() > kMaxStateSize) {
    return fail(ErrorCode::kTooLarge,
                cat("OCI state of ", text.size(), " bytes, at most ", kMaxStateSize, " are read"));
  }
  JsonCursor cursor = cursor_over(text);
  StateReader reader{cursor};
  if (Status status = read_json(cursor, reader); !status)
    return fail(std::move(status).error().with_context("OCI state"));
  return std::move(reader).release();
}

}  // namespace podqos::codec
