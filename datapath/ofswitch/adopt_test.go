package ofswitch

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// keeper is the directory of a switch that is a process of its own; its datapath is
// in keeperDatapath.
const (
	keeper         = "OFSWITCH_TEST_KEEPER"
	keeperDatapath = "OFSWITCH_TEST_DATAPATH"
)

// keptSwitch is such a switch, seen by its parent.
type keptSwitch struct {
	t   *testing.T
	dir string
	env []string
	cmd *exec.Cmd
	net.Conn
	*channel.Client
}

// start starts it, and waits until it answers.
func (k *keptSwitch) start() {
	k.t.Helper()
	k.cmd = exec.Command(os.Args[0], "-test.run=^TestKillLosesNothing$")
	k.cmd.Env, k.cmd.Dir, k.cmd.Stderr, k.cmd.Stdout = k.env, k.dir, os.Stderr, os.Stderr
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		var err error
		if k.Conn, err = net.Dial("unix", filepath.Join(k.dir, "socket")); err != nil {
			continue
		}
		_ = k.SetDeadline(time.Now().Add(40 * time.Second))
		if k.Client, err = channel.NewClient(k.Conn); err == nil {
			return
		}
	}
	k.t.Fatal("the switch does not answer")
}

func (k *keptSwitch) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
	k.Conn.Close()
	_ = os.Remove(filepath.Join(k.dir, "socket"))
}

// told does what has no reply, and is done when it returns.
func (k *keptSwitch) told(m of13.Message) {
	k.t.Helper()
	b, err := of13.Append(nil, 1<<20, m)
	if err != nil {
		k.t.Fatal(err)
	}
	if _, err := k.Write(b); err != nil {
		k.t.Fatal(err)
	}
	k.ask(&of13.Plain{Kind: of13.TypeBarrierRequest})
}

func (k *keptSwitch) ask(m of13.Message) []of13.Message {
	k.t.Helper()
	parts, err := k.Ask(m)
	if err != nil {
		k.t.Fatal(err)
	}
	return parts
}

func (k *keptSwitch) flows() []of13.FlowStats {
	k.t.Helper()
	any := of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}
	return k.ask(&of13.MultipartRequest{Kind: of13.MultipartFlow, Flow: any})[0].(*of13.MultipartReply).Flows
}

func keptConfig(datapath string) Config {
	return Config{
		Pipeline: pipeline.Config{DatapathID: 5, Tables: 3, Entries: 10, Groups: 4, Meters: 4}, Ports: []string{"p1", "p2", "p3"},
		Kernel: datapath == "kernel", Keep: true, Management: "socket", Log: func(err error) { println(err.Error()) },
	}
}

// A switch that is killed and started again has its entries, groups and counters; in
// the kernel frames of flows go on meanwhile, and all are counted.
func TestKillLosesNothing(t *testing.T) {
	if os.Getenv(keeper) != "" {
		beKept(t)
		return
	}
	onBoth(t, killLosesNothing)
}

