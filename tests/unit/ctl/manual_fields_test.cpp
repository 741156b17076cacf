#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/codec/settings_table.h"

namespace podqos::codec {
namespace {

/// podqos.json(5) lists each field with what it takes and its default, in the order of the table;
/// each on one line, as pandoc takes no other for the head of a definition.
TEST(ManualFields, AreThoseOfTheTable) {
  std::ifstream page{PODQOS_TEST_DATA "/../../packaging/man/podqos.json.5.md"};
  std::string text{std::istreambuf_iterator<char>{page}, {}};
  text = text.substr(text.find("\n# FIELDS\n"));
  text.resize(text.find("\n# ", 1));
  std::string heads;
  for (std::size_t at = 0; (at = text.find("\n\n**", at)) != std::string::npos;) {
    const std::size_t end = text.find("\n:   ", at);
    heads += text.substr(at + 2, end - at - 2) + " ";
    at = end;
  }
  std::string expected;
  for (const Setting& field : settings_table())
    expected += cat("**", field.path, "** (", expected_value(field.kind), "; default *",
                    format_value(field.kind, field.get(core::Settings{})), "*) ");
  EXPECT_EQ(heads, expected);
}

}  // namespace
}  // namespace podqos::codec
