#!/bin/bash
# What watching and proofs cost server and agents, of several programs by turns:
#   bench/watch-cost.sh bin/sublet [FORMER/sublet ...]
# Each has a lab of two hosts with 1,000 links; needs root, curl and some minutes. With
# perf, and programs with symbols (go build ./cmd/sublet), also what answers alone take.
set -u
D=$(mktemp -d)
cat > "$D/sub.yaml" <<'Y'
hosts: [{name: h1, cpu: 64, memory: 256GiB}, {name: h2, cpu: 64, memory: 256GiB}]
links: [{name: w, ends: [h1, h2], capacity: 10Gbit}]
Y
python3 - > "$D/net.yaml" <<'P'
print("network: n\nnodes:")
for i in range(32):
    print("  - {name: a%d, host: h1, cpu: 0.1, memory: 16MiB}\n  - {name: b%d, host: h2, cpu: 0.1, memory: 16MiB}" % (i, i))
print("links:")
for i in range(1000):
    print("  - {name: l%d, ends: [a%d, b%d], rate: 1Mbit}" % (i, i % 32, (i // 32 + i) % 32))
P
run= program= processes=
down() { [ -n "$run" ] && "$program" --run "$run" lab down >/dev/null 2>&1; rm -rf "$run"; run=; }
trap 'down; rm -rf "$D"' EXIT
up() {
  program=$(realpath "$1"); run=$(mktemp -d /run/sltcost.XXXX)
  "$program" --run "$run" lab up "$D/sub.yaml" >/dev/null && "$program" --run "$run" up "$D/net.yaml" --timeout 100s >/dev/null || exit 1
  processes=$(ps -eo pid,args | awk -v r="$run" 'index($0, r) && (/ agent / || / serve /) && !/awk|bash/ {print (/ serve /) ? 0 : 1, $1}' | sort | awk '{print $2}')
  sleep 8
}
cpu() { awk '{print ($14+$15)*10}' "/proc/$1/stat"; }
measure() { # ms a second of server and agents, over 6 s
  local p n=0 before=()
  for p in $processes; do before+=("$(cpu "$p")"); done
  sleep 6
  echo -n "$program $1: server, agents"
  for p in $processes; do echo -n " $(( ($(cpu "$p") - before[n++]) / 6 ))"; done
  echo
}
answers() { # ms a second of what answers take, over 6 s; agents: of both
  perf record -q -o "$D/perf" -F 999 -g -p "$(echo $processes | tr ' ' ,)" -- sleep 6 >/dev/null 2>&1 || return
  perf report -i "$D/perf" --children -g none --sort sym 2>/dev/null > "$D/report"
  local all f
  all=$(awk '/^# Event count/ {print $5 / 6e6}' "$D/report")
  for f in 'api.(*Host).samples' 'api.(*Host).counts' 'server.(*collector).ask' 'server.(*Server).getWatch' 'runtime.gcBgMarkWorker'; do
    echo "$program $1: $f $(awk -v f="$f" -v a="$all" 'substr($0, length($0)-length(f)+1) == f {sub("%", "", $1); printf "%.1f", $1*a/100; exit}' "$D/report")"
  done
}
for p in "$@"; do
  up "$p"
  answers 'not watched'
  for i in 1 2 3; do
    measure 'not watched'
    curl -sN --unix-socket "$run/api.sock" http://sublet/v1/watch >/dev/null & w=$!
    sleep 3; measure watched; [ $i = 3 ] && answers watched
    kill $w; wait $w 2>/dev/null; sleep 1
  done
  down
done
