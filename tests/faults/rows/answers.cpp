// SPDX-License-Identifier: MIT
#include "answers.hpp"

#include <cstddef>

namespace holdfast::faults {

std::error_code code_of(std::function<void()> const& f)
try {
    f();
    return {};
} catch (std::system_error const& e) {
    return e.code();
}

std::string said(std::error_code c) { return c ? c.category().name() + std::string{": "} + c.message() : "no error"; }

std::vector<words> const& answers()
{
    static std::vector<words> const all{
        {"OOM", "-OOM command not allowed when used memory > 'maxmemory'.\r\n", code::out_of_memory},
        {"BUSY", "-BUSY Redis is busy running a script.\r\n", code::busy},
        {"NOSCRIPT", "-NOSCRIPT No matching script.\r\n", code::no_script, 2},
        {"READONLY", "-READONLY You can't write against a read only replica.\r\n", code::read_only},
        {"NOAUTH", "-NOAUTH Authentication required.\r\n", code::authentication_failed},
        {"NOPERM", "-NOPERM this user has no permissions to run the 'evalsha' command\r\n", code::not_permitted,
         2},  // again without the record of the holder
        {"NOREPLICAS", "-NOREPLICAS Not enough good replicas to write.\r\n", code::no_replicas},
        {"MISCONF",
         "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n",
         code::write_refused},
        {"LOADING", "-LOADING Redis is loading the dataset in memory\r\n", code::loading},
        {"CLUSTERDOWN", "-CLUSTERDOWN Hash slot not served\r\n", code::cluster_down},
        {"MASTERDOWN", "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
         code::master_down},
        {"WRONGTYPE", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", code::wrong_type},
        {"MOVED", "-MOVED 3999 127.0.0.1:6381\r\n", code::moved},
        {"ASK", "-ASK 3999 127.0.0.1:6381\r\n", code::moved},
        {"too many clients", "-ERR max number of clients reached\r\n", code::too_many_clients},
        {"an unknown error", "-ERR something else\r\n", code::server_error},
        {"a status for a number", "+OK\r\n", code::protocol_error, 2},
        {"a text for a number", "$2\r\n17\r\n", code::protocol_error, 2},
        {"an array for a number", "*2\r\n:1\r\n:2\r\n", code::protocol_error, 2},
        {"nil for a number", "$-1\r\n", code::protocol_error, 2},
    };
    return all;
}

std::vector<words> const& spoilt()
{
    std::string deep;
    for (int i = 0; i < 100; ++i) deep += "*1\r\n";
    static std::vector<words> const all{
        {"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", code::protocol_error, 2},
        {"arrays in arrays in arrays", deep + ":1\r\n", code::protocol_error, 2},
        {"a text of 1 GB, announced", "$1073741824\r\n" + std::string(4096, 'x'), code::no_answer},
        {"a text of 1 GB, of which 2 MB come", "$1073741824\r\n" + std::string(std::size_t{2} << 20U, 'x'),
         code::protocol_error, 2},
        {"a length that is no number", "$x\r\n", code::protocol_error, 2},
        {"a length below nothing", "$-7\r\n", code::protocol_error, 2},
        {"a number without an end", ":12345678901234567890123456789\r\n", code::protocol_error, 2},
    };
    return all;
}

}  // namespace holdfast::faults
