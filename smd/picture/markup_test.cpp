#include "smd/picture/markup.h"

#include <gtest/gtest.h>

#include <pugixml.hpp>

namespace smd {
namespace {

TEST(Markup, what_means_something_in_markup_is_escaped) {
  EXPECT_EQ(escaped("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(escaped("größer 中"), "größer 中");
}

TEST(Markup, what_no_document_may_hold_is_replaced) {
  EXPECT_EQ(escaped(std::string_view("a\x01\x1b[0m\xff", 7)), "a\\x01\\x1b[0m\\xff");
  EXPECT_EQ(escaped("a\xef\xbf\xbfz"), "a\xef\xbf\xbdz");
}

TEST(Markup, a_parser_gives_the_text_back) {
  const std::string text = "</x><script>alert(\"1 & '2'\")</script>";
  pugi::xml_document document;
  const std::string xml = "<x a=\"" + escaped(text) + "\">" + escaped(text) + "</x>";
  ASSERT_TRUE(document.load_string(xml.c_str()));
  EXPECT_EQ(document.child("x").text().get(), text);
  EXPECT_EQ(document.child("x").attribute("a").value(), text);
}

}  // namespace
}  // namespace smd
