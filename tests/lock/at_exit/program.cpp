// SPDX-License-Identifier: MIT
//
// Objects of static storage are destroyed in the opposite order in which they were made. The categories are first asked
// for in main, after `at_the_end` was made: if they were ever destroyed they would be so before it looks. What is
// destroyed may look as it did, so it is also overheard for which objects a destructor is registered.
#include "library.hpp"

#include <holdfast/io/tls_error.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/zookeeper/client_log.hpp>
#include <holdfast/zookeeper/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>

using namespace std::chrono_literals;

namespace {

std::array<void const*, 1024> to_be_destroyed;
std::atomic<std::size_t> how_many{0};

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" int __real___cxa_atexit(void (*)(void*), void*, void*);

extern "C" int __wrap___cxa_atexit(void (*destroy)(void*), void* object, void* library)
{
    if (object) to_be_destroyed.at(how_many++) = object;  // otherwise a function of a sanitizer's
    return __real___cxa_atexit(destroy, object, library);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace {

void require(bool what, char const* words) noexcept
{
    if (what) return;
    std::fprintf(stderr, "it is not so that %s\n", words);
    ::_exit(1);
}

enum class told { nothing, of_loss, of_something_else };

std::atomic<told> heard{told::nothing};

void hear(holdfast::error const& e)
{
    bool const loss = e.code() == holdfast::errc::lease_lost && !e.code().message().empty() &&
                      e.code().category().name() != std::string{};
    heard = loss ? told::of_loss : told::of_something_else;
}

void require_categories() noexcept
{
    auto const has_words = [](std::error_code code, holdfast::errc condition) {
        return code == condition && code.message().find("unknown") == std::string::npos;
    };
    require(has_words(make_error_code(holdfast::errc::unavailable), holdfast::errc::unavailable),
            "the library's category has its words");
    require(has_words(make_error_code(holdfast::redis::errc::not_permitted), holdfast::errc::misconfigured),
            "that of Redis has its words");
    require(has_words(make_error_code(holdfast::tls::errc::not_tls), holdfast::errc::misconfigured),
            "that of TLS has its words");
    require(has_words(make_error_code(holdfast::zookeeper::errc::bad_acl), holdfast::errc::misconfigured),
            "that of ZooKeeper has its words");
}

void log_and_require() noexcept;

holdfast::memory::store here;
holdfast::memory::mutex orders{here, "orders", {.ttl = 300ms, .on_error = hear}};

struct judge {
    ~judge()
    {
        require_categories();
        here.erase("orders");
        while (heard == told::nothing) std::this_thread::sleep_for(1ms);
        require(heard == told::of_loss, "the loss is told of");
        try {
            orders.extend(1s);
            require(false, "a lost lease is not extended");
        } catch (holdfast::error const& e) {
            require(e.code() == holdfast::errc::lease_lost, "extending says that the lease was lost");
        }
        orders.unlock();
        log_and_require();
    }
} const at_the_end;

void require_one_category_in_all() noexcept
{
    for (auto const* const one : {&holdfast::error_category(), &holdfast::redis::error_category(),
                                  &holdfast::tls::error_category(), &holdfast::zookeeper::error_category()}) {
        require(&category_in_library(one->name()) == one, "a shared library has the same categories");
    }
    try {
        throw_in_library();
    } catch (holdfast::error const& e) {
        require(e.code() == holdfast::errc::unavailable, "an error of a shared library equals its condition here");
    } catch (std::exception const&) {
        require(false, "an error of a shared library is caught as what it is");
    }
}

void require_no_other_static_object() noexcept
{
    std::array<void const*, 3> const own{&here, &orders, &at_the_end};
    for (auto const* const one : own)
        require(std::find(to_be_destroyed.begin(), to_be_destroyed.end(), one) != to_be_destroyed.end(),
                "it is overheard what is destroyed");
    for (std::size_t i = 0; i < how_many; ++i)
        require(std::find(own.begin(), own.end(), to_be_destroyed[i]) != own.end(),
                "the library has no object that is ever destroyed");
}

/// The C client's threads log on while the program ends.
void log_and_require() noexcept
{
    using holdfast::zookeeper::client_log;
    client_log::write("2026-01-01 00:00:00:ZOO_ERROR@connect@1: no server");
    require(client_log::last_error() == "no server", "the C client logs as long as the program lasts");
}

}  // namespace

int main()
{
    require_categories();
    require_one_category_in_all();
    log_and_require();
    require_no_other_static_object();
    orders.lock();
}
