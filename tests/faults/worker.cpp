// SPDX-License-Identifier: MIT
#include "worker.hpp"

#include "check/history.hpp"
#include "journal.hpp"

#include <support/eventually.hpp>

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/adapters/run_once.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/election.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;

release_result result_of(std::error_code ec)
{
    if (!ec) return release_result::freed;
    return ec == errc::lease_lost ? release_result::lost : release_result::unknown;
}

/// One thread of a worker, with one lock.
class hand {
public:
    hand(duty const& what, std::size_t i, stage& on, store const& client)
        : what_{what},
          on_{on},
          slot_{on.slots.at(what.first_slot + i)},
          lock_number_{what.lock_number(i)},
          journal_{what.folder, what.clients.at(i)},
          store_{client},
          name_{what.lock_name(i)},
          random_{what.clients.at(i)}
    {
        if (what.kind == primitive::semaphore)
            permits_.emplace(client, name_, what.permits, what.where.options());
        else if (what.kind == primitive::several)
            lay_out(client);
        else if (what.kind == primitive::readers)
            sides_.emplace(client, name_, what.where.options());
        else if (what.kind != primitive::job)
            lock_.emplace(client, name_, what.where.options());
        slot_.staying = false;
        slot_.asking = false;
        slot_.client = what.clients.at(i);
    }

    void work()
    {
        if (what_.kind == primitive::election) return campaign();
        if (what_.kind == primitive::several) return dine();
        std::uniform_int_distribution<std::int64_t> rest{0, 2 * what_.rest.count()};
        while (!on_.stop) {
            shared_ = what_.shared;
            hold_ = ++attempts_;
            note({.what = event::acquire_begun});
            slot_.asking = true;
            try {
                if (permits_)
                    with_permit();
                else if (sides_)
                    with_side();
                else
                    lock_ ? with_lock() : job();
            } catch (error const& e) {
                if (!permits_) note({.what = event::acquire_unknown});
                failed(e);
            }
            slot_.asking = false;
            std::this_thread::sleep_for(std::chrono::microseconds{rest(random_)});
        }
    }

private:
    /// Called while `e` is handled. Throws: it, if trying again does not help: then the worker fails.
    void failed(error const& e)
    {
        ++slot_.failures;
        if (e.code() == errc::misconfigured) throw;
        std::this_thread::sleep_for(5ms);
    }

    void with_lock()
    {
        bool const asynchronous = what_.asynchronous;
        if (!(asynchronous ? told_locked() : lock_->try_lock_for(what_.patience)))
            return note({.what = event::acquire_failed});
        section(lock_->lease());
        give_back([&](std::error_code& ec) { asynchronous ? told_unlocked(ec) : lock_->unlock(ec); });
    }

    /// As `try_lock_for`, by the asynchronous call.
    bool told_locked()
    {
        struct outcome {
            std::error_code ec;
            bool held = false;
        };
        auto const told = std::make_shared<std::promise<outcome>>();
        lock_->async_try_lock_for(what_.patience,
                                  [told](std::error_code ec, bool held) { told->set_value({ec, held}); });
        auto const [ec, held] = told->get_future().get();
        if (ec) throw error{ec, "asynchronously"};
        return held;
    }

    void told_unlocked(std::error_code& ec)
    {
        auto const told = std::make_shared<std::promise<std::error_code>>();
        lock_->async_unlock([told](std::error_code why) { told->set_value(why); });
        ec = told->get_future().get();
    }

    void with_side()
    {
        if (!try_side()) return note({.what = event::acquire_failed});
        section(lease_of_side());
        if (what_.crosses != crossing::none) cross();
        give_back([&](std::error_code& ec) { shared_ ? sides_->unlock_shared(ec) : sides_->unlock(ec); });
    }

    bool try_side()
    {
        return shared_ ? sides_->try_lock_shared_for(what_.patience) : sides_->try_lock_for(what_.patience);
    }

    [[nodiscard]] lease lease_of_side() const { return shared_ ? sides_->lease_shared() : sides_->lease(); }

