// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// Returns: whether `text` has something in it that looks like an owner token: 32 hexadecimal digits in a row, with a
/// ZooKeeper node's hyphens or without.
[[nodiscard]] inline bool shows_token(std::string_view text)
{
    auto const is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    std::size_t digits = 0;
    for (std::size_t i = 0; i <= text.size(); ++i) {
        if (i < text.size() && is_digit(text[i])) {
            ++digits;
            continue;
        }
        bool const hyphen =
            i < text.size() && text[i] == '-' && (digits == 8 || digits == 12 || digits == 16 || digits == 20);
        if (hyphen) continue;
        if (digits == 32) return true;
        digits = 0;
    }
    return false;
}

/// What was said aloud, and what must not be in it. Any number of threads.
class overheard {
public:
    enum class kind {
        message,  ///< of the library: no owner token either
        log,      ///< of ZooKeeper's C client, which names nodes where it is told to say everything
    };

    overheard() = default;
    overheard(overheard const&) = delete;
    overheard& operator=(overheard const&) = delete;
    ~overheard()
    {
        for (auto* one = newest_.load(); one != nullptr;) {
            auto* const next = one->next;
            std::free(one);
            one = next;
        }
    }

    /// Effects: keeps `text`, in memory that no operator new is asked for: it may be one that refuses.
    void hear(std::string_view text, kind of = kind::message) noexcept
    {
        if (count_.load(std::memory_order_relaxed) >= most) return;
        void* const place = std::malloc(sizeof(note) + text.size());
        if (place == nullptr) return;
        auto* const made = ::new (place) note{newest_.load(), of, text.size()};
        if (!text.empty()) std::memcpy(static_cast<void*>(made + 1), text.data(), text.size());
        while (!newest_.compare_exchange_weak(made->next, made)) {
        }
        ++count_;
    }

    /// Effects: from now on `secret` may be in nothing that is heard, or was. What is so short that it may be a word of
    /// a message is not looked for.
    void keep(std::string_view secret)
    {
        if (secret.size() < 6) return;
        std::scoped_lock const guard{mutex_};
        if (std::find(secrets_.begin(), secrets_.end(), secret) == secrets_.end()) secrets_.emplace_back(secret);
    }

    /// Returns: how many texts were heard.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

    /// Returns: the texts that `words` is in.
    [[nodiscard]] std::vector<std::string> with(std::string_view words) const
    {
        return those([&](note const&, std::string_view text) { return text.find(words) != std::string_view::npos; });
    }

    /// Returns: the texts with a secret in them.
    [[nodiscard]] std::vector<std::string> leaks() const
    {
        std::scoped_lock const guard{mutex_};
        return those([&](note const& n, std::string_view text) {
            return (n.of == kind::message && shows_token(text)) ||
                   std::any_of(secrets_.begin(), secrets_.end(),
                               [&](auto const& secret) { return text.find(secret) != std::string_view::npos; });
        });
    }

private:
    struct note {
        note* next;
        kind of;
        std::size_t size;
    };

    static constexpr std::size_t most = 200'000;  // of a run that says the same again and again

    template <class Chosen>
    [[nodiscard]] std::vector<std::string> those(Chosen chosen) const
    {
        std::vector<std::string> all;
        for (auto const* one = newest_.load(); one != nullptr; one = one->next)
            if (std::string_view const text{reinterpret_cast<char const*>(one + 1), one->size}; chosen(*one, text))
                all.emplace_back(text);
        return all;
    }

    std::atomic<note*> newest_{nullptr};
    std::atomic<std::size_t> count_{0};
    mutable std::mutex mutex_;
    std::vector<std::string> secrets_;
};

/// Of this process: every message that an error is made with (overheard.cpp), and whatever a test has told it. A test
/// executable in which a secret of its servers was heard fails (catch_main.cpp).
inline overheard& everything_heard()
{
    static auto* const all = new overheard;  // outlives every thread
    return *all;
}

}  // namespace holdfast::test
