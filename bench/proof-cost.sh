#!/bin/bash
# What proof costs server and agents: a lab of two hosts with 1,000 links; needs root and a minute.
SUBLET=${SUBLET:-bin/sublet}; SUBLET=$(realpath "$SUBLET")
RUN=$(mktemp -d /run/sltcost.XXXX)
D=$(mktemp -d); cd "$D"
cat > sub.yaml <<'Y'
hosts: [{name: h1, cpu: 64, memory: 256GiB}, {name: h2, cpu: 64, memory: 256GiB}]
links: [{name: w, ends: [h1, h2], capacity: 10Gbit}]
Y
python3 - > net.yaml <<'P'
print("network: n\nnodes:")
for i in range(32):
    print("  - {name: a%d, host: h1, cpu: 0.1, memory: 16MiB}\n  - {name: b%d, host: h2, cpu: 0.1, memory: 16MiB}" % (i, i))
print("links:")
for i in range(1000):
    print("  - {name: l%d, ends: [a%d, b%d], rate: 1Mbit}" % (i, i % 32, (i // 32 + i) % 32))
P
S="$SUBLET --run $RUN"
trap '$S lab down >/dev/null 2>&1; rm -rf '"$D $RUN" EXIT
$S lab up sub.yaml 2>&1 | tail -2
$S up net.yaml --timeout 100s 2>&1 | tail -3
ag=$(ps -eo pid,args | awk -v r="$RUN" '$0 ~ r && / agent / && !/awk|bash/ {print $1}')
sv=$(ps -eo pid,args | awk -v r="$RUN" '$0 ~ r && / serve / && !/awk|bash/ {print $1}')
cpu() { awk '{print ($14+$15)*10}' /proc/$1/stat; }
round() { # name: ms a second of each process over 6 s
  for p in $ag $sv; do b[$p]=$(cpu $p); done; sleep 6
  for p in $ag $sv; do e=$(cpu $p); echo -n "$1 $p $(( (e-${b[$p]})*10/6 ))/10ms  "; done; echo; }
declare -A b
sleep 8
for i in 1 2 3; do
  round asked; kill -STOP $sv; sleep 1; round notasked; kill -CONT $sv; sleep 2
done
$S exec n/a0 -- ping -q -i 0.2 -w 30 b0 >/dev/null 2>&1 & pp=$!
sleep 1; round moving; round moving; round moving
kill $pp 2>/dev/null
