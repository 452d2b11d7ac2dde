package ofswitch

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/internal/proc"
)

// upcallPrefix begins the name of the device by which frames come to a process.
const upcallPrefix = "up"

// whose is the alias of such a device that ends with its process: the process, and when it
// began. One that is kept has none.
func whose(p proc.Process) string { return fmt.Sprintf("sublet %d %s", p.PID, p.Started) }

var aliasOfOurs = regexp.MustCompile(`^sublet ([0-9]+) ([0-9]+)$`)

// sweep removes the devices of switches in this namespace that were killed, whatever their
// datapath identifiers: nobody has a process for them, or listens behind them.
func sweep() error {
	conn, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	links, err := conn.Links()
	if err != nil {
		return err
	}
	listened, err := os.ReadFile("/proc/thread-self/net/packet")
	if err != nil {
		return err
	}
	for _, l := range links {
		if leftover(l, string(listened)) {
			if err := conn.DeleteLink(l.Index); err != nil {
				return fmt.Errorf("remove %s, which a switch that was killed has left: %w", l.Name, err)
			}
		}
	}
	return nil
}

// leftover says whether a device is a dead switch's, by the packet sockets of its namespace
// as /proc/net/packet lists them.
func leftover(l kernel.Link, listened string) bool {
	is := aliasOfOurs.FindStringSubmatch(l.Alias)
	if is == nil || l.Kind != "veth" || !strings.HasPrefix(l.Name, upcallPrefix) || l.Peer <= 0 {
		return false
	}
	p := proc.Process{Started: is[2]}
	if _, err := fmt.Sscan(is[1], &p.PID); err != nil || p.Alive() {
		return false
	}
	for line := range strings.Lines(listened) { // of a process that another /proc has
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == fmt.Sprint(l.Peer) {
			return false
		}
	}
	return true
}

// mark has a device end with a process, if that is killed, by sweep.
func mark(conn *kernel.Conn, name string, p proc.Process) error {
	l, err := conn.LinkByName(name)
	if err != nil {
		return err
	}
	return conn.Do(kernel.ChangeLink(l.Index).String(unix.IFLA_IFALIAS, whose(p)))
}

// newUpcall makes the device; keep: it outlives this process.
func newUpcall(conn *kernel.Conn, name string, keep bool) error {
	if err := conn.Do(kernel.NewLink(name, "veth", nil)); err != nil {
		return fmt.Errorf("make device %s: %w", name, err)
	}
	me, ok := proc.Living(os.Getpid())
	if !ok || keep {
		return nil
	}
	if err := mark(conn, name, me); err != nil {
		return fmt.Errorf("mark device %s: %w", name, err)
	}
	return nil
}
