// SPDX-License-Identifier: MIT
//
// A write into PostgreSQL under a Redlock. The UPDATE checks the fencing token: the database refuses the write of a
// holder that was stopped past its lease, after a later holder has written.
//
//   fenced_update DATABASE URL,URL,… [GUARD]
//
//   DATABASE   as libpq takes it, for example "host=10.0.0.9 dbname=shop"; it gets a table `fenced_accounts`
//   URL        one for each master, for example redis://10.0.0.1
//   GUARD      the masters' restart_guard in seconds, 60; with 0, masters vote that were just started: for a look only
//
// Ends with 0 if the late write was refused.
#include <holdfast/redlock.hpp>

#include <libpq-fe.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace std::chrono_literals;

namespace {

class database {
public:
    explicit database(char const* where) : connection_{PQconnectdb(where)}
    {
        if (PQstatus(connection_.get()) != CONNECTION_OK) throw std::runtime_error{PQerrorMessage(connection_.get())};
        // A notice is sent if the table is there already.
        PQsetNoticeProcessor(
            connection_.get(), [](void*, char const*) {}, nullptr);
    }

    struct answer {
        std::string value;      ///< of the first row, in its first column
        std::string changed{};  ///< how many rows were changed
    };

    /// Effects: runs a statement, with `values` in place of $1, $2, … Throws: if it failed. If the connection broke, a
    /// statement that writes may have been done all the same: connect again and look.
    answer run(char const* statement, std::vector<std::string> const& values = {})
    {
        std::vector<char const*> texts;
        for (auto const& one : values) texts.push_back(one.c_str());
        std::unique_ptr<PGresult, end> const result{PQexecParams(
            connection_.get(), statement, static_cast<int>(texts.size()), nullptr, texts.data(), nullptr, nullptr, 0)};
        auto const status = PQresultStatus(result.get());
        if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
            throw std::runtime_error{PQerrorMessage(connection_.get())};
        return {PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "", PQcmdTuples(result.get())};
    }

private:
    struct end {
        void operator()(PGconn* c) const noexcept { PQfinish(c); }
        void operator()(PGresult* r) const noexcept { PQclear(r); }
    };

    std::unique_ptr<PGconn, end> connection_;
};

std::string balance(database& db) { return db.run("SELECT balance FROM fenced_accounts WHERE id = 42").value; }

/// Effects: writes the balance as the holder that has this fencing token. The check and the write are one step: the
/// statement locks the row, and looks at the fence that stands then.
/// Returns: whether the database took it. If not, a later holder has written: what this one has read is old.
bool write(database& db, std::string const& balance, std::uint64_t token)
{
    return db.run("UPDATE fenced_accounts SET balance = $1, fence = $2 WHERE id = 42 AND fence <= $2 AND $2 > 0",
                  {balance, std::to_string(token)})
               .changed == "1";
}

std::vector<std::string> parts(std::string const& list)
{
    std::vector<std::string> all;
    std::istringstream in{list};
    for (std::string one; std::getline(in, one, ',');) all.push_back(one);
    return all;
}

}  // namespace

int main(int argc, char** argv)
try {
    if (argc < 3) {
        std::cerr << "fenced_update DATABASE URL,URL,… [GUARD]\n";
        return 2;
    }
    holdfast::redlock::masters_options const options{.restart_guard =
                                                         std::chrono::seconds{argc > 3 ? std::atol(argv[3]) : 60}};
    database db{argv[1]}, other_db{argv[1]};
    db.run("CREATE TABLE IF NOT EXISTS fenced_accounts (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL DEFAULT 0,"
           " fence BIGINT NOT NULL DEFAULT 0)");
    db.run("INSERT INTO fenced_accounts (id) VALUES (42) ON CONFLICT DO NOTHING");

    // Two clients, as two processes have them. The first one is stopped in its section: its lease is not renewed.
    holdfast::redlock::masters const one{parts(argv[2]), options}, other{parts(argv[2]), options};
    holdfast::redlock::mutex stopped{one, "accounts/42", {.ttl = 1s, .renew = false}};
    holdfast::redlock::mutex account{other, "accounts/42", {.ttl = 10s}};

    holdfast::leased_lock late{stopped};
    auto const read = balance(db);
    std::cout << "one holder has fencing token " << late.fencing_token() << " and reads " << read << std::endl;
    {
        holdfast::leased_lock const hold{account};  // waits until that lease has ended
        auto const sum = std::to_string(std::stoll(balance(other_db)) + 10);
        bool const taken = write(other_db, sum, hold.fencing_token());
        std::cout << "the next one has " << hold.fencing_token() << " and writes " << sum
                  << (taken ? ": taken" : ": refused") << std::endl;
        if (!taken) return 1;
    }
    auto const sum = std::to_string(std::stoll(read) + 10);
    bool const taken = write(db, sum, late.fencing_token());
    std::cout << "the first one runs again and writes " << sum << (taken ? ": taken" : ": refused")
              << "; the balance is " << balance(db) << std::endl;
    return taken ? 1 : 0;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
