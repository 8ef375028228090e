// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/service.hpp>
#include <holdfast/memory/acquire_operation.hpp>
#include <holdfast/memory/data.hpp>
#include <holdfast/memory/operations.hpp>
#include <holdfast/memory/permit_numbers.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::memory {

/// Leases in the memory of this process, as one client sees them. Its reactor has no sockets, only timers.
class memory_client final : public lock_store {
public:
    explicit memory_client(std::shared_ptr<data> d) : data_{std::move(d)} { service_.add(*reactor_); }

    [[nodiscard]] shared_key make_key(std::string_view name) const override
    {
        return std::make_shared<lock_key const>(std::string{name});
    }

    [[nodiscard]] std::string refused_order(lock_key const& /*key*/) const override { return {}; }

    [[nodiscard]] shared_key make_shared_key(std::string_view name, access mode) const override
    {
        return std::make_shared<lock_key const>(std::string{name}, std::string{}, mode);
    }

    [[nodiscard]] shared_key make_slot_key(semaphore_slot const& of) override
    {
        return std::make_shared<slot_key const>(of);
    }

    [[nodiscard]] std::string address_of(lock_key const& key) const override
    {
        return key.name() + '\0' + std::to_string(reinterpret_cast<std::uintptr_t>(data_.get()));
    }

    [[nodiscard]] std::unique_ptr<pending_acquire> acquire(shared_key const& key,
                                                           acquire_request const& request) override
    {
        return std::make_unique<acquire_operation>(data_, reactor_, key, request);
    }

    [[nodiscard]] std::unique_ptr<pending_extend> extend(shared_key const& key, owner_token const& token,
                                                         std::chrono::milliseconds ttl) override
    {
        return std::make_unique<extend_operation>(data_, reactor_, key, token, ttl);
    }

    [[nodiscard]] std::unique_ptr<pending_release> release(shared_key const& key) override
    {
        return std::make_unique<release_operation>(data_, reactor_, key);
    }

    void lend_release(shared_key const& key, release_user& to) noexcept override
    {
        release_operation one{data_, reactor_, key};
        to.use(one);
    }

    std::uint32_t drive(shared_key const& /*key*/, holdfast::detail::parker& who,
                        boot_clock::time_point until) noexcept override
    {
        return reactor_->drive(who, until);
    }

    bool serve(int alarm) override
    {
        service_.serve(alarm);
        return true;
    }

    void rest() noexcept override { service_.rest(); }

    [[nodiscard]] std::unique_ptr<pending_count> count_held(std::vector<shared_key> const& slots) override
    {
        std::vector<std::string> names;
        names.reserve(slots.size());
        for (auto const& one : slots) names.push_back(one->name());
        return immediate<std::size_t>(
            data_, [names = std::move(names)](data& all, auto now) { return all.count(names, now); });
    }

    [[nodiscard]] std::unique_ptr<pending_request> resize(shared_key const& slot,
                                                          std::chrono::milliseconds ttl) override
    {
        auto const change = [key = std::static_pointer_cast<slot_key const>(slot), ttl](data& all, auto now) {
            all.change(*key, now + ttl);
            return true;
        };
        return immediate<bool>(data_, change, errc::outcome_unknown);
    }

    [[nodiscard]] std::unique_ptr<pending_inspection> inspect(shared_key const& key, report_of /*what*/) override
    {
        return immediate<lock_report>(data_, [key](data& all, auto now) { return all.inspect(key->name(), now); });
    }

    [[nodiscard]] std::unique_ptr<pending_request> force_release(shared_key const& key) override
    {
        return immediate<bool>(
            data_, [key](data& all, auto now) { return all.force_release(key->name(), now); }, errc::outcome_unknown);
    }

    [[nodiscard]] std::unique_ptr<pending_request> request_release(shared_key const& key) override
    {
        return immediate<bool>(data_, [key](data& all, auto now) { return all.request_release(key->name(), now); });
    }

    [[nodiscard]] std::unique_ptr<pending_list> list(std::string_view prefix) override
    {
        return immediate<std::vector<std::string>>(
            data_, [prefix = std::string{prefix}](data& all, auto now) { return all.list(prefix, now); });
    }

private:
    std::shared_ptr<data> data_;
    io::service service_;
    std::shared_ptr<io::reactor> reactor_ = std::make_shared<io::reactor>(std::size_t{0}, service_.orphaned());
};

}  // namespace holdfast::memory
