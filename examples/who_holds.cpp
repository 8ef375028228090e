// SPDX-License-Identifier: MIT
//
// For operators: says which locks are held, and who has them; asks a holder for its lock, or breaks that.
//
//   who_holds [URL [PREFIX]]        redis://127.0.0.1:6379, or redlock+redis://HOST,… with all the masters of a
//                                   Redlock: alone, one of them neither breaks a lock nor knows all; every lock whose
//                                   name begins with PREFIX
//   who_holds URL ask NAME          the holder is told so with its next renewal
//   who_holds URL break NAME        the next waiter gets the lock, and the holder finds its lease lost
//
// All users of a machine see the arguments of its processes: if the URL has a password in it, write - in its place, and
// the URL is that of the environment variable HOLDFAST_URL.
//
// Services are named unless the option name_holder of their clients is off. Without ask and break nothing is written.
#include <holdfast/make_store.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

void show(holdfast::store const& locks, std::string const& name)
{
    using std::chrono::duration_cast;
    using std::chrono::milliseconds;
    auto const who = locks.holder(name);
    if (!who) return;  // released since it was listed
    std::cout << std::quoted(holdfast::printable(name));
    if (who->host.empty())
        std::cout << " is held by a client that leaves no record";
    else
        std::cout << " is held by " << holdfast::printable(who->label) << " on " << holdfast::printable(who->host)
                  << ", process " << who->pid;
    if (who->since)
        std::cout << ", for " << duration_cast<milliseconds>(std::chrono::system_clock::now() - *who->since).count()
                  << " ms";
    if (who->remaining) std::cout << "; its lease lasts " << who->remaining->count() << " ms";
    if (who->fencing_token != 0) std::cout << ", fencing token " << who->fencing_token;
    if (who->waiting.value_or(0) != 0) std::cout << "; about " << *who->waiting << " clients wait";
    if (who->release_requested) std::cout << "; it is asked to release the lock";
    std::cout << '\n';
}

/// Returns: the URL that `argument` gives. Throws: `std::runtime_error`.
std::string url_of(std::string_view argument)
{
    if (argument != "-") return std::string{argument};
    auto const* const url = std::getenv("HOLDFAST_URL");
    if (!url) throw std::runtime_error{"the URL is -, and there is no environment variable HOLDFAST_URL"};
    return url;
}

}  // namespace

int main(int argc, char** argv)
try {
    auto const locks = holdfast::make_store(url_of(argc > 1 ? argv[1] : "redis://127.0.0.1:6379"));
    std::string_view const word = argc > 2 ? argv[2] : "";
    if (argc > 3 && (word == "ask" || word == "break")) {
        bool const held = word == "ask" ? locks.request_release(argv[3]) : locks.force_unlock(argv[3]);
        std::cout << (held ? "done\n" : "the lock is free\n");
        return held ? 0 : 2;
    }
    if (argc > 3) {
        std::cerr << "usage: who_holds [URL [PREFIX]] | URL ask NAME | URL break NAME\n";
        return 1;
    }
    auto const names = locks.list(word);
    for (auto const& name : names) show(locks, name);
    if (names.empty()) std::cerr << "no lock is held whose name begins with " << std::quoted(word) << '\n';
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
