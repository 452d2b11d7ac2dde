package file

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"sublet/vnet"
)

// Words of other programs' files, and what to do instead.
const (
	useImage  = "state image of a node, such as image: web.tar"
	useImpair = "state it in impair of a link, such as impair: {delay: 20ms, loss: 1%}"
	useRates  = "state min, max or rate of a link, such as rate: 100Mbit"
	useRun    = "state run of a node, such as run: [[python3, app.py]]"
	useFiles  = "state files of a node, such as files: [{path: /etc/app.conf, from: app.conf}]"
	useMemory = "state memory, such as memory: 512MiB"
)

var foreignWords = map[string]string{
	"images": useImage,
	"loss":   useImpair, "jitter": useImpair, "corrupt": useImpair, "packet_loss": useImpair,
	"delay":     useImpair + "; latency is a bound that the path must keep",
	"bandwidth": useRates, "bw": useRates, "speed": useRates,
	"endpoints": "state the two ends of a link as ends: [a, b]",
	"duration":  "state for, such as for: 2h, in window",
	"protocol":  "routers have protocol (list the node under routers), and matches proto",
	"command":   useRun, "cmd": useRun, "exec": useRun,
	"binds": useFiles, "volumes": useFiles, "mounts": useFiles,
	"ports":        "ports are those of the links that end here; what the outside reaches is published: internet: {rate: 50Mbit, publish: [\"8080:web:80\"]}",
	"memory_limit": useMemory, "mem": useMemory, "ram": useMemory,
}

// foreign says what to do instead of an unknown word that other programs know,
// or one near to it; "" if nothing is known of it.
func foreign(word string) string {
	if instead, ok := foreignWords[word]; ok {
		return instead
	}
	long := slices.DeleteFunc(slices.Sorted(maps.Keys(foreignWords)), func(w string) bool { return len(w) < 8 })
	return foreignWords[vnet.Nearest(word, long)]
}

// otherKind says what a document is, if it is not the wanted kind but one
// that is known; "" otherwise.
func otherKind(root *yaml.Node, wanted string) string {
	switch {
	case IsContainerlab(root):
		return "this is a topology of containerlab, not a request: make one of it with sublet import FILE -w request.yaml"
	case wanted == "substrate" && child(root, "network") != nil && child(root, "hosts") == nil:
		return "this is a request, not a substrate: give the file that states hosts"
	case wanted == "request" && child(root, "hosts") != nil && child(root, "network") == nil:
		return "this is a substrate, not a request: give the file that states network"
	}
	return ""
}

// IsContainerlab knows a topology of containerlab by its outermost fields.
func IsContainerlab(root *yaml.Node) bool {
	topology := child(root, "topology")
	return topology != nil && child(root, "name") != nil && (child(topology, "nodes") != nil || child(topology, "links") != nil)
}
