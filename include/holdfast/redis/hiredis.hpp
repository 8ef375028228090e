// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>

#include <hiredis/hiredis.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string_view>

// The only header that includes hiredis. Only its reply reader is used, which is the same in 0.14 and 1.x.

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A reply of a server.
class reply {
public:
    enum class kind { nil, integer, text, error, array };

    explicit reply(redisReply const* raw) noexcept : raw_{raw} {}

    [[nodiscard]] kind what() const noexcept
    {
        switch (raw_->type) {
        case REDIS_REPLY_INTEGER: return kind::integer;
        case REDIS_REPLY_STRING:
        case REDIS_REPLY_STATUS: return kind::text;
        case REDIS_REPLY_ERROR: return kind::error;
        case REDIS_REPLY_ARRAY: return kind::array;
        default: return kind::nil;
        }
    }

    /// Requires: an integer.
    [[nodiscard]] long long integer() const noexcept { return raw_->integer; }

    /// Returns: the text or the error's text; empty for other replies.
    [[nodiscard]] std::string_view text() const noexcept
    {
        auto const k = what();
        return k == kind::text || k == kind::error ? std::string_view{raw_->str, static_cast<std::size_t>(raw_->len)}
                                                   : std::string_view{};
    }

    [[nodiscard]] std::size_t size() const noexcept { return what() == kind::array ? raw_->elements : 0; }

    /// Requires: `i < size()`.
    [[nodiscard]] reply operator[](std::size_t i) const noexcept { return reply{raw_->element[i]}; }

private:
    redisReply const* raw_;
};

/// Splits a stream of bytes into replies.
class reply_reader {
public:
    /// No expected reply is nearly as long. A stream with a longer one is refused.
    static constexpr std::size_t longest_reply = std::size_t{1024} * 1024;

    /// No expected reply has nearly as many elements. hiredis allocates as many as the stream announces, up to 16 GB,
    /// before it has seen any of them.
    static constexpr int longest_array = 1024;

    /// No expected reply is nested nearly as deep. hiredis 1.x nests as deep as the stream says, and frees by
    /// recursion.
    static constexpr int deepest_array = 7;

    reply_reader() : reader_{::redisReaderCreate()}
    {
        if (!reader_) throw std::bad_alloc{};
        reader_->fn = functions_of(*reader_->fn);
        reader_->privdata = this;
        integer_.type = REDIS_REPLY_INTEGER;
    }

    reply_reader(reply_reader const&) = delete;
    reply_reader& operator=(reply_reader const&) = delete;

    /// Returns: whether the bytes may still be the protocol of Redis.
    [[nodiscard]] bool feed(std::string_view bytes) noexcept
    {
        pending_ += bytes.size();
        return pending_ <= longest_reply && ::redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) == REDIS_OK;
    }

    struct owned_reply {
        std::unique_ptr<void, decltype(&::freeReplyObject)> allocated{nullptr, &::freeReplyObject};
        redisReply const* raw = nullptr;
        [[nodiscard]] explicit operator bool() const noexcept { return raw != nullptr; }
        [[nodiscard]] reply get() const noexcept { return reply{raw}; }
    };

    /// Returns: the next reply, empty if it is not complete yet; nothing if the bytes are not the protocol of Redis. An
    /// integer is there until the next call, or the end of this: most replies are one, and need no memory.
    [[nodiscard]] std::optional<owned_reply> next() noexcept
    {
        void* raw = nullptr;
        if (::redisReaderGetReply(reader_.get(), &raw) != REDIS_OK) {
            if (reader_->reply == &integer_) reader_->reply = nullptr;  // it would be freed
            return std::nullopt;
        }
        owned_reply one;
        one.raw = static_cast<redisReply const*>(raw);
        if (raw != &integer_) one.allocated.reset(raw);
        if (raw) pending_ = reader_->len - reader_->pos;
        return one;
    }

private:
    struct free_reader {
        void operator()(redisReader* r) const noexcept { ::redisReaderFree(r); }
    };

    /// Returns: hiredis's own functions, except that they refuse arrays that are too long or too deep, and that an
    /// integer that is a reply, not in an array, is in the reader.
    static redisReplyObjectFunctions* functions_of(redisReplyObjectFunctions const& own) noexcept
    {
        static auto functions = [&own] {
            auto all = own;
            make_array_ = own.createArray;
            make_integer_ = own.createInteger;
            all.createArray = &short_array;
            all.createInteger = &integer;
            return all;
        }();
        return &functions;
    }

    static void* integer(redisReadTask const* task, long long value)
    {
        if (task->parent) return make_integer_(task, value);
        auto& here = static_cast<reply_reader*>(task->privdata)->integer_;
        here.integer = value;
        return &here;
    }

    template <class Length>  // `int` in 0.14, `size_t` in 1.x
    static void* short_array(redisReadTask const* task, Length length)
    {
        int depth = 0;
        for (auto const* outer = task->parent; outer && depth < deepest_array; outer = outer->parent) ++depth;
        return length <= Length{longest_array} && depth < deepest_array ? make_array_(task, length) : nullptr;
    }

    static inline decltype(redisReplyObjectFunctions::createArray) make_array_ = nullptr;
    static inline decltype(redisReplyObjectFunctions::createInteger) make_integer_ = nullptr;

    std::unique_ptr<redisReader, free_reader> reader_;
    std::size_t pending_ = 0;
    redisReply integer_{};
};

}  // namespace holdfast::redis