    /// Effects: a writer becomes a reader, a reader the writer, unless there are others: this is a hold of its own.
    void cross()
    {
        if (!shared_) note({.what = event::shared_on});
        auto const before = std::exchange(hold_, ++attempts_);
        shared_ = !shared_;
        note({.what = event::acquire_begun});
        slot_.asking = true;
        bool crossed = false;
        try {
            crossed = what_.crosses == crossing::without_gap ? over_to_other_side() : let_go_and_ask();
            if (!crossed) note({.what = event::acquire_failed});
        } catch (error const& e) {
            note({.what = event::acquire_unknown});
            failed(e);
        }
        shared_ = !shared_;
        auto const after = std::exchange(hold_, before);
        if (!crossed) return;
        note({.what = event::release_begun});
        note({.value = static_cast<std::uint64_t>(release_result::unknown), .what = event::release_done});
        shared_ = !shared_;
        hold_ = after;
        section(lease_of_side());
    }

    /// `shared_` says what is to be.
    bool over_to_other_side()
    {
        if (!shared_) return sides_->try_unlock_shared_and_lock();
        sides_->unlock_and_lock_shared();
        return true;
    }

    bool let_go_and_ask()
    {
        shared_ ? sides_->unlock() : sides_->unlock_shared();
        return try_side();
    }

    /// What the release says is known only to the call: that the lock was lost, and is not kept, it reports.
    void job()
    {
        auto const begun = monotonic_now();
        bool kept = false;
        auto options = what_.where.options();
        std::atomic<bool> reported{false};
        options.on_error = [&](error const&) { reported = true; };
        bool const ran = run_once(
            store_, name_, what_.period_asked,
            [&](lease const& mine) {
                kept = section(mine);
                note({.what = event::release_begun});
            },
            options);
        if (!ran) return note({.what = event::acquire_failed});
        auto const until = begun + std::chrono::nanoseconds{what_.period - drift(what_.period)}.count();
        note({.valid_until = kept && !reported ? until : 0,
              .value = static_cast<std::uint64_t>(release_result::unknown),
              .what = event::release_done});
        ++slot_.sections;
    }

    /// An attempt that fails says nothing of any one slot.
    void with_permit()
    {
        leased_permit permit{*permits_, what_.patience};
        if (!permit) return;
        lock_number_ = static_cast<std::uint32_t>(permit.slot());
        section(permit.lease());
        give_back([&](std::error_code& ec) { permit.release(ec); });
    }

    /// One of several locks that are held at once. Each hold of it has a number of its own.
    struct member {
        std::uint32_t lock;
        std::uint32_t hold;
        std::uint64_t token = 0;
        std::uint64_t seen = 0;  ///< what the counter said
    };

    void lay_out(store const& client)
    {
        if (what_.last_on) last_store_.emplace(connect(*what_.last_on));
        for (std::uint32_t m = 0; m < what_.members; ++m)
            members_.emplace_back(last_store_ && m + 1 == what_.members ? *last_store_ : client, what_.member_name(m),
                                  what_.where.options());
    }

    void dine()
    {
        std::uniform_int_distribution<std::int64_t> rest{0, 2 * what_.rest.count()};
        while (!on_.stop) {
            try {
                with_several();
            } catch (error const& e) {
                failed(e);
            }
            std::this_thread::sleep_for(std::chrono::microseconds{rest(random_)});
        }
    }

    /// An attempt that fails says nothing of any one lock.
    void with_several()
    {
        std::vector<member> all;
        for (std::uint32_t m = 0; m < what_.members; ++m) all.push_back({.lock = m, .hold = ++hold_});
        std::shuffle(all.begin(), all.end(), random_);
        all.resize(2 + random_() % (all.size() - 1));
        std::vector<mutex*> locks;
        for (auto const& one : all) {
            locks.push_back(&members_.at(one.lock));
            note_of(one, {.what = event::acquire_begun});
        }
        multi_mutex together{locks};
        if (!together.try_lock_for(what_.patience)) return;
        section(together, all);
        for (auto const& one : all) note_of(one, {.what = event::release_begun});
        std::error_code ec;
        together.unlock(ec);
        auto const how = ec ? release_result::unknown : release_result::freed;  // which of them it is of is not said
        for (auto const& one : all)
            note_of(one, {.value = static_cast<std::uint64_t>(how), .what = event::release_done});
        ++slot_.sections;
    }

