// SPDX-License-Identifier: MIT
//
// A job that every host of a fleet starts by cron, and that one of them runs. Let all call it at the same minute:
//
//   once [URL [NAME [SECONDS]]]      redis://127.0.0.1:6379, reports/daily, 3300: the period, a bit less than cron's
//
// Ends with 0, whether this host ran it or not; with 1 if it could not be found out, or the job failed.
#include <holdfast/redis.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    auto const* const name = argc > 2 ? argv[2] : "reports/daily";
    std::chrono::seconds const period{argc > 3 ? std::stol(argv[3]) : 3300};

    bool const ran = holdfast::run_once(redis, name, period, [](holdfast::lease const& l) {
        // The job. Give the number to what it writes to, and look at l.lost_token() if it takes long.
        std::cout << "it runs here, with fencing token " << l.fencing_token() << std::endl;
    });
    if (!ran) std::cout << "it runs elsewhere, or has run in this period" << std::endl;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
