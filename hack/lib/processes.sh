# Sourced by scripts that start kflare's processes: starts them on free ports, stops them whatever happens.
# Needs CARGO_TARGET_DIR; `eventually` needs a function `die MESSAGE`. Sets SIMULATOR, CONTROLLER_METRICS and so on.

KFLARE=$CARGO_TARGET_DIR/debug/kflare
WORK=$(mktemp -d)
STARTED=()

stop_started() {
  local status=$?
  trap - EXIT
  local pid
  for pid in "${STARTED[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${STARTED[@]}"; do wait "$pid" 2>/dev/null || true; done
  if [[ $status -ne 0 ]]; then
    local log
    for log in "$WORK"/*.log; do
      [[ -s $log ]] && { echo "-- the end of $(basename "$log")" >&2; tail -n 20 "$log" >&2; }
    done
  fi
  rm -rf "$WORK"
  exit "$status"
}
trap stop_started EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# in_background NAME COMMAND...: starts a process whose output goes to a log of that name.
in_background() {
  local name=$1
  shift
  "$@" >"$WORK/$name.log" 2>&1 &
  STARTED+=($!)
}

# logged NAME PATTERN: waits until the log of NAME holds PATTERN and prints the first match.
logged() {
  local name=$1 pattern=$2 pid=${STARTED[-1]} found
  for _ in $(seq 300); do
    if found=$(grep -soEm1 "$pattern" "$WORK/$name.log"); then
      printf '%s\n' "$found"
      return
    fi
    kill -0 "$pid" 2>/dev/null || { echo "$name ended before it was ready" >&2; return 1; }
    sleep 0.1
  done
  echo "$name was not ready within 30 s" >&2
  return 1
}

# eventually WHAT COMMAND...: repeats the command, quietly, until it succeeds, a minute long.
eventually() {
  local what=$1
  shift
  local end=$((SECONDS + 60))
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $end ]] || die "$what did not happen within a minute"
    sleep 0.2
  done
}

# The permissions of a token that may do all that the kinds need, as a list of the simulator's seed has them.
every_permission() {
  local all
  all=$(printf '"%s.write", ' zone dns waf transform redirect cache configuration origin managed_headers lists tunnel kv r2 d1 queues \
    workers_scripts workers_routes)
  printf '"account.read", %s' "${all%, }"
}

# start_simulator [FLAGS...]: sets SIMULATOR to its base URL.
start_simulator() {
  in_background simulator "$KFLARE" sim --listen 127.0.0.1:0 "$@"
  local address
  address=$(logged simulator '127\.0\.0\.1:[0-9]+')
  SIMULATOR=http://$address
}
