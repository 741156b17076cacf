#include "ctl/json_text.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/oci_edit.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// JSON text; `ascii` escapes all other characters.
std::string quoted(std::string_view text, bool ascii) {
  return nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
}

/// A string that every YAML version reads as one.
std::string yaml_string(std::string_view text) {
  if (!std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }))
    return quoted(text, true);
  std::string out = "'";
  for (const char c : text)
    out.append(c == '\'' ? 2 : 1, c);
  return out + '\'';
}

/// The last member of this name, or the element of an array at this index, also if it is null.
const JsonNode* child(const JsonNode& node, std::string_view step) {
  if (node.kind == Kind::kArray) {
    const auto index = static_cast<std::size_t>(parse_int(step).value_or(-1));
    return index < node.children.size() ? &node.children[index] : nullptr;
  }
  const auto found =
      std::ranges::find(node.children.rbegin(), node.children.rend(), step, &JsonNode::key);
  return found == node.children.rend() ? nullptr : &*found;
}

/// Collects the changes that insertions make to a text.
class Inserter {
 public:
  Inserter(std::string_view text, Syntax syntax) : text_(text), is_yaml_(syntax == Syntax::kYaml) {}

  Status insert(const JsonNode& root, const Insertion& insertion) {
    const JsonNode* object = &root;
    std::string_view path = insertion.path;
    while (!path.empty() && !object->is_null()) {
      std::string_view rest = path;
      const JsonNode* const next = child(*object, read_until(rest, '.'));
      if (next == nullptr) break;
      object = next;
      path = rest;
    }
    if (object->is_null()) {
      replace(object->raw, cat("{", flow_members(path, insertion.members, comma()), "}"));
      return {};
    }
    if (object->kind != Kind::kObject)
      return fail(ErrorCode::kInvalidArgument,
                  cat(insertion.path, ": expected an object, found ", json_shown(*object)));
    StringMembers missing;
    for (const auto& [key, value] : insertion.members) {
      const JsonNode* const present = path.empty() ? child(*object, key) : nullptr;
      if (present == nullptr)
        missing.emplace_back(key, value);
      else if (present->kind != Kind::kString || present->text != value)
        replace(present->raw, string(value));
    }
    if (missing.empty()) return {};
    if (!object->raw.starts_with('{')) return add_lines(*object, path, missing);
    add_in_flow(*object, path, missing);
    return {};
  }

  Result<std::string> edited() && {
    std::ranges::stable_sort(splices_, {}, &codec::Splice::begin);
    return codec::apply_splices(text_, splices_);
  }

 private:
  [[nodiscard]] std::string_view comma() const { return is_yaml_ ? ", " : ","; }
  [[nodiscard]] std::string string(std::string_view value) const {
    return is_yaml_ ? yaml_string(value) : json_quote(value);
  }
  [[nodiscard]] std::string name(std::string_view key) const {
    return cat(is_yaml_ ? key : json_quote(key), ": ");
  }

  [[nodiscard]] std::size_t offset_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - text_.data());
  }
  void replace(std::string_view part, std::string text) {
    const std::size_t begin = offset_of(part);
    splices_.push_back({.begin = begin, .end = begin + part.size(), .text = std::move(text)});
  }

  /// Members of an object, without its braces, within the objects that are missing on the way.
  [[nodiscard]] std::string flow_members(std::string_view path, const StringMembers& members,
                                         std::string_view separator) const {
    std::string out;
    std::string end;
    for (; !path.empty(); end += '}')
      out += cat(name(read_until(path, '.')), "{");
    std::string_view before;
    for (const auto& [key, value] : members)
      out += cat(std::exchange(before, separator), name(key), string(value));
    return out + end;
  }

  /// Where the first member begins; merged ones are elsewhere.
  [[nodiscard]] std::size_t first_in(const JsonNode& object, std::size_t otherwise) const {
    const bool own = !object.children.empty() && !object.children.front().raw_key.empty();
    return own ? offset_of(object.children.front().raw_key) : otherwise;
  }

  /// Before the first member, with its indentation, to preserve the layout.
  void add_in_flow(const JsonNode& object, std::string_view path, const StringMembers& members) {
    const std::size_t begin = offset_of(object.raw) + 1;
    const std::size_t end = first_in(object, begin);
    std::string_view space = text_.substr(begin, end - begin);
    if (space.find_first_not_of(" \t\r\n") != std::string_view::npos) space = {};
    const std::string next = space.empty() ? std::string{comma()} : cat(",", space);
    replace(text_.substr(end, 0), cat(flow_members(path, members, path.empty() ? next : comma()),
                                      object.children.empty() ? "" : next));
  }

  /// In lines before that of the first member. With "- ", a tag or an anchor before it, no line can
  /// be inserted there.
  Status add_lines(const JsonNode& map, std::string_view path, const StringMembers& members) {
    constexpr std::string_view kLevel = "  ";
    const std::size_t first = first_in(map, offset_of(map.raw));
    const std::size_t begin = text_.substr(0, first).rfind('\n') + 1;  // npos + 1 is 0
    std::string indent{text_.substr(begin, first - begin)};
    if (indent.find_first_not_of(' ') != std::string::npos)
      return fail(ErrorCode::kInvalidArgument, "no line can be inserted");
    std::string lines;
    for (; !path.empty(); indent += kLevel)
      lines += cat(indent, read_until(path, '.'), ":\n");
    lines += format_members(members, indent);
    if (const std::size_t end = text_.find('\n'); end > 0 && text_[end - 1] == '\r') {
      for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2)
        lines.insert(at, 1, '\r');
    }
    replace(text_.substr(begin, 0), std::move(lines));
    return {};
  }

  std::string_view text_;
  bool is_yaml_;
  std::vector<codec::Splice> splices_;
};

}  // namespace

std::string path_in(std::string_view path, std::string_view rest) {
  return cat(path, path.empty() || rest.empty() ? "" : ".", rest);
}

const JsonNode* json_member(const JsonNode& object, std::string_view key) {
  const JsonNode* const found = object.kind == Kind::kObject ? child(object, key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

const JsonNode* json_at(const JsonNode& root, std::string_view path) {
  const JsonNode* found = &root;
  while (found != nullptr && !path.empty()) {
    found = child(*found, read_until(path, '.'));
    if (found != nullptr && found->is_null()) found = nullptr;
  }
  return found;
}

std::string json_shown(const JsonNode& value) {
  return value.kind == Kind::kString ? cat("\"", printable(value.text), "\"")
                                     : printable(value.raw);
}

std::string json_quote(std::string_view text) {
  return quoted(text, false);
}

Result<std::string> insert_members(std::string_view text, const JsonNode& root,
                                   std::span<const Insertion> insertions, Syntax syntax) {
  Inserter inserter{text, syntax};
  for (const Insertion& insertion : insertions)
    PODQOS_TRY(inserter.insert(root, insertion));
  return std::move(inserter).edited();
}

std::string format_members(const StringMembers& members, std::string_view indent) {
  std::string out;
  for (const auto& [key, value] : members)
    out += cat(indent, key, ": ", yaml_string(value), "\n");
  return out;
}

}  // namespace podqos::ctl
