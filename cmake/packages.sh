# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Sourced by the scripts that must work on a machine with nothing installed.
#
#   holdfast_need WHAT...
#
# makes sure that each is there: g++ clang++ clang-tidy cmake ninja pkg-config ccache git python3 curl redis-server
# postgresql cppcheck gcovr valgrind nft aspell doxygen lintian dpkg-buildpackage (commands), hiredis openssl
# zookeeper-client libpq asio boost catch2 cli11 nlohmann_json libc++ (libraries), zookeeper-server (with a Java to run
# it), curator kazoo redis-py prometheus-client matplotlib (of some Python). On Debian and its kin the missing ones, and
# only these, are installed with apt, as root or through sudo, unless another package would be removed for them;
# elsewhere they are named, and the script ends with 2.
# After it $HOLDFAST_CLANG is the name of a Clang of 16 or later, if there is one.

holdfast_need()
{
  local what missing=()
  for what in "$@"; do
    holdfast_has "$what" || missing+=("$what")
  done
  [ ${#missing[@]} -eq 0 ] || holdfast_install "${missing[@]}" || exit 2
  HOLDFAST_CLANG=$(holdfast_clang) || HOLDFAST_CLANG=
  export HOLDFAST_CLANG
}

# holdfast_want WHAT... does the same, but goes on without those that cannot be had, and says so.
holdfast_want()
{
  local what
  for what in "$@"; do
    (holdfast_need "$what") || echo "Going on without $what." >&2
  done
}

holdfast_has()
{
  case $1 in
    hiredis) holdfast_has_header hiredis/hiredis.h ;;
    openssl) holdfast_has_header openssl/ssl.h ;;
    zookeeper-client) holdfast_has_header zookeeper/zookeeper.h ;;
    libpq) holdfast_has_header postgresql/libpq-fe.h || holdfast_has_header libpq-fe.h ;;
    zookeeper-server) [ -e /usr/share/java/zookeeper.jar ] && command -v java >/dev/null ;;
    curator) [ -e /usr/share/java/curator-recipes.jar ] && command -v javac >/dev/null ;;
    kazoo) /usr/bin/python3 -c 'import kazoo' >/dev/null 2>&1 ;;
    redis-py) /usr/bin/python3 -c 'import redis' >/dev/null 2>&1 ;;
    prometheus-client) /usr/bin/python3 -c 'import prometheus_client' >/dev/null 2>&1 ;;
    postgresql) holdfast_has_postgresql ;;
    nft) [ -x /usr/sbin/nft ] || command -v nft >/dev/null ;;
    asio) holdfast_has_header asio.hpp ;;
    boost) holdfast_has_boost ;;
    catch2) holdfast_has_header catch2/catch_all.hpp || holdfast_has_header catch2/catch.hpp ;;
    cli11) holdfast_has_header CLI/CLI.hpp ;;
    aspell) command -v aspell >/dev/null && aspell dicts | grep -q '^en_GB' ;;
    matplotlib) holdfast_plotting_python >/dev/null ;;
    nlohmann_json) holdfast_has_header nlohmann/json.hpp ;;
    clang++) holdfast_clang >/dev/null ;;
    clang-tidy) holdfast_clang_tidy >/dev/null ;;
    libc++) holdfast_has_libcxx ;;
    clang-sanitizers)
      holdfast_clang >/dev/null &&
        compgen -G "$("$(holdfast_clang)" -print-resource-dir)/lib/*/libclang_rt.tsan*" >/dev/null
      ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

holdfast_has_header()
{
  [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ] ||
    g++ -E -x c++ -include "$1" /dev/null >/dev/null 2>&1
}

