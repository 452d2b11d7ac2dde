package probe

import (
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// probeEnv makes this test binary a probe; sessions start it inside a node.
const probeEnv = "SUBLET_TEST_PROBE"

func TestMain(m *testing.M) {
	if os.Getenv(probeEnv) != "" {
		os.Exit(Main(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// lab is a few nodes in namespaces, and one more namespace ("fabric") through
// which every wire runs and where it is shaped: like a host of Sublet's, but
// built without any of its code.
type lab struct {
	t      testing.TB
	fabric netns.NsHandle
	nodes  map[string]netns.NsHandle
	wires  int
	group  string // of the probes' processes; empty: the test's own

	mu     sync.Mutex
	probes map[string]*exec.Cmd
}

func newLab(t testing.TB, nodes ...string) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	l := &lab{t: t, nodes: map[string]netns.NsHandle{}, probes: map[string]*exec.Cmd{}}
	l.fabric = newNamespace(t)
	for _, node := range nodes {
		l.nodes[node] = newNamespace(t)
	}
	return l
}

// newNamespace makes an unnamed namespace that goes with its last handle.
func newNamespace(t testing.TB) netns.NsHandle {
	t.Helper()
	var ns netns.NsHandle
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if ns, err = netns.New(); err != nil {
			return
		}
		var handle *netlink.Handle
		if handle, err = netlink.NewHandle(); err != nil {
			return
		}
		defer handle.Close()
		var lo netlink.Link
		if lo, err = handle.LinkByName("lo"); err == nil {
			err = handle.LinkSetUp(lo)
		}
	}()
	<-done
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	return ns
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wire is one direction's shaping.
type wire struct {
	rate  vnet.Rate // 0: as fast as it goes
	queue uint32    // bytes; 0: 50 ms, at least 150 KiB
}

// end is a node's end of a wire.
type end struct {
	node, dev string
	addr      netip.Addr
}

// connect joins two nodes: forth shapes a to b, back shapes b to a.
func (l *lab) connect(a, b end, forth, back wire) {
	l.t.Helper()
	names := [2]string{"l" + string(rune('0'+l.wires)) + "a", "l" + string(rune('0'+l.wires)) + "b"}
	l.wires++
	left, right := l.port(names[0], a, b.addr), l.port(names[1], b, a.addr)
	l.redirect(left, right)
	l.redirect(right, left)
	l.shape(right, forth)
	l.shape(left, back)
}

// port makes a veth pair: ours in the fabric, the node's with its address.
func (l *lab) port(name string, e end, peer netip.Addr) netlink.Link {
	l.t.Helper()
	fabric, err := netlink.NewHandleAt(l.fabric)
	must(l.t, err)
	defer fabric.Close()
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 1500}, PeerName: e.dev,
		PeerNamespace: netlink.NsFd(l.nodes[e.node]), PeerMTU: 1500,
	}
	must(l.t, fabric.LinkAdd(veth))
	must(l.t, fabric.LinkSetUp(veth))
	node, err := netlink.NewHandleAt(l.nodes[e.node])
	must(l.t, err)
	defer node.Close()
	dev, err := node.LinkByName(e.dev)
	must(l.t, err)
	local := netlink.NewIPNet(e.addr.AsSlice())
	remote := netlink.NewIPNet(peer.AsSlice())
	must(l.t, node.AddrAdd(dev, &netlink.Addr{IPNet: local, Peer: remote}))
	must(l.t, node.LinkSetUp(dev))
	link, err := fabric.LinkByName(name)
	must(l.t, err)
	return link
}

// redirect sends all that enters by from out by to.
func (l *lab) redirect(from, to netlink.Link) {
	l.t.Helper()
	fabric, err := netlink.NewHandleAt(l.fabric)
	must(l.t, err)
	defer fabric.Close()
	index := from.Attrs().Index
	must(l.t, fabric.QdiscAdd(&netlink.Ingress{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS,
	}}))
	must(l.t, fabric.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.MakeHandle(0xffff, 0), Priority: 1, Protocol: unix.ETH_P_ALL},
		Actions:     []netlink.Action{netlink.NewMirredAction(to.Attrs().Index)},
	}))
}

// shape puts a TBF on a device, with 4 ms of burst, at least two frames.
func (l *lab) shape(link netlink.Link, w wire) {
	l.t.Helper()
	if w.rate == 0 {
		return
	}
	fabric, err := netlink.NewHandleAt(l.fabric)
	must(l.t, err)
	defer fabric.Close()
	bytes, burst := w.rate.BytesPerSecond(), max(uint32(w.rate.BytesPerSecond()/250), 3028)
	limit := max(uint32(bytes/20), 150<<10) + burst
	if w.queue != 0 {
		burst, limit = 3028, w.queue
	}
	must(l.t, fabric.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bytes, Buffer: uint32(netlink.Xmittime(bytes, burst)), Limit: limit,
	}))
}

// cut takes a node's end of a wire down.
func (l *lab) cut(e end) {
	l.t.Helper()
	node, err := netlink.NewHandleAt(l.nodes[e.node])
	must(l.t, err)
	defer node.Close()
	dev, err := node.LinkByName(e.dev)
	must(l.t, err)
	must(l.t, node.LinkSetDown(dev))
}

// target is one direction of a connection that connect made.
func target(name string, a, b end, min, max, alloc vnet.Rate) Target {
	return Target{
		Link: name, From: a.node, To: b.node, FromIf: a.dev, ToIf: b.dev, FromAddr: a.addr, ToAddr: b.addr,
		MTU: 1500, Min: min, Max: max, Alloc: alloc,
	}
}

// static are both directions of a link with a static reservation.
func static(name string, a, b end, rate vnet.Rate) []Target {
	return []Target{target(name, a, b, rate, rate, rate), target(name, b, a, rate, rate, rate)}
}

// in runs a function in a node's network namespace.
func (l *lab) in(node string, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(l.nodes[node]); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}
