// SPDX-License-Identifier: MIT
//
// A program that opens stores by their URLs, before `main` begins, too. The stores are brought by a shared library
// whose symbols are hidden, and by an archive; this file names none of them. Nothing brings ZooKeeper.
#include <holdfast/make_store.hpp>
#include <holdfast/mutex.hpp>

#include <iostream>
#include <string_view>

int brought_by_an_archive();
[[gnu::visibility("default")]] int brought_by_a_shared_library();

namespace {

holdfast::store const before_main = holdfast::make_store("memory:before");

bool refused(std::string_view url, std::string_view words)
{
    try {
        static_cast<void>(holdfast::make_store(url));
    } catch (holdfast::error const& e) {
        std::string_view const what = e.what();
        return e.code() == holdfast::errc::misconfigured && what.find(words) != what.npos &&
               what.find("secret") == what.npos;
    }
    return false;
}

}  // namespace

int main()
{
    if (brought_by_an_archive() + brought_by_a_shared_library() != 3) return 1;
    holdfast::mutex one{before_main, "orders"};
    holdfast::mutex same{holdfast::make_store("memory:before"), "orders"};
    holdfast::mutex other{holdfast::make_store("memory:"), "orders"};
    one.lock();
    if (same.try_lock() || !other.try_lock()) return 2;
    holdfast::mutex on_redis{holdfast::make_store("redis://127.0.0.1:1"), "orders"};
    if (!refused("redis://:secret@127.0.0.1:port", "port")) return 3;
    if (!refused("zookeeper://127.0.0.1:2181", "include <holdfast/zookeeper.hpp>")) return 4;
    if (!refused("etcd://user:secret@127.0.0.1", "begins with \"etcd\"; it has to begin with memory:, ")) return 5;
    if (!refused("redis:/127.0.0.1", "begins with \"redis\"; ") || !refused("redis:/127.0.0.1", "redis://")) return 6;
    if (!refused("user-secret@127.0.0.1:6379", "by text that has no scheme; it has to begin with memory:, ")) return 8;
    if (!refused("memory", "begins with \"memory\"; it has to begin with memory:, ")) return 7;
    if (!refused("redlock", "begins with \"redlock\"; ") || !refused("redlock", "redlock+redis://")) return 9;
    for (auto const* const text :
         {"", "secret", "host=db password=secret", "password=secret,host:6379", "secret:6379",
          "secret:", "secret:/host", "app:secret@host:6379", "secret word://host", "://secret", "7secret://host",
          "memory secret:", "a-secret-that-is-longer-than-the-scheme-of-any-url://host"})
        if (!refused(text, "by text that has no scheme; it has to begin with memory:, ")) return 10;
    std::cout << "opened\n";
}