    void section(multi_mutex const& together, std::vector<member>& all)
    {
        auto const mine = together.lease();
        auto const granted = monotonic_now();
        valid_until_ = to_monotonic(mine.expires_at());
        for (auto& one : all) {
            one.token = together.lease_of(members_.at(one.lock)).fencing_token();
            note_of(one, {.at = granted, .valid_until = valid_until_, .token = one.token, .what = event::acquire_ok});
        }
        std::atomic<bool> announced{false};
        std::stop_callback const on_loss{mine.lost_token(), [&] {
                                             for (auto const& one : all) note_of(one, {.what = event::loss_announced});
                                             ++slot_.losses;
                                             announced = true;
                                         }};
        for (auto& one : all) one.seen = on_.resources.at(one.lock).counter.load();
        std::this_thread::sleep_for(std::chrono::microseconds{100 + random_() % 400});
        auto const look = [&] {
            auto const until = to_monotonic(mine.expires_at());
            if (until <= valid_until_) return;
            valid_until_ = until;
            for (auto const& one : all) note_of(one, {.valid_until = until, .what = event::renewed});
        };
        while (slot_.stay && !on_.stop) {
            slot_.staying = true;
            look();
            std::this_thread::sleep_for(300us);
        }
        look();
        bool const held = mine.still_held();
        for (auto const& one : all) note_of(one, {.value = held ? 1U : 0U, .what = event::answered});
        if (!held) static_cast<void>(test::eventually([&] { return announced.load(); }, 1min));
        for (auto const& one : all) {
            auto& guarded = on_.resources.at(one.lock);
            auto const turn = guarded.fenced.write(one.token);
            note_of(one, {.value = turn, .what = turn != 0 ? event::write_taken : event::write_refused});
            if (!held) continue;
            guarded.counter = one.seen + 1;
            note_of(one, {.value = one.seen + 1, .what = event::counter_written});
        }
        slot_.staying = false;
    }

    void note_of(member const& one, record r)
    {
        r.lock = one.lock;
        r.hold = one.hold;
        journal_.write(r);
    }

    /// Each term is one section, after which the leader resigns. What the release says is known only to the election:
    /// that the lease was over is what the term said.
    void campaign()
    {
        bool held = false;
        election<mutex>* all = nullptr;
        std::atomic<bool> ready{false};
        election<mutex> one{*lock_,
                            {.on_elected =
                                 [&](term const& t) {
                                     while (!ready) std::this_thread::yield();
                                     ++hold_;
                                     note({.what = event::acquire_begun});
                                     held = section(t.lease(), t.stop_token());
                                     note({.what = event::release_begun});
                                     all->resign();
                                 },
                             .on_deposed =
                                 [&] {
                                     auto const how = held ? release_result::freed : release_result::lost;
                                     note({.value = static_cast<std::uint64_t>(how), .what = event::release_done});
                                     ++slot_.sections;
                                 },
                             .pause = 1ms,
                             .retry = {.first = 5ms, .most = 100ms}}};
        all = &one;
        ready = true;
        while (!on_.stop) std::this_thread::sleep_for(5ms);
    }

    bool section(lease const& mine) { return section(mine, mine.lost_token()); }

    /// `lost` says the end of what is held. Returns: whether it had the lock to the end.
    bool section(lease const& mine, std::stop_token const& lost)
    {
        auto const granted = monotonic_now();
        slot_.asking = false;
        valid_until_ = to_monotonic(mine.expires_at());
        note({.at = granted, .valid_until = valid_until_, .token = mine.fencing_token(), .what = event::acquire_ok});
        std::atomic<bool> announced{false};
        std::stop_callback const on_loss{lost, [&] {
                                             note({.what = event::loss_announced});
                                             ++slot_.losses;
                                             announced = true;
                                         }};
        std::stop_callback const on_request{mine.release_requested(), [&] { ++slot_.requests; }};
        auto& guarded = on_.resources.at(lock_number_);
        auto const seen = guarded.counter.load();
        std::this_thread::sleep_for(std::chrono::microseconds{100 + random_() % 400});
        while (slot_.stay && !on_.stop) {
            slot_.staying = true;
            look_at(mine);
            std::this_thread::sleep_for(300us);
        }
        look_at(mine);
        bool const held = mine.still_held();
        note({.value = held ? 1U : 0U, .what = event::answered});
        if (!held) static_cast<void>(test::eventually([&] { return announced.load(); }, 1min));
        write(guarded, mine.fencing_token());
        if (held && !shared_) {
            guarded.counter = seen + 1;
            note({.value = seen + 1, .what = event::counter_written});
        }
        slot_.staying = false;
        return held;
    }

