package reach

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/internal/stall"
	"sublet/plan"
	"sublet/vnet"
)

var demo = vnet.LeaseID{Tenant: "alice", Network: "demo"}

// wire is a host with the nodes a and b of one lease on one wire.
type wire struct {
	*testing.T
	host *kernel.Host
	part *Part
	news chan struct{}
}

func newWire(t *testing.T) *wire {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run, err := os.MkdirTemp("/tmp", "reach")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{T: t, news: make(chan struct{}, 1)}
	w.host, err = kernel.NewHost(kernel.Config{Host: filepath.Base(run), Run: run})
	if err != nil {
		t.Fatal(err)
	}
	w.part = New(w.host)
	w.part.Changed = func() {
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
	t.Cleanup(func() {
		w.part.Close()
		for _, node := range []string{"a", "b"} {
			if err := kernel.Unbind(w.path(node)); err != nil {
				t.Error(err)
			}
		}
		w.host.Group("x").RemoveParents()
		if err := errors.Join(w.host.Close(), os.RemoveAll(run)); err != nil {
			t.Error(err)
		}
	})
	for i, node := range []string{"a", "b"} {
		ns, err := kernel.NewNamespace(func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := kernel.Bind(ns, w.path(node)); err != nil {
			t.Fatal(err)
		}
		ns.Close()
		if i == 1 {
			w.in("a", "ip link add eth0 type veth peer name eth0 netns /proc/self/fd/3", "b")
		}
	}
	for i, node := range []string{"a", "b"} {
		w.in(node, fmt.Sprintf("ip link set lo up; ip link set eth0 up; ip addr add 10.0.0.%d/24 dev eth0", i+1))
	}
	return w
}

func (w *wire) path(node string) string { return w.host.Path(plan.Namespace(demo, node)) }

// in runs commands in a node; open are nodes whose namespaces are files 3 and up.
func (w *wire) in(node, script string, open ...string) {
	w.Helper()
	cmd := exec.Command("nsenter", "--net="+w.path(node), "--", "sh", "-ec", script)
	for _, other := range open {
		f, err := os.Open(w.path(other))
		if err != nil {
			w.Fatal(err)
		}
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("%s in %s: %v\n%s", script, node, err, out)
	}
}

// both is the item of the lease: a and b must reach each other.
func both() plan.Reach {
	address := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }
	return plan.Reach{
		Lease: demo, Nodes: []plan.Name{{Name: "a", Address: address(1)}, {Name: "b", Address: address(2)}},
		Pairs: []plan.ReachFrom{{From: 0, To: []int{1}}, {From: 1, To: []int{0}}},
	}
}

func (w *wire) do(op plan.Op) {
	w.Helper()
	if err := w.part.Do(w.Context(), plan.Step{Op: op, Item: both()}); err != nil {
		w.Fatal(err)
	}
}

func (w *wire) problems() string {
	var texts []string
	for _, e := range w.part.Problems() {
		if e.Lease != demo || (e.Op == plan.Await) != (e.Text == unknown) || e.Op != plan.Await && e.Op != plan.Carry || e.OfHost() {
			w.Errorf("%+v", e)
		}
		texts = append(texts, e.Text)
	}
	return strings.Join(texts, "; ")
}

// says waits until the problems are some, and that Changed told of them.
func (w *wire) says(want string) {
	w.Helper()
	for end := time.Now().Add(10 * time.Second); w.problems() != want; {
		if time.Now().After(end) {
			w.Fatalf("it says %q, not %q", w.problems(), want)
		}
		select {
		case <-w.news:
		case <-time.After(time.Second):
			if w.problems() != want {
				continue
			}
			select { // it may be told just now
			case <-w.news:
			case <-time.After(time.Second):
				w.Fatalf("nobody was told of %q", want)
			}
		}
	}
}

func (w *wire) audit() {
	w.Helper()
	have := plan.Host{}
	if err := w.part.Observe(w.Context(), &have); err != nil || len(plan.Of[plan.Reach](have)) != 1 || !plan.Equal(plan.Of[plan.Reach](have)[0], both()) {
		w.Fatalf("observed %+v, %v", have, err)
	}
}

func TestNodesThatReachEachOther(t *testing.T) {
	w := newWire(t)
	w.do(plan.Add)
	if w.problems() == "" { // on a busy machine the answer may be there already
		select {
		case <-w.news:
		default:
			t.Error("that they reach each other was known before it was asked")
		}
	}
	w.says("")
	w.audit()
	if got := w.problems(); got != "" {
		t.Error(got)
	}
	for _, lease := range []vnet.LeaseID{demo, {Tenant: "nobody", Network: "none"}} {
		if got := w.part.Ask(w.Context(), lease, time.Second); got != "" {
			t.Errorf("of %s: %s", lease, got)
		}
	}
	w.do(plan.Delete)
	if got := w.problems(); got != "" {
		t.Errorf("of a lease that is gone: %s", got)
	}
}

// By IPv6 nodes are asked for themselves, and what is missing is told apart; no
// neighbour of it is left.
func TestNodesThatReachEachOtherByIPv6(t *testing.T) {
	w := newWire(t)
	for i, node := range []string{"a", "b"} {
		w.in(node, fmt.Sprintf("ip addr add 2001:db8::%d/64 dev eth0 nodad", i+1))
	}
	item := both()
	for i, name := range []string{"a", "b"} {
		item.Nodes = append(item.Nodes, plan.Name{Name: name, Address: netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i+1))})
		item.Pairs[i].To6 = []int{3 - i}
	}
	do := func() {
		if err := w.part.Do(w.Context(), plan.Step{Op: plan.Add, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	do()
	w.says("")
	w.in("b", "ip addr del 2001:db8::2/64 dev eth0")
	do()
	w.says("b does not answer a by IPv6, a does not answer b by IPv6")
	w.in("b", "ip addr add 2001:db8::2/64 dev eth0 nodad")
	w.says("")
	w.in("a", "ip route add blackhole 2001:db8::2/128")
	w.part.audit()
	if got := w.problems(); got != "a has no route to b by IPv6" {
		t.Errorf("it says %q", got)
	}
}

// What a tenant's node does not answer is said, until it does.
func TestNodesThatDoNotAnswer(t *testing.T) {
	w := newWire(t)
	w.in("b", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	w.do(plan.Add)
	w.says("b does not answer a")
	w.in("b", "echo 0 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	w.says("")
	w.in("b", "echo 1 > /proc/sys/net/ipv4/icmp_echo_ignore_all")
	w.audit() // sends nothing
	if got := w.problems(); got != "" {
		t.Errorf("asked without a reason: %s", got)
	}
	if got := w.part.Ask(w.Context(), demo, 3*time.Second); got != "b does not answer a" {
		t.Errorf("asked, it says %q", got)
	}
	w.says("b does not answer a")
}

// A neighbour that comes late is asked at once, not when the kernel would ask again.
func TestNodesThatComeLate(t *testing.T) {
	w := newWire(t)
	w.in("b", "ip link set eth0 down")
	w.do(plan.Add)
	time.Sleep(150 * time.Millisecond)
	watch := stall.Start()
	w.in("b", "ip link set eth0 up")
	w.says("")
	watch.InTime(t, 900*time.Millisecond, "finding it") // the kernel's own second is more
}

func TestAnswersOfOthers(t *testing.T) {
	e := exchange{id: 7}
	reply := append(make([]byte, 20), 0, 0, 0, 0, 0, 7, 0, 1)
	reply[0] = 0x45
	if _, ok := e.answer(reply, netip.Addr{}); !ok {
		t.Error("a reply was not taken")
	}
	for i, change := range map[int]byte{0: 0x4f, 20: 8, 25: 8} {
		wrong := append([]byte(nil), reply...)
		wrong[i] = change
		if _, ok := e.answer(wrong, netip.Addr{}); ok {
			t.Errorf("taken with byte %d as %#x", i, change)
		}
	}
	for n := range reply {
		if _, ok := e.answer(reply[:n], netip.Addr{}); ok {
			t.Errorf("%d bytes are enough", n)
		}
	}
}

func TestMessagesNameFewPairs(t *testing.T) {
	list := []pair{{0, 1}, {1, 0}, {0, 1}, {1, 0}, {0, 1}}
	if got := words(both(), list, "%[2]s does not answer %[1]s"); got != "b does not answer a, a does not answer b, b does not answer a, and 2 pairs more" {
		t.Error(got)
	}
}
