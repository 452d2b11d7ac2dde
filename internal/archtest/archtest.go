// Package archtest holds the architecture as tests: which room may import which
// (Table), what pure rooms may use (Pure), and in which order the folders stand
// on one another (Order).
package archtest

// AnyPart stands in Table for each part that has no row of its own: a new one
// needs none unless it imports more.
const AnyPart = "datapath/*"

// Table lists, for each room, the rooms of ours it may import; a name ending
// in "/..." stands for a room and its sub-rooms, "..." for all.
var Table = map[string][]string{
	"vnet":                   nil,
	"vnet/file":              {"vnet"},
	"vnet/vxdl":              {"vnet"},
	"vnet/clab":              {"vnet", "vnet/file", "vnet/topology"}, // containerlab is YAML, read within the bounds of a request; odd names become legible
	"vnet/rspec":             {"vnet", "vnet/topology"},              // names and places are made as of GraphML
	"vnet/mininet":           {"vnet", "vnet/file", "vnet/topology"}, // JSON, read within the bounds of a request
	"vnet/graph":             {"vnet"},
	"embed":                  {"vnet", "embed/...", "fabric", "internal/splitmix"},
	"embed/graph":            {"vnet", "fabric"},                                  // walks that relays can pin
	"embed/replay":           {"vnet", "embed", "embed/calendar"},                 // a book of its own, without leases
	"embed/verify":           {"vnet", "embed/calendar", "embed/graph", "fabric"}, // the judge of tests: it shares nothing with the search
	"fabric":                 {"vnet"},
	"fabric/spread":          {"vnet", "fabric"},
	"lab/workflow":           {"vnet", "vnet/file", "plan", "datapath/kernel", "lab/testbed"}, // sockets in namespaces of nodes
	"lab/emulate":            {"vnet", "plan", "agent/iplbd", "fabric/spread", "fabric", "datapath/kernel", "datapath/iplb", "lab/testbed", "lab"},
	"embed/rate":             {"vnet"},
	"embed/flow":             {"vnet", "embed/graph"},
	"vnet/topology":          {"vnet", "internal/splitmix"},
	"embed/calendar":         {"vnet"},
	"plan":                   {"vnet", "fabric", "internal/heap"}, // paths of leased links through a fabric of relays become relay lists
	"report/metrics":         {"report"},                          // apart, since it alone needs the library of Prometheus
	"report":                 {"vnet", "plan"},                    // what flows back is of items of the plan
	"lease":                  {"vnet", "embed/...", "plan", "report", "lease/policy", "lease/rollout"},
	"lease/rollout":          {"vnet", "plan", "report"}, // which host has which plan; knows no bookings
	"lease/policy":           {"vnet"},                   // quotas know amounts over time, not where they are placed
	"lease/store":            {"vnet", "plan", "lease"},
	"lease/api":              {"vnet", "plan", "report", "lease/policy", "trust"},                                                                                                                                // wire types and client: what quotas show is a policy's, a client's TLS is trust's
	"server":                 {"vnet", "plan", "report", "report/metrics", "lease", "lease/policy", "lease/api", "trust", "measure", "internal/socket", "internal/problem", "internal/plain", "internal/steady"}, // measure judges what hosts count
	"trust":                  {"vnet", "internal/problem"},
	"web":                    {"vnet", "vnet/file", "lease/api", "agent/session"}, // it speaks for one client of the API, with sessions
	"agent":                  {"vnet", "plan", "report", "internal/stall"},        // whether its host is short of processors
	"agent/api":              {"vnet", "plan", "report", "agent/session", "agent/capture", "internal/problem", "internal/steady"},
	"agent/host":             {"vnet", "plan", "report", "report/metrics", "agent/...", "datapath/...", "internal/problem"}, // the only room of a host that knows all parts
	"agent/session":          {"internal/proc", "internal/problem"},
	"agent/iplbd":            {"plan", "report", "vnet", "fabric", "fabric/spread", "datapath/kernel", "datapath/iplb"}, // the loop of one part: what it decides is a section of the plan
	"agent/forwarding":       {"vnet", "plan", "agent", "openflow/controller", "openflow/of13", "openflow/secure"},      // agents of switches, which have no kernel of ours
	"agent/capture":          nil,
	"agent/control":          nil,                                                                     // laws of control: samples in, shares out
	"agent/profile":          {"agent/control", "datapath/kernel", "measure/pktgen", "internal/proc"}, // a function under load, and the profile of it
	"agent/feedback":         {"vnet", "plan", "agent/control", "datapath/chain", "datapath/nsh"},     // the law of agent/control around what chains counted
	"agent/pin":              {"vnet", "agent/control/cores"},                                         // placements of agent/control/cores, made
	"agent/control/cores":    nil,                                                                     // for tests: internal/splitmix
	"agent/control/sim":      {"agent/control", "internal/splitmix"},
	"datapath/chain":         {"vnet", "plan", "report", "datapath/kernel", "datapath/nsh", "datapath/nsh/header"}, // chains of plans are planes of nsh, which knows no plans
	AnyPart:                  {"vnet", "plan", "report", "datapath/kernel", "datapath/bpf", "datapath/hop"},
	"datapath/kernel":        {"internal/socket", "internal/proc"}, // whether helper processes stand still
	"datapath/bpf":           {"datapath/kernel"},
	"datapath/image":         nil, // files of images: it knows no nodes
	"datapath/hop":           {"datapath/kernel", "datapath/bpf"},
	"datapath/vnode":         {"vnet", "plan", "report", "datapath/kernel", "datapath/image", "internal/filecopy", "internal/proc"},
	"datapath/vxswitch":      {"vnet", "plan", "report", "datapath/kernel", "datapath/vxswitch/live"},                        // it runs the one process of datapath/vxswitch/live
	"datapath/vxrouter":      {"vnet", "plan", "report", "datapath/kernel", "datapath/bpf", "datapath/hop", "internal/proc"}, // whether daemons stand still
	"datapath/impair":        {"vnet", "vxswitch/impair", "vxswitch/split", "datapath/kernel"},
	"datapath/vxlink":        {"vnet", "plan", "report", "datapath/kernel", "datapath/bpf", "datapath/hop", "datapath/impair"},    // frames of impaired ports go through that room's process
	"datapath/openflow":      {"vnet", "plan", "report", "datapath/kernel", "openflow/of13", "openflow/channel", "openflow/text"}, // it asks the switches' processes, by OpenFlow
	"datapath/latency":       {"vnet", "report", "datapath/kernel", "datapath/bpf"},                                               // which tunnels there are, it is told
	"datapath/reach":         {"vnet", "plan", "report", "datapath/kernel"},
	"datapath/iplb":          {"vnet", "plan", "datapath/kernel", "datapath/bpf"},
	"datapath/overlay":       {"vnet", "plan", "report", "datapath/kernel", "datapath/bpf"},
	"datapath/nsh/header":    nil, // a codec: it knows the specification and nothing of ours
	"measure":                {"vnet"},
	"vxswitch":               {"vnet", "internal/heap"},
	"vxswitch/sched":         {"vnet", "vxswitch", "internal/splitmix", "internal/heap"},
	"vxswitch/lookup":        {"vnet", "vxswitch"},
	"datapath/vxswitch/live": {"vnet", "vnet/file", "vxswitch", "vxswitch/lookup", "vxswitch/sched", "datapath/kernel", "datapath/xsk"},
	"datapath/xsk":           {"datapath/kernel"}, // AF_XDP sockets, of whichever switch
	"measure/pktgen":         {"datapath/kernel"},
	"vxswitch/split":         {"vnet"},
	"openflow/of13":          nil,                                                                                                                                                                                    // a codec: it knows the specification and nothing of ours
	"openflow/of10":          {"openflow/of13"},                                                                                                                                                                      // OpenFlow 1.0 in the words of 1.3
	"openflow/text":          {"openflow/of13"},                                                                                                                                                                      // words for messages
	"openflow/pipeline":      {"openflow/of13"},                                                                                                                                                                      // tables are changed by messages as they come
	"openflow/channel":       {"openflow/of10", "openflow/of13"},                                                                                                                                                     // connections know messages, not what a switch does with them
	"openflow/inband":        nil,                                                                                                                                                                                    // it knows frames of control, and nothing of OpenFlow
	"datapath/ofswitch":      {"vnet", "openflow/of13", "openflow/inband", "openflow/pipeline", "openflow/channel", "openflow/slice", "openflow/text", "datapath/kernel", "datapath/xsk", "internal/proc", "report"}, // devices of dead processes it removes; what becomes of a packet it tells in words, and of itself in the form that callers see; no part of an agent: sublet openflow run starts it
	"openflow/poll":          {"openflow/of10", "openflow/of13"},
	"openflow/slice":         {"openflow/of13", "openflow/channel", "openflow/pipeline"}, // whether a packet is of a slice is decided by the pipeline
	"openflow/secure":        nil,
	"openflow/controller":    {"openflow/of10", "openflow/of13", "openflow/poll", "openflow/secure"},
	"measure/ofload":         {"openflow/of10", "openflow/of13", "openflow/poll", "measure"}, // figures of merit are those of measure
	"vxswitch/impair":        {"vnet", "internal/splitmix"},
	"vxswitch/sim":           {"vnet", "vxswitch", "vxswitch/split"},
	"vxswitch/scenario":      {"vnet", "vnet/file", "vxswitch/sched", "vxswitch/sim"},
	"vxswitch/runs":          {"vxswitch/sim", "vxswitch/scenario"}, // runs side by side: what one does is sim's
	"vxswitch/figure":        {"vnet", "vxswitch/scenario", "vxswitch/sim"},
	"measure/probe":          {"vnet", "measure", "internal/stall"},
	"lab":                    {"vnet", "plan", "embed/graph", "fabric", "datapath/kernel", "datapath/bpf", "datapath/iplb", "datapath/impair", "internal/proc"}, // its switches forward as embed/graph counts on, or as fabric does, and are relays; its wires are late by that room's element
	"internal/splitmix":      nil,
	"internal/heap":          nil,
	"internal/problem":       nil,
	"internal/plain":         nil,
	"internal/proc":          nil,
	"internal/socket":        nil,
	"internal/steady":        nil,
	"internal/filecopy":      nil, // runs in nodes, and at their users
	"lab/testbed":            {"vnet", "vnet/file", "plan", "lease/api", "measure/pktgen", "lab"},
	"internal/stall":         nil,                        // for tests
	"lease/conversation":     {"vnet", "plan", "report"}, // for tests: reports of agents as conversations write them
	"lab/guest":              nil,                        // likewise
	"internal/archtest":      nil,
	"cmd/sublet":             {"..."},
	"cmd/nodeinit":           {"datapath/vnode"}, // what runs in nodes, with as little else as there can be

	// libraries that programs in nodes are spared
	"datapath/image/registry": nil,
	"datapath/vnode/process":  {"report"},
}

