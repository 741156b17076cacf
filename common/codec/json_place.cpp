#include "common/codec/json_place.h"

#include "common/base/text.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

std::string with_article(Kind kind) {
  return cat(kind == Kind::kArray || kind == Kind::kObject ? "an " : "a ", format_kind(kind));
}

std::string format_range(std::int64_t least, std::int64_t most) {
  if (most != kInt64Max) return cat("an integer from ", least, " to ", most);
  return least == 0 ? "a non-negative integer" : "an integer";
}

std::string position(std::string_view text, std::string_view part) {
  return text.empty() ? "" : cat(" at ", format_position(text, part));
}

}  // namespace

Result<JsonPlace> JsonPlace::member(std::string_view name) const {
  const JsonNode* found = nullptr;
  for (const JsonNode& each : children()) {
    if (!is_named(each.key, name, names_)) continue;
    if (found != nullptr) return JsonPlace{*this, name, &each}.refuse_repeated();
    found = &each;
  }
  return JsonPlace{*this, name, found == nullptr || found->is_null() ? nullptr : found};
}

Result<JsonPlace> JsonPlace::member(std::string_view name, Kind kind) const {
  PODQOS_ASSIGN(const auto place, member(name));
  if (place) PODQOS_TRY(place.expect(kind));
  return place;
}

Result<std::optional<std::int64_t>> JsonPlace::integer(std::string_view name, std::int64_t least,
                                                       std::int64_t most) const {
  PODQOS_ASSIGN(const auto place, member(name));
  if (!place) return std::nullopt;
  const bool is_number = place.node_->kind == Kind::kNumber;
  const auto number = is_number ? parse_int(place.text()) : std::nullopt;
  if (!number || *number < least || *number > most)
    return place.unexpected(format_range(least, most));
  return number;
}

Status JsonPlace::read_text(std::string_view name, std::string& out) const {
  PODQOS_ASSIGN(const auto place, member(name, Kind::kString));
  if (place) out = place.text();
  return {};
}

Status JsonPlace::expect(Kind kind) const {
  if (node_ != nullptr && node_->kind == kind) return {};
  return unexpected(with_article(kind));
}

std::string JsonPlace::path() const {
  if (parent_ == nullptr) return std::string{name_};
  const std::string above = parent_->parent_ == nullptr ? "" : parent_->path();
  const JsonNode* const parent = parent_->node_;
  if (node_ != nullptr && parent->kind == Kind::kArray)
    return cat(above, "[", node_ - parent->children.data(), "]");
  return cat(above, above.empty() ? "" : ".", printable(name_));
}

std::unexpected<Error> JsonPlace::refuse(std::string_view problem, ErrorCode code) const {
  const std::string where = path();
  return fail(code, cat(where, node_ == nullptr ? "" : position(text_, node_->raw),
                        where.empty() ? "" : ": ", problem));
}

std::unexpected<Error> JsonPlace::refuse_repeated() const {
  return refuse_value(path(), position(text_, node_->raw_key), ": member is repeated");
}

std::unexpected<Error> JsonPlace::unexpected(std::string_view expected) const {
  return refuse(
      cat("expected ", expected, ", found ", node_ == nullptr ? "nothing" : describe(*node_)));
}

}  // namespace podqos::codec
