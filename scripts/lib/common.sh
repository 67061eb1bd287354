# shellcheck shell=bash
# What the scripts share; sourced, never run. Sets `root`, the top of the checkout, and stands there.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# Prints the comment at the top of the calling script: that is its help.
print_help() { sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0"; }

# How many compilers may run at once: all cores, but no more than memory allows (the heaviest files take about 1.5 GB).
build_jobs() {
  local cores memory_kb by_memory
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  by_memory=$((${memory_kb:-8000000} / 1500000))
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

# configure_and_build PRESET [TARGET...]
configure_and_build() {
  local preset=$1
  shift
  say "configuring and building build/$preset"
  cmake --preset "$preset" >"$(log_file "configure-$preset")" || {
    cat "$(log_file "configure-$preset")" >&2
    fail "cmake --preset $preset failed"
  }
  cmake --build --preset "$preset" --parallel "$(build_jobs)" ${1:+--target "$@"}
}

log_file() {
  mkdir -p "$root/build/logs"
  echo "$root/build/logs/$1.log"
}

# The first Python that can run the tests: one with PyTorch if there is one (its tests are skipped elsewhere).
find_python() {
  local needs candidate
  for needs in 'numpy, pytest, torch' 'numpy, pytest'; do
    for candidate in python3 /usr/bin/python3; do
      if command -v "$candidate" >/dev/null && "$candidate" -c "import $needs" 2>/dev/null; then
        command -v "$candidate"
        return 0
      fi
    done
  done
  return 1
}
