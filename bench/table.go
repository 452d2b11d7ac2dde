package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// benchmark is one measurement of the table.
type benchmark struct {
	name     string // GROUP/SUBJECT; a program of this repository is in bench/GROUP/SUBJECT
	command  string // as typed in the repository's root; $NAME is a file the caller states
	measures string
	needs    string        // beside what `make install-deps` installs
	takes    time.Duration // about, on two processors
	page     string        // of docs, that has its figures
}

// groups of the table, in its order.
var groups = []struct{ name, title string }{
	{"datapath", "What a packet costs"},
	{"embedding", "Where networks fit, and what finding out costs"},
	{"reservation", "Admission over time, and beside others"},
	{"multipath", "Several paths through a fabric"},
	{"experiments", "The whole of Sublet in a lab"},
}

// table is the one list of benchmarks: `make bench` runs it, README.md shows
// it, a test compares it with what there is.
var table = []benchmark{
	{"datapath/packetcost", "go run ./bench/datapath/packetcost",
		"a packet through overlay, its stages, router, switch, the whole path, 1,000 links, and the published experiments DP-1 to DP-4, against a bare veth pair, the kernel's own parts, Linux bridge and Open vSwitch, interleaved; `-only`, `-rounds`, `-window`",
		"root; compares with Open vSwitch and ethtool if they are installed", 10 * time.Minute, "performance.md"},
	{"datapath/fastpath", "go run ./bench/datapath/fastpath",
		"the programs of routers and switches by themselves, against kernel forwarding and the Linux bridge; `-rounds`, `-window`, `-size`",
		"root", 20 * time.Second, "fastpath.md"},
	{"datapath/tunnel", "go run ./bench/datapath/tunnel",
		"what a tunnel adds to sending, by protocol, against the kernel's VXLAN device; `-ends`: from node to node on two hosts, against no encapsulation; `-rounds`, `-window`",
		"root", time.Minute, "tunnel-cost.md"},
	{"datapath/vxswitch", "go run ./bench/datapath/vxswitch",
		"a hosting switch on real ports beside Open vSwitch's userspace datapath, a Linux bridge and a loop that only copies; `-neighbour`: what a tenant gets beside one who sends too much; `-only`, `-rounds`, `-window`",
		"root; compares with Open vSwitch if it is installed", 3 * time.Minute, "vxswitch-live.md"},
	{"datapath/vxswitch-frames", "go test ./datapath/vxswitch/live -run - -bench Frames",
		"a frame through the engine on real ports, by kind of port", "root", time.Minute, "vxswitch-live.md"},
	{"datapath/vxswitch-engine", "go test ./vxswitch -run - -bench PacketEvents -benchtime 300000x",
		"a packet through the engine alone", "", 15 * time.Second, "vxswitch-live.md"},
	{"datapath/vxswitch-simulation", "go test ./vxswitch/sim -run - -bench Packet -benchtime 5x -cpu 1",
		"packet events a second of a simulation with 32 ports and 32 virtual switches", "", 15 * time.Second, "vxswitch.md"},

	{"embedding/instance", "sublet bench embed $FILE",
		"an instance of the public embedding benchmark: acceptance, revenue, cost, time; `--split`, `--mappings` for `python3 bench/embedding/replay/check.py`, which verifies them on its own",
		"FILE, an instance; `python3 bench/embedding/replay/generate.py` makes unseen ones", 10 * time.Second, "embedding.md"},
	{"embedding/replay", "go run ./bench/embedding/replay $FILES",
		"the same for several instances, in processor time, which other work on the machine does not change; `-budget`, `-split`, `-objective`",
		"FILES, instances", 10 * time.Second, "embedding.md"},
	{"embedding/proof", "python3 bench/embedding/optimum/exact.py $FILE $MAPPINGS",
		"mappings of `sublet bench embed FILE --mappings MAPPINGS` against proven optima; `--solver both`: by two solvers",
		"FILE, MAPPINGS; ortools and highspy of PyPI", 10 * time.Minute, "embedding.md"},
	{"embedding/optimum", "go run ./bench/embedding/optimum $FILE $MAPPINGS $ANSWERS",
		"the present search against optima that embedding/proof found before, in the same states",
		"FILE, MAPPINGS, ANSWERS, what embedding/proof printed", 10 * time.Second, "embedding.md"},
	{"embedding/scale", "go run ./bench/embedding/scale",
		"an admission of 10 nodes on substrates of 100 to 10,000 nodes that carry 100,000 leases; `-substrates`, `-leases`, `-density`, `-asks`, `-figure`; `-one NAME -mid`: beside leases that run",
		"3 GB of memory", 20 * time.Minute, "admission-scale.md"},
	{"embedding/vxdl", "go run ./bench/embedding/vxdl",
		"a hundred VXDL requests through the whole program in one run: admitted, refused, why; `-samples`, `-long`",
		"", time.Minute, "vxdl-admission.md"},

	{"reservation/policies", "go run ./bench/reservation/policies",
		"advance reservations with slack: three baselines, the engine, an upper bound ([README](reservation/policies/README.md))",
		"", 3 * time.Minute, "reservations.md"},
	{"reservation/contention", "go run ./bench/reservation/contention",
		"what a tenant gets while another puts the largest questions that 40 connections can: `leases`, `up`, stages on time; `-substrates`, `-connections`, `-seconds`",
		"root", 3 * time.Minute, "reservations.md"},
	{"reservation/admit", "go test ./server -run - -bench Admit",
		"an admission by the API without the store's disk", "", 10 * time.Second, "measurements.md"},
	{"reservation/window", "go test ./lease -run - -bench Window",
		"the window of a network of ten nodes opens and ends beside many that run", "", 40 * time.Second, "admission-scale.md"},
	{"reservation/report", "go test ./lease -run - -bench Report",
		"an agent's report beside a thousand leases", "", 5 * time.Second, "admission-scale.md"},

	{"multipath/emulation", "sublet bench multipath --emulate",
		"patterns of flows, MPTCP and failures in an emulated fabric with packets; `--topology`, `--pattern`, `--damage`",
		"root", 25 * time.Minute, "multipath-bench.md"},
	{"multipath/model", "sublet bench multipath",
		"the same patterns in a model", "", time.Minute, "multipath-bench.md"},
	{"multipath/relaylists", "go run ./bench/multipath/relaylists",
		"all relay lists of one switch by fabric size, up to 2,000 switches, beside the published ones; `-k`, `-rounds`, `-svg`",
		"", time.Minute, "multipath-bench.md"},
	{"multipath/upperbound", "go run ./bench/multipath/upperbound | python3 bench/multipath/upperbound/bound.py",
		"the most that any splitting of connections over random graphs gets, by linear programs, beside the model's methods; `-topology`, `-graphs`, `-runs`",
		"scipy of PyPI (Debian: python3-scipy)", 20 * time.Second, "multipath-bench.md"},
	{"multipath/relayheaders", "go run ./bench/multipath/relayheaders",
		"what relay headers cost a packet and a stream over four routers, against the same path without; `-rounds`, `-window`, `-size`",
		"root", 4 * time.Minute, "multipath.md"},
	{"multipath/programs", "go test ./datapath/iplb -run - -bench Programs -benchtime 1000000x",
		"the programs that put relay headers on, by themselves", "root", time.Minute, "multipath.md"},

	{"experiments/accuracy", "go run ./bench/experiments/accuracy",
		"rates, minima, loss and delay while other leases and best effort saturate the same links, 10 Mbit/s to 1 Gbit/s; `-rates`, `-rounds`, `-window`, `-seconds`",
		"root", 35 * time.Minute, "measurements.md"},
	{"experiments/routershaping", "go run ./bench/experiments/routershaping",
		"the published experiment RC-1: three virtual routers, Linux and Sublet; `-seconds`, `-rounds`",
		"root", 20 * time.Minute, "measurements.md"},
	{"experiments/isolation", "go run ./bench/experiments/isolation",
		"the published experiment RC-2: isolation of two virtual networks; `-seconds`, `-rounds`",
		"root", 9 * time.Minute, "measurements.md"},
	{"experiments/deployment", "go run ./bench/experiments/deployment",
		"a star of 50 nodes against Mininet; 1,000 nodes and links; admission on 100 hosts; `-rounds`, `-large`, `-asks`",
		"root; compares with Mininet if it is installed", 3 * time.Minute, "measurements.md"},
}

// group is the first half of the name.
func (b benchmark) group() string {
	group, _, _ := strings.Cut(b.name, "/")
	return group
}

// about is a duration for people: "20 s", "3 min".
func about(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
}

// markdown writes the table of README.md.
func markdown(w io.Writer) {
	for _, g := range groups {
		fmt.Fprintf(w, "### %s\n\n| name | command | measures | needs | takes | figures |\n|---|---|---|---|---|---|\n", g.title)
		for _, b := range table {
			if b.group() == g.name {
				fmt.Fprintf(w, "| `%s` | `%s` | %s | %s | %s | [%s](../docs/%s) |\n", b.name, strings.ReplaceAll(b.command, "|", `\|`), b.measures, b.needs, about(b.takes), b.page, b.page)
			}
		}
		fmt.Fprintln(w)
	}
}
