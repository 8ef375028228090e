// SPDX-License-Identifier: MIT
#include "support/overheard.hpp"

#include "support/catch.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/core/token.hpp>

#include <stdexcept>
#include <string>

using holdfast::test::everything_heard;
using holdfast::test::overheard;
using holdfast::test::shows_token;

TEST_CASE("a secret is found in what was said before and after it was one")
{
    overheard all;
    all.hear("nobody can be reached");
    all.hear("the password is s3cret-words, I said");
    CHECK(all.leaks().empty());
    all.keep("s3cret-words");
    CHECK(all.leaks().size() == 1);
    all.hear("s3cret-words", overheard::kind::log);
    all.hear("s3cret", overheard::kind::log);
    all.hear("");
    CHECK(all.leaks().size() == 2);
    CHECK(all.count() == 5);
    all.keep("can");  // a word of a message
    CHECK(all.leaks().size() == 2);
}

TEST_CASE("an owner token is found in a message, as Redis has it and as ZooKeeper has it")
{
    std::string const token{holdfast::owner_token::fresh().view()};
    auto node = token;
    for (std::size_t const at : {8U, 13U, 18U, 23U}) node.insert(at, 1, '-');
    CHECK(shows_token(token));
    CHECK(shows_token("with args beginning with: '" + token + "' 'PX'"));
    CHECK(shows_token("/locks/_c_" + node + "-lock-0000000001"));
    CHECK_FALSE(shows_token(token.substr(1)));
    CHECK_FALSE(shows_token(token + "01234567"));  // of a script
    CHECK_FALSE(shows_token("lock \"orders\": redis://127.0.0.1:6379: Connection refused"));
    overheard all;
    all.hear(token, overheard::kind::log);
    CHECK(all.leaks().empty());
    all.hear(token);
    CHECK(all.leaks().size() == 1);
}

TEST_CASE("no error is made that is not heard")
{
    holdfast::error const made{holdfast::errc::unavailable, "a message of its own kind"};
    CHECK(everything_heard().with("a message of its own kind").size() == 1);
    CHECK_THROWS_AS(throw std::runtime_error{std::string{"another message"}}, std::runtime_error);
}
