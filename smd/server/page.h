#pragma once

// What the program has inside of itself: the page, which is one HTML file, and the description of
// the interface. Pure functions over constants.

#include <string>
#include <string_view>

#include "smd/base/json.h"

namespace smd::server {

// As it was built.
std::string_view page_document();
std::string_view openapi_document();

// The page for one response: its scripts carry the nonce that the policy names, so that the browser
// runs no others.
std::string page_with_nonce(std::string_view page, std::string_view nonce);

// The page with the answers inside, as docs/reference/http.md describes it. `answers`: by address.
std::string page_with_answers(std::string_view page, const Json& answers);

}  // namespace smd::server
