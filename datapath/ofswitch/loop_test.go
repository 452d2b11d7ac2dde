package ofswitch

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"sublet/datapath/kernel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

// A frame that two switches send to and fro goes by devices now and then, where it
// waits behind others: the kernel would do nothing else for as long as it goes on.
func TestFramesThatGoRoundWait(t *testing.T) {
	if !within(t) {
		return
	}
	far := wires(t)
	ns, err := kernel.NewNamespace(func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	ip(t, "link", "set", "q1", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.Fd()))
	sendsBack(t, ns)
	carries(t, "p1")
	c := running(t, true)
	back := output(of13.PortInPort, of13.Exact(of13.InPort, 1), of13.Exact(of13.EthType, 0x800))
	back.Instructions[0].Actions = append([]of13.Action{{Type: of13.ActionDecNWTTL}}, back.Instructions[0].Actions...)
	c.send(output(1, of13.Exact(of13.InPort, 2)), back, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply)
	const rounds = 200
	for range 2 { // the first one brings the flows
		far[1].write(ipv4(rounds), nil)
		time.Sleep(500 * time.Millisecond)
	}
	before := sent(t, "p1") + sentIn(t, ns, "q1")
	far[1].write(ipv4(rounds), nil)
	time.Sleep(500 * time.Millisecond)
	if n := sent(t, "p1") + sentIn(t, ns, "q1") - before; n < 2*rounds/straight-1 || n > rounds/2 {
		t.Errorf("of %d steps %d went by devices", 2*rounds, n)
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartAggregate, Flow: of13.FlowRequest{Table: of13.TableAll, OutPort: of13.PortAny, OutGroup: of13.GroupAny}})
	if m := c.want(of13.TypeMultipartReply).(*of13.MultipartReply); m.Aggregate.Packets < 3*rounds {
		t.Errorf("%d packets were counted of %d", m.Aggregate.Packets, 3*rounds)
	}
}

// straight is how many steps a frame goes at most before one by a device.
const straight = 16

// sendsBack runs a switch in a namespace that sends every frame back.
func sendsBack(t *testing.T, ns *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	begun, ran := make(chan error), make(chan error)
	go func() {
		ran <- kernel.In(ns, func() error {
			ip(t, "link", "set", "q1", "up")
			s, err := New(Config{Pipeline: pipeline.Config{DatapathID: 2, Tables: 1, Entries: 1}, Ports: []string{"q1"}, Kernel: true, Log: func(err error) { t.Log(err) }})
			if err == nil {
				defer s.Close()
				_, err = s.tables.Do(0, output(of13.PortInPort))
			}
			begun <- err
			if err != nil {
				return nil
			}
			return s.Run(ctx)
		})
	}()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
}

// ipv4 is a frame with a time to live.
func ipv4(ttl byte) []byte {
	b := frameOf(8, 0, 0x45, 0, 0, 66, 0, 0, 0, 0, ttl, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	var sum uint32
	for i := 14; i < 34; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[24:], ^uint16(sum+sum>>16))
	return b
}

// sentIn is sent in a namespace.
func sentIn(t *testing.T, ns *os.File, device string) (n uint64) {
	t.Helper()
	if err := kernel.In(ns, func() error {
		n = sent(t, device)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// sent is how many frames have left by a device.
func sent(t *testing.T, device string) uint64 {
	t.Helper()
	text, err := os.ReadFile("/proc/thread-self/net/dev")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), device+":")
	n, err := strconv.ParseUint(strings.Fields(rest)[9], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
