// SPDX-License-Identifier: MIT
//
// A file beside the one with main(), which has locks of its own. The header of a lock alone does not bring in what is
// behind it.
#include <holdfast/redlock.hpp>

namespace holdfast::inline HOLDFAST_ABI::redis {

class client_pool;

template <class T>
concept complete = requires { sizeof(T); };
static_assert(!complete<client_pool>);

}  // namespace holdfast::redis

bool is_held(holdfast::redlock::masters& masters)
{
    holdfast::redlock::mutex orders{masters, "orders/42"};
    return orders.lease().still_held();
}
