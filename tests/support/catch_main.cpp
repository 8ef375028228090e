// SPDX-License-Identifier: MIT
//
// The main of every test executable. What makes a test fail is settled here and not in the environment,
// so that a test run by hand behaves as under CTest.

#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch.hpp"
#include "support/overheard.hpp"

#include <iostream>

extern "C" {
char const* __tsan_default_options();
char const* __tsan_default_suppressions();
char const* __asan_default_options();
char const* __ubsan_default_options();

char const* __tsan_default_options()
{
    return "halt_on_error=1:second_deadlock_stack=1:die_after_fork=0:allow_addr2line=1";
}
// ZooKeeper's client races with itself: its handles format addresses for their logs into one buffer of the process.
// (called_from_lib would hide what its mutexes order, too, and report all that passes through it.)
char const* __tsan_default_suppressions() { return "race:libzookeeper_mt.so\n"; }
char const* __asan_default_options()
{
    return "detect_stack_use_after_return=1:strict_string_checks=1:allow_addr2line=1";
}
char const* __ubsan_default_options() { return "print_stacktrace=1:allow_addr2line=1"; }
}

int main(int argc, char* argv[])
{
    Catch::Session session;
    if (int const status = session.applyCommandLine(argc, argv); status != 0)
        return status;
    // A test case that asserts nothing cannot fail; a name that matches none (Catch2 3 refuses it anyway) ran none.
    auto warnings = static_cast<int>(Catch::WarnAbout::NoAssertions);
#if !__has_include(<catch2/catch_all.hpp>)
    warnings |= static_cast<int>(Catch::WarnAbout::NoTests);
#endif
    session.configData().warnings = static_cast<Catch::WarnAbout::What>(warnings);
    int const status = session.run();
    auto const leaks = holdfast::test::everything_heard().leaks();
    for (auto const& one : leaks) std::cerr << "a secret was said: " << one << '\n';
    return leaks.empty() ? status : 1;
}