// Pure rooms do no I/O, read no clock and start no goroutine; time and
// randomness are arguments. Banned are the packages that would let them.
var Pure = []string{
	"vnet", "vnet/file", "vnet/vxdl", "vnet/clab", "vnet/rspec", "vnet/mininet", "vnet/graph",
	"embed", "embed/calendar", "embed/flow", "embed/graph", "embed/rate",
	"openflow/inband",
	"fabric", "embed/replay", "embed/verify", "vnet/topology",
	"plan", "report", "report/metrics", "lease", "lease/policy", "lease/rollout", "fabric/spread", "internal/splitmix", "internal/heap",
	"vxswitch", "vxswitch/sched", "vxswitch/lookup", "vxswitch/split", "vxswitch/impair", "vxswitch/sim",
	"vxswitch/scenario", "vxswitch/figure", "measure", "openflow/of10", "openflow/of13", "openflow/pipeline", "openflow/text",
	"agent/control", "agent/control/cores", "agent/control/sim",
}

// Banned packages in pure rooms.
var Banned = []string{"os", "net", "net/http", "os/exec", "syscall", "math/rand", "math/rand/v2", "golang.org/x/sys/unix", "github.com/vishvananda/netlink"}

// Seeded rooms may make generators of math/rand/v2 from a seed they are given,
// by these names and no others: what they draw is a function of that seed.
var Seeded = []string{"fabric/spread", "vxswitch/sim"}

// SeededNames of math/rand/v2.
var SeededNames = []string{"Rand", "New", "PCG", "NewPCG"}

// Order is the folders at the top from the bottom to the top: what is in a
// folder imports from its own and from those before it. So there is no circle.
var Order = []string{
	"internal", "vnet", "fabric", "vxswitch", "openflow", "embed", "plan", "report", "datapath",
	"measure", "trust", "lease", "server", "agent", "web", "lab", "tools", "bench", "cmd", "test",
}