    template <class F>
    void give_back(F const& unlock)
    {
        std::error_code ec;
        note({.what = event::release_begun});
        unlock(ec);
        // One that was not waited for says nothing of what became of it.
        auto const result = !ec && what_.where.deferred_release ? release_result::unknown : result_of(ec);
        note({.value = static_cast<std::uint64_t>(result), .what = event::release_done});
        ++slot_.sections;
    }

    /// A write of the holder is sent whether or not the lock is still its own: that is for the register to say. So is a
    /// read of one that shares it.
    void write(resource& to, std::uint64_t token)
    {
        auto const checked = [&] { return shared_ ? to.fenced.read(token) : to.fenced.write(token); };
        auto const turn = what_.tokens_checked ? checked() : to.fenced.write_unchecked(token);
        note({.value = turn, .what = turn != 0 ? event::write_taken : event::write_refused});
    }

    void look_at(lease const& l)
    {
        auto const until = to_monotonic(l.expires_at());
        if (until <= valid_until_) return;
        valid_until_ = until;
        note({.valid_until = until, .what = event::renewed});
    }

    void note(record r)
    {
        r.lock = lock_number_;
        r.hold = hold_;
        r.shared = shared_;
        journal_.write(r);
    }

    duty const& what_;
    stage& on_;
    slot& slot_;
    std::uint32_t lock_number_;
    journal journal_;
    store const& store_;
    std::string name_;
    std::optional<mutex> lock_;
    std::optional<semaphore> permits_;
    std::optional<shared_mutex> sides_;
    std::optional<store> last_store_;
    std::deque<mutex> members_;
    std::minstd_rand random_;
    std::uint32_t hold_ = 0;
    std::uint32_t attempts_ = 0;  ///< each has a number
    bool shared_ = false;         ///< what is held, or asked for
    std::int64_t valid_until_ = 0;
};

}  // namespace

std::string duty::lock_name(std::size_t i) const
{
    auto name = "faults/" + std::to_string(lock_number(i));
    return guarded ? name : name + "/" + std::to_string(clients.at(i));
}

std::string duty::member_name(std::uint32_t member) const
{
    auto name = "faults/" + std::to_string(member);
    return guarded ? name : name + "/" + std::to_string(clients.at(0));
}

int work(duty const& what, stage& on)
try {
    auto const client = connect(what.where);
    std::vector<std::jthread> threads;
    threads.reserve(what.clients.size());
    std::atomic<bool> failed{false};
    for (std::size_t i = 0; i < what.clients.size(); ++i)
        threads.emplace_back([&, i] {
            try {
                hand{what, i, on, client}.work();
            } catch (std::exception const& e) {
                std::fprintf(stderr, "client %u: %s\n", what.clients[i], e.what());
                failed = true;
            }
        });
    auto& warm = on.warm.at(what.first_slot);
    while (!on.stop && !on.warmed) {
        auto const now = own_footprint();
        warm = {std::max(warm.descriptors, now.descriptors), std::max(warm.threads, now.threads),
                std::max(warm.resident, now.resident)};
        std::this_thread::sleep_for(20ms);
    }
    while (!on.stop) std::this_thread::sleep_for(5ms);
    on.late.at(what.first_slot) = own_footprint();
    threads.clear();
    return failed ? 1 : 0;
} catch (std::exception const& e) {
    std::fprintf(stderr, "worker: %s\n", e.what());
    return 1;
}

}  // namespace holdfast::faults
