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
	{"openflow", "OpenFlow switches"},
	{"embedding", "Where networks fit, and what finding out costs"},
	{"reservation", "Admission over time, and beside others"},
	{"multipath", "Several paths through a fabric"},
	{"chains", "Service chains"},
	{"experiments", "The whole of Sublet in a lab"},
}

// table is the one list of benchmarks: `make bench` runs it, README.md shows
// it, a test compares it with what there is.
var table = []benchmark{
	{"datapath/packetcost", "go run ./bench/datapath/packetcost",
		"a packet through overlay, its stages, router, switch, the whole path, 1,000 links, and the published experiments DP-1 to DP-4, against a bare veth pair, the kernel's own parts, Linux bridge and Open vSwitch, interleaved; `-only`, `-rounds`, `-window`",
		"root; compares with Open vSwitch and ethtool if they are installed", 10 * time.Minute, "research/performance.md"},
	{"datapath/fastpath", "go run ./bench/datapath/fastpath",
		"the programs of routers and switches by themselves, and OpenFlow switches, against kernel forwarding and the Linux bridge; `-rounds`, `-window`, `-size`",
		"root", 20 * time.Second, "research/fastpath.md"},
	{"datapath/tunnel", "go run ./bench/datapath/tunnel",
		"what a tunnel adds to sending, by protocol, against the kernel's VXLAN device; `-ends`: from node to node on two hosts, against no encapsulation; `-rounds`, `-window`",
		"root", time.Minute, "research/tunnel-cost.md"},
	{"datapath/vxswitch", "go run ./bench/datapath/vxswitch",
		"a hosting switch on real ports beside Open vSwitch's userspace datapath, a Linux bridge and a loop that only copies; `-neighbour`: what a tenant gets beside one who sends too much; `-only`, `-rounds`, `-window`",
		"root; compares with Open vSwitch if it is installed", 3 * time.Minute, "vxswitch-live.md"},
	{"datapath/vxswitch-frames", "go test ./datapath/vxswitch/live -run - -bench Frames",
		"a frame through the engine on real ports, by kind of port", "root", time.Minute, "vxswitch-live.md"},
	{"datapath/vxswitch-engine", "go test ./vxswitch -run - -bench PacketEvents -benchtime 300000x",
		"a packet through the engine alone", "", 15 * time.Second, "vxswitch-live.md"},
	{"datapath/vxswitch-simulation", "go test ./vxswitch/sim -run - -bench Packet -benchtime 5x -cpu 1",
		"packet events a second of a simulation with 32 ports and 32 virtual switches", "", 15 * time.Second, "vxswitch.md"},

	{"openflow/speed", "go run ./bench/openflow/speed",
		"what both datapaths forward on one processor, by flows, rules, masks, set-fields and outputs, and TCP, beside Linux bridge, learning switch and Open vSwitch (default and AF_XDP ports), interleaved; `-only`, `-rounds`, `-window`, `-size`",
		"root; compares with Open vSwitch and ethtool if they are installed", 2 * time.Minute, "research/openflow-performance.md"},
	{"openflow/latency", "go run ./bench/openflow/latency",
		"a frame's way through both datapaths and Open vSwitch by who decides: cache, process, controller, and after idleness; 20,000 new flows a second beside an old one; `-only`, `-rounds`, `-frames`, `-size`, `-rate`, `-seconds`",
		"root; compares with Open vSwitch if it is installed", 2 * time.Minute, "research/openflow-performance.md"},
	{"openflow/control", "go run ./bench/openflow/control",
		"flow-mods with a barrier each and in batches, statistics of 10,000 entries, and changes beside polling, on both datapaths and Open vSwitch, interleaved; `-rounds`, `-entries`",
		"root; compares with Open vSwitch if it is installed", time.Minute, "research/openflow-performance.md"},
	{"openflow/meters", "go run ./bench/openflow/meters",
		"UDP and TCP through a meter of 1 Mbit/s to 1 Gbit/s with a burst of 10 ms, on both datapaths and Open vSwitch, interleaved; `-rounds`, `-window`, `-burst`, `-mbit`",
		"root, iperf3 and ethtool; compares with Open vSwitch if it is installed", 5 * time.Minute, "research/openflow-performance.md"},
	{"openflow/controllers", "go run ./bench/openflow/controllers",
		"Sublet's controller beside ovs-testcontroller and os-ken, generator and controller on a processor each, interleaved: against Open vSwitch, by switches, versions, threads, full buffers, part of the load, fairness, newcomers, a million packets of new addresses; `-only`, `-rounds`, `-window`, `-packets`",
		"root; Open vSwitch; compares with ovs-testcontroller and OSKEN_PYTHON's os-ken if they are installed", 8 * time.Minute, "controllers.md"},
	{"openflow/factors", "go run ./bench/openflow/factors",
		"what decides how fast OpenFlow switches are: TCP over time, stages of the process datapath by ports and packets of a turn with the thesis's model, flows and queue of a port, a processor's share, lines of 1 to 10 switches; `-only`, `-rounds`, `-window`, `-seconds`, `-longest`",
		"root; compares with Open vSwitch and ethtool if they are installed", 8 * time.Minute, "research/openflow-performance.md"},
	{"openflow/parsers", "go test ./openflow/pipeline -run - -bench Parsers",
		"the parser of the pipeline beside generic ones", "", 10 * time.Second, "research/openflow-performance.md"},
	{"openflow/inband", "go test ./datapath/ofswitch -run TestSoakInBandBoot -v -band-sizes",
		"how long lines, rings and trees of 2 to 10 switches in band take to reach their controller, from nothing",
		"root", 20 * time.Second, "research/openflow-performance.md"},
	{"openflow/same", "go test ./datapath/ofswitch -run TestSameAnswers -v -packets 100000",
		"whether both datapaths, a model and Open vSwitch do the same to random frames under random tables that change; `-packets`, `-seed`",
		"root; compares with Open vSwitch if it is installed", time.Minute, "openflow.md"},

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
		"3 GB of memory", 20 * time.Minute, "research/admission-scale.md"},
	{"embedding/vxdl", "go run ./bench/embedding/vxdl",
		"a hundred VXDL requests through the whole program in one run: admitted, refused, why; `-samples`, `-long`",
		"", time.Minute, "research/vxdl-admission.md"},

	{"reservation/policies", "go run ./bench/reservation/policies",
		"advance reservations with slack: three baselines, the engine, an upper bound ([README](reservation/policies/README.md))",
		"", 3 * time.Minute, "reservations.md"},
	{"reservation/contention", "go run ./bench/reservation/contention",
		"what a tenant gets while another puts the largest questions that 40 connections can: `leases`, `up`, stages on time; `-substrates`, `-connections`, `-seconds`",
		"root", 3 * time.Minute, "reservations.md"},
	{"reservation/servers", "go test ./test -run - -bench Servers -benchtime 10x",
		"leasing and releasing a network with 1, 3 and 5 servers on one etcd, by the leader and by a follower; how long nobody answers after the leader was killed, and stands still",
		"root", time.Minute, "guides/servers.md"},
	{"reservation/members", "go test ./test -run - -bench Members -benchtime 1x",
		"1, 3 and 5 servers with a store of their own: commits, intents across six OpenFlow switches in batches, bytes between servers by who leads, a joining server",
		"root; iptables", 10 * time.Minute, "research/control-plane.md"},
	{"reservation/plane", "go run ./bench/reservation/plane",
		"what single operations of the control plane cost, and where a plan of 10,000 hosts, 1,000 OpenFlow switches and 100,000 leases breaks first; `-hosts`, `-switches`, `-leases`, `-servers`, `-cores`",
		"", 2 * time.Minute, "research/control-plane.md"},
	{"reservation/admit", "go test ./server -run - -bench Admit",
		"an admission by the API without the store's disk", "", 10 * time.Second, "research/measurements.md"},
	{"reservation/window", "go test ./lease -run - -bench Window",
		"the window of a network of ten nodes opens and ends beside many that run", "", 40 * time.Second, "research/admission-scale.md"},
	{"reservation/report", "go test ./lease -run - -bench Report",
		"an agent's report beside a thousand leases", "", 5 * time.Second, "research/admission-scale.md"},
	{"reservation/page", "go test ./web -run - -bench Paint -benchtime 5x",
		"what each view of the page takes to come, with 200 hosts and 1,000 leases: until something is painted, until the view is, and processor time of its own", "Chromium", 30 * time.Second, "page.md"},

	{"multipath/emulation", "sublet bench multipath --emulate",
		"patterns of flows, MPTCP and failures in an emulated fabric with packets; `--topology`, `--pattern`, `--damage`",
		"root", 25 * time.Minute, "research/multipath-bench.md"},
	{"multipath/model", "sublet bench multipath",
		"the same patterns in a model", "", time.Minute, "research/multipath-bench.md"},
	{"multipath/relaylists", "go run ./bench/multipath/relaylists",
		"all relay lists of one switch by fabric size, up to 2,000 switches, beside the published ones; `-k`, `-rounds`, `-svg`",
		"", time.Minute, "research/multipath-bench.md"},
	{"multipath/order", "go run ./bench/multipath/order",
		"what one TCP stream gets of two and three paths whose order is kept, the last of them 0, 1 and 5 ms later; `-rounds`, `-window`, `-capacity`, `-paths`",
		"root", 4 * time.Minute, "split-links.md"},
	{"multipath/upperbound", "go run ./bench/multipath/upperbound | python3 bench/multipath/upperbound/bound.py",
		"the most that any splitting of connections over random graphs gets, by linear programs, beside the model's methods; `-topology`, `-graphs`, `-runs`",
		"scipy of PyPI (Debian: python3-scipy)", 20 * time.Second, "research/multipath-bench.md"},
	{"multipath/relayheaders", "go run ./bench/multipath/relayheaders",
		"what relay headers cost a packet and a stream over four routers, against the same path without; `-rounds`, `-window`, `-size`",
		"root", 4 * time.Minute, "multipath.md"},
	{"multipath/programs", "go test ./datapath/iplb -run - -bench Programs -benchtime 1000000x",
		"the programs that put relay headers on, by themselves", "root", time.Minute, "multipath.md"},

	{"chains/control", "go run ./bench/chains/control",
		"laws that hold the rates of chains by shares of processors, in a model: the thesis's experiments and 20 scenarios, ours, the published one and none; `-seeds`",
		"", 10 * time.Second, "chains-processors.md"},
	{"chains/hold", "go run ./bench/chains/hold $FUNCTION eth0 eth1",
		"the controller of chains/control on a real function: its rate held by a quota while packets change size; `-mbit`, `-seconds`",
		"root; FUNCTION, a program that takes frames from eth0 and sends them out of eth1", time.Minute, "chains-processors.md"},
	{"chains/scenarios", "go run ./bench/chains/scenarios",
		"21 scenarios in which chains of a lease hold rates of 5 Mbit/s to 2 Gbit/s through functions with `cpu: auto`, which are processes: error, reaction, reallocations, processor; `-seconds`, `-only`",
		"root, iperf3, ethtool", 9 * time.Minute, "chains-processors.md"},
	{"chains/pinning", "go run ./bench/chains/pinning",
		"five processes on two cores, switches in line and functions, in two topologies: the kernel's scheduler, all pinnings, and the chosen ones; what switches and functions use at 100 Mbit/s; `-rounds`, `-window`",
		"root", 2 * time.Minute, "chains-processors.md"},
	{"chains/placement", "go run ./bench/chains/placement",
		"functions on cores: greedy against exact placement in the 27 published cases and in random ones, and how long the exact one takes",
		"", 20 * time.Second, "chains-processors.md"},
	{"chains/packets", "go run ./bench/chains/packets",
		"what a chain's functions cost a packet: 0 to 4 that are programs, on one host and over two, against the same path without a chain, namespaces that route and filter, and tables of Open vSwitch, interleaved; `-rounds`, `-window`, `-size`",
		"root; Open vSwitch for its part", 2 * time.Minute, "research/chain-speed.md"},

	{"experiments/accuracy", "go run ./bench/experiments/accuracy",
		"rates, minima, loss and delay while other leases and best effort saturate the same links, 10 Mbit/s to 1 Gbit/s; `-rates`, `-rounds`, `-window`, `-seconds`",
		"root", 35 * time.Minute, "research/measurements.md"},
	{"experiments/routershaping", "go run ./bench/experiments/routershaping",
		"the published experiment RC-1: three virtual routers, Linux and Sublet; `-seconds`, `-rounds`",
		"root", 20 * time.Minute, "research/measurements.md"},
	{"experiments/isolation", "go run ./bench/experiments/isolation",
		"the published experiment RC-2: isolation of two virtual networks; `-seconds`, `-rounds`",
		"root", 9 * time.Minute, "research/measurements.md"},
	{"experiments/sharing", "go run ./bench/experiments/sharing",
		"what the three leases of examples/demo carry of one link of 2 Gbit/s over time, as they begin and end one after another; `-step`, `-figure`", "root and iperf3", time.Minute, "../README.md"},
	{"experiments/ready", "go run ./bench/experiments/ready",
		"how much later than true a network is said to run, by routing protocol; `-rounds`",
		"root; FRR", 3 * time.Minute, "routing.md"},
	{"experiments/proof", "bench/proof-cost.sh",
		"what the proof of 1,000 links costs server and agents, asked and not asked by turns",
		"root; python3", time.Minute, "proof.md"},
	{"experiments/proofrate", "bench/proof-rate.sh",
		"what proofs and probes cost the rate of small packets: server and agents run and stand still by turns; `ROUNDS`",
		"root; iperf3, jq", 2 * time.Minute, "proof.md"},
	{"experiments/watch", "bench/watch-cost.sh bin/sublet",
		"what watching 1,000 links and proving them cost server and agents, watched and not by turns, of one program or several",
		"root; python3, curl; perf, for what answers alone take", time.Minute, "watch.md"},
	{"experiments/deployment", "go run ./bench/experiments/deployment",
		"a star of 50 nodes against Mininet; 1,000 nodes and links; admission on 100 hosts; `-rounds`, `-large`, `-asks`",
		"root; compares with Mininet if it is installed", 3 * time.Minute, "research/measurements.md"},
	{"experiments/application", "sublet bench application",
		"an application in three stages over leased links: its makespan, spread and cost with the worst, the optimised and the best rates, alone and beside a tenant who fills the wire, beside the published table; `--runs`, `--time`, `--rate`, `--seed`",
		"root", 10 * time.Minute, "research/application.md"},
	{"experiments/life", "go run ./bench/experiments/life",
		"nodes with a program each: start, stop and memory of 500 namespaces against Mininet and of 200 containers against podman; rates of both kinds at once; `-namespaces`, `-containers`, `-rounds`, `-checks`",
		"root; busybox-static; compares with Mininet (bridge-utils) and podman (runc) if they are installed", 5 * time.Minute, "research/measurements.md"},
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
