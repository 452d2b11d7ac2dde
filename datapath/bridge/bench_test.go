package bridge

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

var lan = vnet.LeaseID{Tenant: "alice", Network: "lan"}

// bench is a host with one switch s, whose ports lead to namespaces n0, n1, ...
type bench struct {
	*testing.T
	host  *kernel.Host
	part  *Part
	plan  plan.Switch
	ports []plan.SwitchPort
}

const free = 1_000_000 // a limit that nobody reaches

// newBench makes the switch and count ports; station i has 10.0.0.(i+1).
func newBench(t *testing.T, count int) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces")
	}
	run, err := os.MkdirTemp("/tmp", "vswitch")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, plan: plan.Switch{Lease: lan, Switch: "s", Type: vnet.SwitchKernel, Ageing: 5 * time.Minute}}
	b.host, err = kernel.NewHost(kernel.Config{Host: filepath.Base(run), Run: run})
	b.check(err)
	b.part = New(b.host)
	t.Cleanup(func() {
		b.check(b.part.deleteSwitch(b.plan.Key()))
		for i := range count {
			b.check(kernel.Unbind(b.node(i)))
		}
		b.part.Close()
		b.host.Close()
		b.check(os.RemoveAll(run))
	})
	for i := range count {
		b.plan.Stations = append(b.plan.Stations, plan.Station{Address: station(i), Hardware: mac(i), Interface: device(i)})
		b.ports = append(b.ports, plan.SwitchPort{Lease: lan, Switch: "s", Type: vnet.SwitchKernel, Interface: device(i), LearningPort: plan.LearningPort{MACs: 2, Broadcast: free, Unknown: free}})
	}
	b.do(plan.Add, b.plan)
	for i := range count {
		b.join(i)
		b.do(plan.Add, b.ports[i])
	}
	return b
}

func station(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

func mac(i int) plan.Hardware { return plan.Hardware{2, 0, 0, 0, 0, byte(i + 1)} }

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) do(op plan.Op, item plan.Item) {
	b.Helper()
	b.check(b.part.Do(context.Background(), plan.Step{Op: op, Item: item}))
}

// node is the file of station i's namespace.
func (b *bench) node(i int) string { return b.host.Path(fmt.Sprintf("n%d", i)) }

// join makes station i's namespace and its link, as datapath/vxlink would.
func (b *bench) join(i int) {
	b.Helper()
	ns, err := kernel.NewNamespace(func() error { return nil })
	b.check(err)
	b.check(kernel.Bind(ns, b.node(i)))
	ns.Close()
	b.run(b.node(i), "ip", "link", "add", "eth0", "address", mac(i).String(), "type", "veth", "peer", "name", device(i), "netns", b.host.Path(b.plan.Key()))
	b.run(b.node(i), "ip", "addr", "add", station(i).String()+"/24", "dev", "eth0")
	b.run(b.node(i), "ip", "link", "set", "eth0", "up")
	b.run(b.host.Path(b.plan.Key()), "ip", "link", "set", device(i), "up")
}

func (b *bench) run(ns string, argv ...string) {
	b.Helper()
	out, err := exec.Command("nsenter", append([]string{"--net=" + ns}, argv...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("%v: %v %s", argv, err, out)
	}
}

// pings says whether station i reaches an address.
func (b *bench) pings(i int, to netip.Addr) bool {
	return exec.Command("nsenter", "--net="+b.node(i), "ping", "-c1", "-W1", to.String()).Run() == nil
}

// reaches is pings with the patience that a busy machine takes.
func (b *bench) reaches(i int, to netip.Addr) bool {
	for range 10 {
		if b.pings(i, to) {
			return true
		}
	}
	return false
}

func (b *bench) has(items ...plan.Item) {
	b.Helper()
	var have, want plan.Host
	b.check(b.part.Observe(context.Background(), &have))
	for _, item := range items {
		want.Add(item)
	}
	if !reflect.DeepEqual(have, want) {
		b.Fatalf("observed\n%s\nwant\n%s", have, want)
	}
}

func (b *bench) tables() *tables {
	b.Helper()
	t, err := b.part.tables(b.plan.Key())
	b.check(err)
	return t
}

// counts are those of a port, over all processors.
func (b *bench) counts(port int) report.Forwarding {
	b.Helper()
	samples, err := b.part.Samples(b.Context(), report.Scope{})
	b.check(err)
	for _, p := range report.Forwardings(samples) {
		if p.Of == b.plan.Key()+"/"+device(port) {
			return p
		}
	}
	return report.Forwarding{}
}

// indexOffset is that of __sk_buff.ifindex.
const indexOffset = 40

// take gives the program a frame as if it had come in by a port, in the
// namespace of the calling thread.
func take(program *ebpf.Program, index int, frame []byte) (verdict uint32, out []byte, err error) {
	context := make([]byte, 64)
	binary.NativeEndian.PutUint32(context[indexOffset:], uint32(index))
	out = make([]byte, len(frame)+256)
	options := ebpf.RunOptions{Data: frame, DataOut: out, Context: context}
	verdict, err = program.Run(&options)
	return verdict, options.DataOut, err
}
