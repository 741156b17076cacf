#include "ctl/yaml_tree.h"

#include <algorithm>
#include <map>

#include <yaml.h>

#include "common/base/text.h"
#include "common/codec/json_tree.h"

namespace podqos::ctl {
namespace {

/// libyaml's parser of a text.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    ::yaml_parser_initialize(&parser_);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its bytes are unsigned
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    ::yaml_parser_set_input_string(&parser_, bytes, text.size());
    ::yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() {
    ::yaml_event_delete(&event_);
    ::yaml_parser_delete(&parser_);
  }

  /// The next event, valid until the next call; nullptr for an error.
  const yaml_event_t* next() {
    ::yaml_event_delete(&event_);
    return ::yaml_parser_parse(&parser_, &event_) == 1 ? &event_ : nullptr;
  }
  /// Line of the error, counted from 0.
  [[nodiscard]] std::size_t error_line() const {
    if (parser_.error != YAML_READER_ERROR) return parser_.problem_mark.line;
    const std::string_view before = text_.substr(0, parser_.problem_offset);
    return static_cast<std::size_t>(std::ranges::count(before, '\n'));
  }
  [[nodiscard]] std::string_view problem() const {
    const std::string_view text = parser_.problem == nullptr ? "cannot be read" : parser_.problem;
    if (!text.ends_with("<document start>")) return text;
    return "documents must be separated by a line \"---\"";
  }

 private:
  std::string_view text_;
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

/// A text of libyaml's.
const char* characters(const yaml_char_t* text) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its bytes are unsigned
  return reinterpret_cast<const char*>(text);
}

/// Makes a tree of events.
class Builder {
 public:
  Builder(std::string_view text, YamlTree& tree) : text_(text), tree_(tree) {}

  /// @return an error without place
  Status add(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event.data.scalar;
        PODQOS_ASSIGN(YamlNode * node, append(event, scalar.anchor));
        node->plain = scalar.plain_implicit != 0;
        node->text.assign(characters(scalar.value), scalar.length);
        return {};
      }
      case YAML_SEQUENCE_START_EVENT: {
        const auto& sequence = event.data.sequence_start;
        PODQOS_ASSIGN(YamlNode * node, append(event, sequence.anchor));
        node->kind = YamlNode::Kind::kSequence;
        node->flow = sequence.style == YAML_FLOW_SEQUENCE_STYLE;
        return open(node);
      }
      case YAML_MAPPING_START_EVENT: {
        const auto& map = event.data.mapping_start;
        PODQOS_ASSIGN(YamlNode * node, append(event, map.anchor));
        node->kind = YamlNode::Kind::kMap;
        node->flow = map.style == YAML_FLOW_MAPPING_STYLE;
        return open(node);
      }
      case YAML_ALIAS_EVENT: {
        const std::string_view anchor = characters(event.data.alias.anchor);
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end())
          return fail(ErrorCode::kInvalidArgument, cat("unknown anchor ", printable(anchor)));
        place(found->second);
        return {};
      }
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: open_.pop_back(); return {};
      case YAML_DOCUMENT_START_EVENT:
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_STREAM_END_EVENT:
      case YAML_DOCUMENT_END_EVENT: return {};
    }
    return {};
  }

 private:
  /// A new node where the event is.
  Result<YamlNode*> append(const yaml_event_t& event, const yaml_char_t* anchor) {
    if (tree_.nodes.size() == kMaxYamlNodes)
      return fail(ErrorCode::kTooLarge, cat("has more than ", kMaxYamlNodes, " values"));
    YamlNode& node = tree_.nodes.emplace_back();
    node.offset = byte_of(event.start_mark);
    node.end = byte_of(event.end_mark);
    node.column = event.start_mark.column;
    if (anchor != nullptr) anchors_[characters(anchor)] = &node;
    place(&node);
    return &node;
  }
  /// The offset of a mark; marks must be given in ascending order. libyaml counts characters.
  std::size_t byte_of(const yaml_mark_t& mark) {
    for (; characters_ < mark.index && bytes_ < text_.size(); ++characters_) {
      for (++bytes_; bytes_ < text_.size() && is_continuation(text_[bytes_]);)
        ++bytes_;
    }
    return bytes_;
  }
  static bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }
  void place(const YamlNode* node) {
    if (open_.empty())
      tree_.root = node;
    else
      open_.back()->children.push_back(node);
  }
  Status open(YamlNode* node) {
    if (open_.size() == codec::kMaxJsonDepth)
      return fail(ErrorCode::kTooLarge, cat("nests deeper than ", codec::kMaxJsonDepth));
    open_.push_back(node);
    return {};
  }

  std::string_view text_;
  YamlTree& tree_;
  std::vector<YamlNode*> open_;
  std::map<std::string, const YamlNode*, std::less<>> anchors_;
  std::size_t characters_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace

Result<YamlTree> YamlTree::parse(std::string_view text, std::size_t first_line) {
  YamlTree tree;
  Parser parser{text};
  Builder builder{text, tree};
  while (const yaml_event_t* event = parser.next()) {
    if (event->type == YAML_STREAM_END_EVENT) return tree;
    if (auto added = builder.add(*event); !added)
      return fail(
          std::move(added).error().with_context(cat("line ", first_line + event->start_mark.line)));
  }
  return fail(ErrorCode::kInvalidArgument,
              cat("line ", first_line + parser.error_line(), ": ", parser.problem()));
}

}  // namespace podqos::ctl
