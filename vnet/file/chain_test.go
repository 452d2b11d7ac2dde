package file

import (
	"reflect"
	"testing"

	"sublet/vnet"
)

const chainText = `network: shop
nodes: [{name: a}, {name: b}]
links: [{ends: [a, b], rate: 50Mbit}]
functions:
  - {name: fw, kind: firewall, rules: [{allow: {src: 10.0.0.1}}, {deny: {proto: tcp, dst_port: 81}}, {deny: {}}], host: h1, cpu: 0.5}
  - {name: slow, kind: limiter, rate: 30Mbit}
  - {name: copy, kind: mirror, to: b}
  - {name: ids, run: [my-ids, eth0, eth1], memory: 64MiB, standby: ids2, patience: 800ms, probe: {dst: 10.0.0.2, dst_port: 7}}
  - {name: dpi, run: [my-dpi, eth0], nsh: aware}
  - {name: ids2, run: [my-ids, eth0, eth1], site: s, probe: true}
  - {name: box, kind: vm, image: box.qcow2, memory: 1GiB, disk: 8GiB, restart: always, run: [[touch, /ran], [true]]}
chains:
  - {name: web, from: a, to: b, match: {proto: tcp, dst_port: 80-81}, via: [fw, slow, copy, ids], rate: 20Mbit, on-failure: reroute}
  - {name: rest, from: a, to: b, via: [fw, box], share: best}
  - {name: late, from: a, to: b, match: {proto: udp}, via: [fw, copy], rate: 5Mbit, paused: true}
stages:
  - {name: night, after: 1h, chains: {web: {rate: 10Mbit}, late: {paused: false}, rest: {paused: true}}}
`

func TestChainsAreWrittenAsTheyAreRead(t *testing.T) {
	r, err := ParseRequest("f", []byte(chainText))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ChainLinks("web"); len(got) != 5 || got[1].Ends != [2]string{"fw", "slow"} || got[1].Bandwidth[vnet.Forward] != vnet.Static(20*vnet.Mbit) {
		t.Errorf("segments of web: %+v", got)
	}
	if got := r.ChainLinks("rest"); len(got) != 3 || !got[0].BestEffort() {
		t.Errorf("segments of rest: %+v", got)
	}
	text, err := FormatRequest(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseRequest("f", text)
	if err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("read back as %+v (%v), want %+v, from\n%s", back, err, r, text)
	}
}
