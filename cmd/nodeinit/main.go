// Nodeinit is the part of Sublet that runs in nodes, as a program of its own: it
// starts in a third of the time of the whole (docs/research/measurements.md). `make` puts it
// into bin/sublet, whose agents start it from memory.
package main

import (
	"fmt"
	"os"

	"sublet/datapath/vnode"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != vnode.InitCommand {
		fmt.Fprintln(os.Stderr, "nodeinit is started by sublet agent")
		os.Exit(1)
	}
	os.Exit(vnode.Main(os.Args[2:]))
}