func beKept(t *testing.T) {
	s, err := New(keptConfig(os.Getenv(keeperDatapath)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Confine(); err != nil && !errors.Is(err, syscall.ENOTSUP) { // with cgo
		t.Fatal(err)
	}
	t.Fatal(s.Run(t.Context()))
}

func killLosesNothing(t *testing.T, inKernel bool) {
	far := wires(t)
	k := &keptSwitch{t: t, dir: t.TempDir(), env: append(os.Environ(), keeper+"=1", keeperDatapath+"=process")}
	if inKernel {
		k.env = append(k.env, keeperDatapath+"=kernel")
	}
	k.start()
	bucket := of13.Bucket{WatchPort: of13.PortAny, WatchGroup: of13.GroupAny, Actions: []of13.Action{of13.Output(2)}}
	k.told(&of13.GroupMod{Kind: of13.GroupTypeIndirect, Group: 7, Buckets: []of13.Bucket{bucket}})
	k.told(&of13.MeterMod{Flags: of13.MeterPKTPS, Meter: 3, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: 1000}}})
	k.told(&of13.FlowMod{
		Priority: 9, Cookie: 77, Hard: 1000, Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.InPort, 1)}}, Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
		Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{{Type: of13.ActionSetField, Field: of13.Exact(of13.EthDst, 0x020000000099)}, {Type: of13.ActionGroup, Number: 7}}}},
	})
	k.told(output(3, of13.Exact(of13.InPort, 2)))
	var sent, seen atomic.Int64
	ctx, end := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sending.Go(func() { stream(ctx, far, &sent, &seen) })
	k.through(&seen, 100)
	for range 2 {
		k.kill()
		if inKernel { // nobody is there, and frames go on
			k.through(&seen, seen.Load()+200)
		}
		k.start()
		k.through(&seen, seen.Load()+100)
		if n, err := k.CacheCounters(); inKernel && (err != nil || n.Packets < 100 || n.Flows != 1 || n.Upcalls["first"] != 0) {
			t.Errorf("flows were not taken over: %+v, %v", n, err)
		} else if !inKernel && err == nil {
			t.Errorf("there is no cache, and it counts %+v", n)
		}
	}
	end()
	sending.Wait()
	if inKernel && sent.Load() != seen.Load() {
		t.Errorf("of %d frames %d came", sent.Load(), seen.Load())
	}
	list := k.flows()
	if len(list) != 2 || list[0].Cookie != 77 || list[0].Hard != 1000 || inKernel && list[0].Packets != uint64(sent.Load()) {
		t.Errorf("of %d frames: %+v", sent.Load(), list)
	}
	if list[0].Life.Seconds == 0 && list[0].Life.Nanos < 400e6 && inKernel {
		t.Errorf("it is %+v old", list[0].Life)
	}
	ports := k.ask(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: 2})[0].(*of13.MultipartReply).Ports
	if ports[0].TxPackets != list[0].Packets {
		t.Errorf("%d frames left, of %d", ports[0].TxPackets, list[0].Packets)
	}
	meters := k.ask(&of13.MultipartRequest{Kind: of13.MultipartMeterConfig, Number: of13.MeterAll})[0].(*of13.MultipartReply).MeterConfigs
	if len(meters) != 1 || meters[0].Bands[0].Rate != 1000 {
		t.Errorf("meters: %+v", meters)
	}
	k.told(&of13.GroupMod{Command: of13.CommandDelete, Group: 7}) // with it goes its entry, and the flow
	far[0].write(numbered(0), nil)
	if got := arrives(far[1], 100*time.Millisecond); got != nil || len(k.flows()) != 1 {
		t.Errorf("%x came by what was deleted", got)
	}
	k.kill()
}

// numbered is a frame with a number.
func numbered(n int64) []byte {
	f := frameOf(0x88, 0xb5)
	binary.BigEndian.PutUint64(f[14:], uint64(n))
	return f
}

// stream sends frames by q1 until it is ended, and counts those that come to q2.
func stream(ctx context.Context, far []*device, sent, seen *atomic.Int64) {
	for ctx.Err() == nil {
		far[0].write(numbered(sent.Add(1)), nil)
		time.Sleep(500 * time.Microsecond)
		drain(far[1], seen)
	}
	for end := time.Now().Add(time.Second); sent.Load() != seen.Load() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		drain(far[1], seen)
	}
}

func drain(d *device, seen *atomic.Int64) {
	for r := (received{}); d.read(&r); {
		seen.Add(1)
	}
}

// through waits until so many frames have come.
func (k *keptSwitch) through(seen *atomic.Int64, want int64) {
	k.t.Helper()
	for end := time.Now().Add(20 * time.Second); seen.Load() < want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			k.t.Fatalf("%d frames have come instead of %d", seen.Load(), want)
		}
	}
}