# The server, which Debian has outside of PATH, and its client.
holdfast_has_postgresql()
{
  command -v psql >/dev/null && { command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'; } >/dev/null
}

# Boost.Asio of 1.81 or later.
holdfast_has_boost()
{
  printf '#include <boost/version.hpp>\n#include <boost/asio/version.hpp>\n#if BOOST_VERSION < 108100\n#error\n#endif\n' |
    g++ -E -x c++ - >/dev/null 2>&1
}

holdfast_clang()
{
  local name
  for name in clang++-16 clang++-17 clang++-18 clang++-19 clang++-20 clang++-21 clang++; do
    if command -v "$name" >/dev/null && [ "$("$name" -dumpversion | cut -d. -f1)" -ge 16 ]; then
      echo "$name"
      return
    fi
  done
  return 1
}

# A libc++ with std::stop_token, and the Clang of its version.
holdfast_has_libcxx()
{
  local name
  for name in clang++-18 clang++-19 clang++-20 clang++-21; do
    if command -v "$name" >/dev/null &&
      echo '#include <stop_token>' | "$name" -std=c++20 -stdlib=libc++ -x c++ -fsyntax-only - 2>/dev/null; then return; fi
  done
  return 1
}

holdfast_clang_tidy()
{
  local name
  for name in clang-tidy-16 clang-tidy-17 clang-tidy-18 clang-tidy-19 clang-tidy-20 clang-tidy-21; do
    if command -v "$name"; then return; fi
  done
  return 1
}

# A Python that has matplotlib: the first one in PATH may not be the system's.
holdfast_plotting_python()
{
  local name
  for name in python3 /usr/bin/python3; do
    if "$name" -c 'import matplotlib' >/dev/null 2>&1; then
      echo "$name"
      return
    fi
  done
  return 1
}

# The Debian package of one need.
holdfast_package()
{
  local name
  case $1 in
    ninja) echo ninja-build ;;
    hiredis) echo libhiredis-dev ;;
    openssl) echo libssl-dev ;;
    zookeeper-client) echo libzookeeper-mt-dev ;;
    libpq) echo libpq-dev ;;
    asio) echo libasio-dev ;;
    # Debian 12's own Boost is 1.74, which is too old, and Debian 13 has no 1.81.
    boost) apt-cache show libboost1.81-dev >/dev/null 2>&1 && echo libboost1.81-dev || echo libboost-dev ;;
    # Nothing of the service, which would start with the machine: the tests need its classes.
    zookeeper-server) echo libzookeeper-java default-jre-headless ;;
    # Its rival in the tests is started from its source.
    curator) echo libcurator-recipes-java default-jdk-headless ;;
    kazoo) echo python3-kazoo ;;
    redis-py) echo python3-redis ;;
    prometheus-client) echo python3-prometheus-client ;;
    libc++) echo clang-19 libc++-19-dev libc++abi-19-dev ;;
    cli11) echo libcli11-dev ;;
    aspell) echo aspell aspell-en ;;
    dpkg-buildpackage) echo dpkg-dev ;;
    # Cuts connections in networks of their own; nothing of it runs by itself.
    nft) echo nftables ;;
    matplotlib) echo python3-matplotlib ;;
    nlohmann_json) echo nlohmann-json3-dev ;;
    # Debian 12's own clang is 14, and Debian 13 has no 16.
    clang++) apt-cache show clang-16 >/dev/null 2>&1 && echo clang-16 || echo clang ;;
    # Debian 12's own is 14, which does not read C++20 well.
    clang-tidy) apt-cache show clang-tidy-16 >/dev/null 2>&1 && echo clang-tidy-16 || echo clang-tidy-19 ;;
    clang-sanitizers)
      name=$(holdfast_clang) || name=$(holdfast_package clang++)
      case $name in *-*) echo "libclang-rt-${name##*-}-dev" ;; *) echo libclang-rt-dev ;; esac
      ;;
    *) echo "$1" ;;
  esac
}

# In a subshell, which cleans up after itself however it ends.
holdfast_install()
(
  if ! command -v apt-get >/dev/null; then
    echo "Missing: $*. Please install them with this system's own packages, and run this again." >&2
    exit 2
  fi
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "Missing: $*. They can be installed by root, or where there is sudo." >&2
      exit 2
    }
    as_root=(sudo)
  fi

  log=$(mktemp) policy=
  # shellcheck disable=SC2317
  clean() { rm -f "$log"; [ -z "$policy" ] || "${as_root[@]}" rm -f "$policy"; }
  trap clean EXIT

  # A machine that has never fetched the package lists knows no package.
  apt-cache show g++ >/dev/null 2>&1 || holdfast_apt update || true
  packages=()
  for what in "$@"; do
    read -ra names <<<"$(holdfast_package "$what")"
    packages+=("${names[@]}")
  done
  echo "Installing ${packages[*]} …" >&2

  # The tests start their own servers: the package's is neither to start now nor with the machine.
  if [[ " $* " =~ \ (redis-server|postgresql)\  && ! -e /usr/sbin/policy-rc.d ]]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod +x $policy
  fi

  # When it fails the lists may be older than the packages.
  if ! holdfast_apt install "${packages[@]}" &&
    ! { holdfast_apt update && holdfast_apt install "${packages[@]}"; }; then
    tail -n 20 "$log" >&2
    echo "Could not install ${packages[*]}." >&2
    exit 2
  fi
  if [ "$policy" ] && command -v systemctl >/dev/null; then
    for what in redis-server postgresql; do
      [[ " $* " != *" $what "* ]] || "${as_root[@]}" systemctl disable "$what.service" >/dev/null 2>&1 || true
    done
  fi
)

# apt-get without questions or words, for holdfast_install; waits for another apt to finish, and leaves configuration
# files that were changed as they are.
holdfast_apt()
{
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 \
    -o DPkg::Options::=--force-confdef -o DPkg::Options::=--force-confold \
    --no-remove --no-install-recommends "$@" >>"$log" 2>&1 </dev/null
}
