package test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/vnet"
)

const (
	unreadEntries     = 2000
	unreadConnections = 8
)

// unreadSwitch has a controller that does not read.
//
//	h1:  a -1M- s1 -control- ctl
const unreadSwitch = `network: net
nodes:
  - {name: a, host: h1}
  - {name: ctl, host: h1}
switches:
  - {name: s1, host: h1, kind: openflow, controller: ["ptcp:6653"], entries: 2000, datapath: DATAPATH}
links:
  - {ends: [a, s1], rate: 1Mbit}
  - {name: c, ends: [s1, ctl], control: true}
`

// fillSwitch puts so many entries into the switch at an address.
func fillSwitch(address string, entries int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	c, err := channel.NewClient(conn)
	if err != nil {
		return err
	}
	var all []byte
	for i := range entries {
		all, _ = of13.Append(all, 1, &of13.FlowMod{
			Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.Metadata, uint64(i))}}, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		})
	}
	if _, err := conn.Write(all); err != nil {
		return err
	}
	_, err = c.Ask(&of13.Plain{Kind: of13.TypeBarrierRequest})
	return err
}

// fillInside fills the tables of a switch, and stays.
func fillInside(args []string) error {
	entries, err := strconv.Atoi(args[1])
	if err == nil {
		err = fillSwitch(args[0], entries)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "filled")
	select {}
}

// unreadInside fills the tables of a switch and asks for them, again and again, on
// several connections of which it reads nothing.
func unreadInside(args []string) error {
	if err := fillSwitch(args[0], unreadEntries); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "filled")
	hello, _ := of13.Append(nil, 1, &of13.Hello{Bitmap: 1 << of13.Version})
	ask, _ := of13.Append(nil, 1, &of13.MultipartRequest{
		Kind: of13.MultipartFlow, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny},
	})
	ask = bytes.Repeat(ask, 100)
	for range unreadConnections {
		go func() {
			for ; ; time.Sleep(100 * time.Millisecond) {
				conn, err := net.Dial("tcp", args[0])
				if err != nil {
					continue
				}
				for _, err = conn.Write(hello); err == nil; _, err = conn.Write(ask) {
				}
				conn.Close()
			}
		}()
	}
	select {}
}

// A controller that asks for statistics on many connections and reads none loses them, is
// told so by an event, and ends its switch no more: that answers and keeps its entries.
func TestControllersThatDoNotRead(t *testing.T) {
	t.Parallel()
	for _, datapath := range []string{vnet.DatapathProcess, vnet.DatapathKernel} {
		t.Run(datapath, func(t *testing.T) {
			l := newLab(t, "demo")
			x := l.tenants(alice)[0]
			x.up(strings.ReplaceAll(unreadSwitch, "DATAPATH", datapath))
			pid := l.openFlowProcess("h1")
			x.background("filled", "net/ctl", "unread", "s1.control:6653")
			eventually(t, 60*time.Second, func() error {
				if r := x.sublet("events", "net"); !strings.Contains(r.out, "did not read what it had asked for") {
					return fmt.Errorf("no event of it: %s%s", r.out, r.err)
				}
				return nil
			})
			eventually(t, 30*time.Second, func() error {
				if r := x.sublet("flows", "net/s1"); strings.Count(r.out, "\n") < unreadEntries {
					return fmt.Errorf("%d lines of entries: %s", strings.Count(r.out, "\n"), r.err)
				}
				return nil
			})
			if now := l.openFlowProcess("h1"); now != pid || pid == 0 {
				t.Errorf("process %d in place of %d", now, pid)
			}
			x.must("down", "net")
		})
	}
}

// A hundred thousand entries are listed, in order, and the agent of their host does not
// hold them meanwhile.
func TestManyEntriesAreListed(t *testing.T) {
	t.Parallel()
	const entries, held = 100_000, 64 << 10 // KiB
	s := newSupervisor(t, "demo")
	x := s.tenants(alice)[0]
	x.up(strings.NewReplacer("DATAPATH", "process", "entries: 2000", fmt.Sprintf("entries: %d", entries)).Replace(unreadSwitch))
	x.background("filled", "net/ctl", "fill", "s1.control:6653", strconv.Itoa(entries))
	agent := s.get(agentOf("h1")).pid
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", agent), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before := peak(t, agent)
	r := x.sublet("flows", "net/s1")
	if n := strings.Count(r.out, "\n"); r.code != 0 || n != entries {
		t.Fatalf("%d lines, exit code %d: %s", n, r.code, r.err)
	}
	if more := peak(t, agent) - before; more > held {
		t.Errorf("the agent took %d KiB more than %d KiB meanwhile", more, before)
	}
	x.must("down", "net")
}

// peak is the most that a process has had in memory, in KiB.
func peak(t *testing.T, pid int) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}
