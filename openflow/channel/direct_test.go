package channel

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"sublet/openflow/of13"
)

// byHand drives a hub by hand, and has a connection to it that has greeted.
func byHand(t *testing.T) (h *Hub, drive func(Datapath), peer *controller) {
	t.Helper()
	h = NewHub(func() {})
	drive = driver(t, h)
	there, here := pair(t)
	peer = &controller{t: t, Conn: there}
	peer.send(1, &of13.Hello{Bitmap: 1 << of13.Version})
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() { _ = h.serve(ctx, newConn(here, h)) })
	t.Cleanup(func() {
		cancel()
		h.Close()
		served.Wait()
	})
	until(t, drive, &datapath{}, func() bool { return h.Connected() > 0 })
	drive(&datapath{})
	peer.want(of13.TypeHello, 0)
	return h, drive, peer
}

// pair is the ends of a connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	a.SetDeadline(time.Now().Add(30 * time.Second))
	return a, b
}

// until drives until something holds.
func until(t *testing.T, drive func(Datapath), d Datapath, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); drive(d) {
		if time.Now().After(end) {
			t.Fatal("nothing more happens")
		}
	}
}

// The greeting is sent, whichever thread does it: that of the connection or the
// driver, who may be quicker.
func TestTheGreetingIsSent(t *testing.T) {
	for range 30 {
		byHand(t)
	}
}

// What was sent before a connection ended is done, also if it fills several reads,
// and the connection is forgotten then.
func TestChangesBeforeTheEndAreDone(t *testing.T) {
	h, drive, peer := byHand(t)
	var all []byte
	const number = 3000
	for range number {
		all, _ = of13.Append(all, 1, &of13.FlowMod{Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny})
	}
	go func() {
		peer.Write(all)
		peer.Close()
	}()
	d := &datapath{}
	until(t, drive, d, func() bool { return len(d.done) == number && h.Connected() == 0 && len(h.watched) == 0 })
}

// long answers with many bytes.
type long struct{ asked int }

func (d *long) Do(m of13.Message) (of13.Message, error) {
	d.asked++
	return &of13.MultipartReply{Kind: of13.MultipartPortDesc, PortDescs: make([]of13.Port, 3000)}, nil
}

func (d *long) Atomic(run func() error) error { return run() }

// Who does not read answers is not read from, and gets them all when he reads.
func TestAnswersWaitForWhoReads(t *testing.T) {
	_, drive, peer := byHand(t)
	var all []byte
	const number = 200
	for xid := range uint32(number) {
		all, _ = of13.Append(all, xid, &of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	}
	if _, err := peer.Write(all); err != nil {
		t.Fatal(err)
	}
	d := &long{}
	for range 20 {
		drive(d)
	}
	if d.asked == 0 || d.asked > number-10 {
		t.Fatalf("%d of %d questions were answered to who reads none", d.asked, number)
	}
	got := make(chan uint32)
	go func() {
		defer close(got)
		for range number {
			for more := true; more; {
				h, m := peer.read()
				if _, quiet := m.(*of13.Echo); quiet { // a slow machine is asked whether it is there
					continue
				}
				if more = m.(*of13.MultipartReply).Flags&of13.MultipartMore != 0; !more {
					got <- h.XID
				}
			}
		}
	}()
	next := uint32(0)
	until(t, drive, d, func() bool {
		select {
		case xid, open := <-got:
			if open && xid != next {
				t.Fatalf("answer %d instead of %d", xid, next)
			}
			next++
		default:
		}
		return next >= number
	})
}

// Who is silent is asked whether he is there, and given up.
func TestSilentControllersAreGivenUp(t *testing.T) {
	h, drive, peer := byHand(t)
	drive(&datapath{})
	h.Tick(time.Now().Add(idle + time.Second))
	h.Flush()
	peer.want(of13.TypeEchoRequest, 0)
	h.Tick(time.Now().Add(idle + unanswered + time.Second))
	until(t, drive, &datapath{}, func() bool { return h.Connected() == 0 })
	if _, err := peer.Read(make([]byte, 1)); err == nil {
		t.Error("the connection stands")
	}
}

// Controllers that ask and do not read hold a bounded part of the switch's memory
// together: the connection for which most waits is ended, and says so; one that reads
// gets its answers.
func TestWhoDoesNotReadIsDropped(t *testing.T) {
	h, drive, reader := byHand(t)
	h.Most = 8 << 20
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	const others = 6
	ask, _ := of13.Append(nil, 7, &of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	dropped := make(chan error, others)
	for range others {
		there, here := pair(t)
		peer := &controller{t: t, Conn: there}
		peer.send(1, &of13.Hello{Bitmap: 1 << of13.Version})
		for range 100 {
			if _, err := peer.Write(ask); err != nil {
				t.Fatal(err)
			}
		}
		go func() { dropped <- h.serve(ctx, newConn(here, h)) }()
	}
	d := &long{}
	most := int64(0)
	until(t, drive, d, func() bool {
		most = max(most, h.held.Load())
		return len(dropped) > 0
	})
	if err := <-dropped; !errors.Is(err, ErrUnread) {
		t.Errorf("it was dropped for %v", err)
	}
	if why := h.Why(Target{}); !strings.Contains(why, "did not read") {
		t.Errorf("status says %q", why)
	}
	if bound := h.Most + 1<<20; most > bound {
		t.Errorf("%d bytes waited, of %d", most, bound)
	}
	reader.send(9, &of13.MultipartRequest{Kind: of13.MultipartPortDesc})
	got := make(chan uint32, 1)
	go func() {
		for {
			if h, m := reader.read(); m.Type() == of13.TypeMultipartReply && m.(*of13.MultipartReply).Flags&of13.MultipartMore == 0 {
				got <- h.XID
				return
			}
		}
	}()
	until(t, drive, d, func() bool { return len(got) > 0 })
}

// A queue of which a little is always left takes no more than what waits.
func TestQueuesAreBounded(t *testing.T) {
	var l lane
	w := &wire{version: of13.Version}
	m := &of13.Echo{Data: make([]byte, 1000)}
	for range 10 {
		l.put(w, 1, m)
	}
	for range 100_000 {
		l.put(w, 1, m)
		l.take(nil, 1)
	}
	if len(l.b) > 1<<20 {
		t.Errorf("%d bytes are kept for %d that wait", len(l.b), l.size())
	}
}
