// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {
namespace {

constexpr ::timeval answers_within{60, 0};

/// hiredis writes to sockets without MSG_NOSIGNAL; a server killed meanwhile must not end the test.
class sigpipe_blocked {
public:
    sigpipe_blocked()
    {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~sigpipe_blocked()
    {
        ::timespec const at_once{};
        if (!::sigismember(&before_, SIGPIPE)) ::sigtimedwait(&pipe_, nullptr, &at_once);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    sigpipe_blocked(sigpipe_blocked const&) = delete;
    sigpipe_blocked& operator=(sigpipe_blocked const&) = delete;

private:
    ::sigset_t pipe_{};
    ::sigset_t before_{};
};

reply converted(::redisReply const& raw)
{
    reply value;
    switch (raw.type) {
    case REDIS_REPLY_NIL: return value;
    case REDIS_REPLY_INTEGER: value.type = reply::kind::integer; break;
    case REDIS_REPLY_STATUS: value.type = reply::kind::status; break;
    case REDIS_REPLY_ERROR: value.type = reply::kind::error; break;
    case REDIS_REPLY_ARRAY: value.type = reply::kind::array; break;
    default: value.type = reply::kind::string; break;
    }
    value.integer = raw.integer;
    if (raw.str != nullptr) value.text.assign(raw.str, static_cast<std::size_t>(raw.len));
    for (std::size_t i = 0; i < raw.elements; ++i) value.elements.push_back(converted(*raw.element[i]));
    return value;
}

bool readable(int fd)
{
    ::pollfd idle{fd, POLLIN, 0};
    return ::poll(&idle, 1, 0) != 0;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, reply const& value)
{
    switch (value.type) {
    case reply::kind::nil: return out << "(nil)";
    case reply::kind::integer: return out << value.integer;
    case reply::kind::string: return out << '"' << value.text << '"';
    case reply::kind::status: return out << '+' << value.text;
    case reply::kind::error: return out << '-' << value.text;
    case reply::kind::array: break;
    }
    out << '[';
    for (auto const& element : value.elements) out << ' ' << element;
    return out << " ]";
}

void connection::closer::operator()(::redisContext* context) const noexcept { ::redisFree(context); }

connection::connection(std::uint16_t port, std::string password) : port_{port}, password_{std::move(password)} {}

connection::connection(std::filesystem::path socket, std::string password)
    : socket_{std::move(socket)}, password_{std::move(password)}
{
}

connection::~connection() = default;

reply connection::operator()(std::vector<std::string> const& command)
{
    std::lock_guard const lock{mutex_};
    sigpipe_blocked const guard;
    // A connection with something to read before anything was asked has been closed by the server.
    if (!context_ || owner_ != ::getpid() || readable(context_->fd)) connect();
    return exchange(command);
}

reply connection::read()
{
    std::lock_guard const lock{mutex_};
    void* raw = nullptr;
    if (!context_ || ::redisGetReply(context_.get(), &raw) != REDIS_OK) throw std::runtime_error{"nothing to read"};
    std::unique_ptr<void, decltype(&::freeReplyObject)> const owned{raw, &::freeReplyObject};
    return converted(*static_cast<::redisReply const*>(raw));
}

void connection::close()
{
    std::lock_guard const lock{mutex_};
    context_.reset();
}

void connection::connect()
{
    context_.reset(port_ != 0 ? ::redisConnectWithTimeout("127.0.0.1", port_, answers_within)
                              : ::redisConnectUnixWithTimeout(socket_.c_str(), answers_within));
    if (!context_ || context_->err != 0) {
        std::string const reason = context_ ? context_->errstr : "out of memory";
        context_.reset();
        throw std::runtime_error{"cannot connect to the server: " + reason};
    }
    owner_ = ::getpid();
    ::redisSetTimeout(context_.get(), answers_within);
    if (!password_.empty()) exchange({"AUTH", password_});
}

reply connection::exchange(std::vector<std::string> const& command)
{
    std::vector<char const*> words;
    std::vector<std::size_t> lengths;
    for (auto const& word : command) {
        words.push_back(word.data());
        lengths.push_back(word.size());
    }
    std::unique_ptr<void, decltype(&::freeReplyObject)> const raw{
        ::redisCommandArgv(context_.get(), static_cast<int>(words.size()), words.data(), lengths.data()),
        &::freeReplyObject};
    if (!raw) {
        std::string const reason = context_->errstr;
        context_.reset();
        throw std::runtime_error{"no reply to " + command.front() + ": " + reason};
    }
    return converted(*static_cast<::redisReply const*>(raw.get()));
}

}  // namespace holdfast::test
