#!/bin/bash
# What proofs and probes cost the rate of packets: small datagrams over a link between two
# hosts, as many as one sender makes, while server and agents run and while they stand
# still, by turns; needs root, iperf3, and two minutes.
SUBLET=${SUBLET:-bin/sublet}; SUBLET=$(realpath "$SUBLET")
RUN=$(mktemp -d /run/sltrate.XXXX)
D=$(mktemp -d); cd "$D"
cat > sub.yaml <<'Y'
hosts: [{name: h1, cpu: 4, memory: 4GiB}, {name: h2, cpu: 4, memory: 4GiB}]
links: [{name: w, ends: [h1, h2], capacity: 10Gbit}]
Y
cat > net.yaml <<'Y'
network: n
nodes: [{name: a, host: h1}, {name: b, host: h2}]
links: [{name: ab, ends: [a, b], min: 100Mbit, max: 2Gbit, latency: 50ms}]
Y
S="$SUBLET --run $RUN"
trap 'kill -CONT $all 2>/dev/null; $S lab down >/dev/null 2>&1; rm -rf '"$D $RUN" EXIT
$S lab up sub.yaml --name "rate$$" 2>&1 | tail -1
$S up net.yaml 2>&1 | tail -1
all=$(ps -eo pid,args | awk -v r="$RUN" '$0 ~ r && (/ serve / || / agent /) && !/awk|bash/ {print $1}')
$S exec n/b -- iperf3 -s -D; sleep 2
from=$(ls -d "$RUN"/netns/h1/*.a)
for i in $(seq "${ROUNDS:-15}"); do
  for how in running still; do
    [ $how = still ] && kill -STOP $all
    nsenter --net="$from" iperf3 -c 10.0.0.2 -u -l 64 -b 0 -t 2 -J > out.json
    kill -CONT $all
    jq -r --arg how $how '"\($how) \((.end.sum.packets - .end.sum.lost_packets) / .end.sum.seconds | round)"' out.json
  done
done | tee rounds
for how in running still; do awk -v h=$how '$1 == h {print $2}' rounds | sort -n | awk -v h=$how '{v[NR] = $1} END {print h ": median " v[int((NR + 1) / 2)] " packets a second (" v[1] " to " v[NR] ")"}'; done
