// SPDX-License-Identifier: MIT
#include "../support/catch.hpp"
#include "../support/eventually.hpp"
#include "../support/hang.hpp"
#include "../support/process.hpp"
#include "../support/temporary_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

using namespace holdfast::test;
using namespace std::chrono_literals;

extern "C" [[gnu::noinline]] int hangs_for_this_test()
{
    for (;;) std::this_thread::sleep_for(1h);
}

TEST_CASE("a process that hangs says where")
{
    temporary_folder const folder;
    auto const file = folder.path() / "said";
    auto child = child::fork([&] {
        ::dup2(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
        tell_where_it_hangs(100ms);
        return hangs_for_this_test();
    });
    auto const said = [&](char const* what) {
        std::ifstream in{file};
        return std::string{std::istreambuf_iterator<char>{in}, {}}.find(what) != std::string::npos;
    };
    CHECK(eventually([&] { return said("hangs_for_this_test") || said("gdb would show"); }));
    CHECK(child.running());
}
