package test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sublet/internal/stall"
)

// flow is a stream of numbered packets from one node to another. Its sockets
// are the test's own, so nothing but the network can stop it.
type flow struct {
	t        *testing.T
	name     string
	from, to net.Conn

	source, target node

	every time.Duration // between packets

	sent     atomic.Int64
	received atomic.Int64
	seen     sync.Map // number -> true
	stopping chan struct{}
	done     sync.WaitGroup
}

// flowEvery is the time between packets: what is lost for longer is seen.
const flowEvery = 5 * time.Millisecond

// flow starts a stream and waits until it flows.
func (s *supervisor) flow(from, to node) *flow { return s.flowOf(from, to, flowEvery) }

// flowOf is a stream with a time between packets.
func (s *supervisor) flowOf(from, to node, every time.Duration) *flow {
	s.t.Helper()
	f := &flow{every: every, t: s.t, source: from, target: to, name: fmt.Sprintf("%s/%s to %s", from.id.Network, from.name, to.name), stopping: make(chan struct{})}
	address := netip.MustParseAddr(s.addressOf(to.host, to.id, to.name))
	err := inNamespace(s.namespaceOf(to), func() (err error) {
		f.to, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
		return err
	})
	if err == nil {
		err = inNamespace(s.namespaceOf(from), func() (err error) {
			f.from, err = net.DialUDP("udp", nil, f.to.LocalAddr().(*net.UDPAddr))
			return err
		})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { f.from.Close(); f.to.Close() })
	f.done.Add(1)
	go f.receive()
	eventually(s.t, 5*time.Second, func() error {
		f.send(0)
		if f.received.Load() == 0 {
			return errors.New(f.name + " does not flow")
		}
		return nil
	})
	f.done.Add(1)
	go f.run()
	return f
}

func (f *flow) send(number int64) {
	_, _ = f.from.Write(binary.BigEndian.AppendUint64(nil, uint64(number))) // an error is a packet lost
}

func (f *flow) run() {
	defer f.done.Done()
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for {
		select {
		case <-f.stopping:
			return
		case <-tick.C:
			f.send(f.sent.Add(1))
		}
	}
}

func (f *flow) receive() {
	defer f.done.Done()
	buffer := make([]byte, 64)
	for {
		n, err := f.to.Read(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n != 8 {
			continue
		}
		f.received.Add(1)
		if number := int64(binary.BigEndian.Uint64(buffer)); number > 0 {
			f.seen.Store(number, true)
		}
	}
}

// onTheWay is how long a packet may be.
const onTheWay = 200 * time.Millisecond

// lost lists the numbers that did not arrive of all sent until a moment ago.
func (f *flow) lost() []int64 {
	sent := f.sent.Load()
	for range 20 { // on a busy machine some are longer on their way
		watch := stall.Start()
		time.Sleep(onTheWay)
		busy := watch.Stop().Part() > 0.05
		if lost := f.missing(sent); len(lost) == 0 || !busy {
			return lost
		}
	}
	return f.missing(sent)
}

// missing lists the numbers up to one that have not arrived.
func (f *flow) missing(sent int64) []int64 {
	var lost []int64
	for number := int64(1); number <= sent; number++ {
		if _, ok := f.seen.Load(number); !ok {
			lost = append(lost, number)
		}
	}
	return lost
}

// end stops the stream and says how many packets it sent and lost.
func (f *flow) end() (sent, lost int) {
	close(f.stopping)
	lost = len(f.lost())
	f.from.Close()
	f.to.Close()
	f.done.Wait()
	return int(f.sent.Load()), lost
}

// endLossless stops streams that must not have lost a packet.
func endLossless(flows ...*flow) {
	for _, f := range flows {
		f.t.Helper()
		if sent, lost := f.end(); lost > 0 || sent == 0 {
			f.t.Errorf("%s lost %d of %d packets", f.name, lost, sent)
		} else {
			f.t.Logf("%s lost 0 of %d packets", f.name, sent)
		}
	}
}
