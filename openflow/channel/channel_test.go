package channel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sublet/openflow/of13"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// datapath refuses port-mods, answers requests for features, and takes the rest.
type datapath struct{ done []uint8 }

func (d *datapath) Do(m of13.Message) (of13.Message, error) {
	d.done = append(d.done, m.Type())
	switch m.Type() {
	case of13.TypeFeaturesRequest:
		return &of13.FeaturesReply{DatapathID: 7}, nil
	case of13.TypeMultipartRequest:
		return &of13.MultipartReply{Kind: of13.MultipartPortDesc, PortDescs: make([]of13.Port, 1)}, nil
	case of13.TypeTableMod:
		return nil, io.ErrUnexpectedEOF
	case of13.TypePortMod:
		return nil, of13.PortModFailedBadPort
	}
	return nil, nil
}

func (d *datapath) Atomic(run func() error) error { return run() }

// start runs a hub that listens and whose switch is driven until the test ends.
func start(t *testing.T) (h *Hub, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = l.Addr().String()
	l.Close()
	h = NewHub(func() {})
	ctx, cancel := context.WithCancel(context.Background())
	ran, drove := make(chan error), make(chan struct{})
	drive, todo := driver(t, h), make(chan func(), 1)
	drivers.Store(h, todo)
	go func() { ran <- h.Run(ctx, Target{Passive: true, Address: address}, nil, func(error) {}) }()
	go func() {
		defer close(drove)
		for d := (&datapath{}); ctx.Err() == nil; {
			select {
			case do := <-todo:
				do()
			default:
			}
			drive(d)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-drove
		h.Close()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return h, address
}

// drivers have what each hub's driver is to do besides.
var drivers sync.Map

// driven has the hub's driver do something, as it alone may tell controllers.
func driven(h *Hub, do func()) {
	todo, _ := drivers.Load(h)
	done := make(chan struct{})
	todo.(chan func()) <- func() { defer close(done); do() }
	<-done
}

// driver gives what does a turn of the thread that drives a switch.
func driver(t *testing.T, h *Hub) func(Datapath) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(epoll) })
	h.Watch = func(fd int) error {
		return unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: WatchEvents, Fd: int32(fd)})
	}
	events := make([]unix.EpollEvent, 8)
	return func(d Datapath) {
		n, _ := unix.EpollWait(epoll, events, 5)
		for _, e := range events[:max(n, 0)] {
			h.Ready(int(e.Fd), e.Events)
		}
		for in, ok := h.Next(); ok; in, ok = h.Next() {
			h.Handle(in, d)
		}
		h.Flush()
		h.Tick(time.Now())
	}
}

// controller is the other end of a connection.
type controller struct {
	t *testing.T
	net.Conn
	decoder of13.Decoder
}

func connect(t *testing.T, address string) *controller {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.SetDeadline(time.Now().Add(20 * time.Second))
			t.Cleanup(func() { conn.Close() })
			return &controller{t: t, Conn: conn}
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (c *controller) send(xid uint32, m of13.Message) {
	c.t.Helper()
	b, err := of13.Append(nil, xid, m)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *controller) read() (of13.Header, of13.Message) {
	c.t.Helper()
	head := make([]byte, of13.HeaderLen)
	if _, err := io.ReadFull(c, head); err != nil {
		c.t.Fatal(err)
	}
	b := append(head, make([]byte, int(of13.ReadHeader(head).Length)-len(head))...)
	if _, err := io.ReadFull(c, b[len(head):]); err != nil {
		c.t.Fatal(err)
	}
	h, m, err := c.decoder.Decode(b)
	if err != nil {
		c.t.Fatal(err)
	}
	return h, m
}

// want reads a message of a type and transaction.
func (c *controller) want(kind uint8, xid uint32) of13.Message {
	c.t.Helper()
	h, m := c.read()
	if h.Type != kind || h.XID != xid {
		c.t.Fatalf("message of type %d, transaction %d: %+v; wanted type %d, transaction %d", h.Type, h.XID, m, kind, xid)
	}
	return m
}

func (c *controller) refused(xid uint32, want of13.Error) {
	c.t.Helper()
	if m := c.want(of13.TypeError, xid).(*of13.ErrorMessage); m.Kind != want.Type() || m.Code != want.Code() || len(m.Data) < of13.HeaderLen {
		c.t.Fatalf("%+v instead of %v", m, want)
	}
}

// greeted is connected, and past its first barrier: the hub knows it.
func greeted(t *testing.T, address string) *controller {
	c := connect(t, address)
	c.want(of13.TypeHello, 0)
	c.send(1, &of13.Hello{Bitmap: 1 << of13.Version})
	c.send(2, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply, 2)
	return c
}

func TestVersionsAreNegotiated(t *testing.T) {
	_, address := start(t)
	for _, b := range [][]byte{
		{3, 0, 0, 8, 0, 0, 0, 9},                               // up to 1.2, without a bitmap
		{6, 0, 0, 16, 0, 0, 0, 9, 0, 1, 0, 8, 0, 0, 0, 1 << 6}, // 1.5 alone
	} {
		c := connect(t, address)
		c.want(of13.TypeHello, 0)
		c.Write(b)
		c.refused(9, of13.HelloFailedIncompatible)
		if _, err := c.Conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection goes on: %v", err)
		}
	}
	c := connect(t, address)
	c.want(of13.TypeHello, 0)
	c.Write([]byte{6, 0, 0, 8, 0, 0, 0, 1}) // up to 1.5
	c.send(5, &of13.Plain{Kind: of13.TypeFeaturesRequest})
	if m := c.want(of13.TypeFeaturesReply, 5).(*of13.FeaturesReply); m.DatapathID != 7 {
		t.Errorf("%+v", m)
	}
}

func TestRepliesAndErrors(t *testing.T) {
	_, address := start(t)
	c := greeted(t, address)
	c.send(3, &of13.Echo{Data: []byte("data")})
	if m := c.want(of13.TypeEchoReply, 3).(*of13.Echo); !bytes.Equal(m.Data, []byte("data")) {
		t.Errorf("%+v", m)
	}
	c.send(4, &of13.PortMod{})
	c.send(5, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.refused(4, of13.PortModFailedBadPort)
	c.want(of13.TypeBarrierReply, 5)
	c.send(3, &of13.TableMod{})
	c.refused(3, of13.BadRequestEPerm) // an error that is none of OpenFlow
	c.Write([]byte{4, 99, 0, 8, 0, 0, 0, 6, 3, of13.TypeBarrierRequest, 0, 8, 0, 0, 0, 7})
	c.refused(6, of13.BadRequestBadType)
	c.refused(7, of13.BadRequestBadVersion)
	c.Write([]byte{4, of13.TypePacketIn, 0, 10, 0, 0, 0, 9, 1, 2}) // which switches send, whatever is in it
	c.refused(9, of13.BadRequestBadType)
	c.Write([]byte{4, 2, 0, 7, 0, 0, 0, 8})
	c.refused(8, of13.BadRequestBadLen)
	if _, err := c.Conn.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the connection goes on after a message without an end: %v", err)
	}
}

func TestRoles(t *testing.T) {
	h, address := start(t)
	a, b := greeted(t, address), greeted(t, address)
	role := func(c *controller, role uint32, generation uint64) {
		c.send(9, &of13.Role{Role: role, Generation: generation})
	}
	role(a, of13.RoleMaster, 10)
	if m := a.want(of13.TypeRoleReply, 9).(*of13.Role); m.Role != of13.RoleMaster || m.Generation != 10 {
		t.Errorf("%+v", m)
	}
	role(b, of13.RoleMaster, 9)
	b.refused(9, of13.RoleRequestFailedStale)
	role(b, 5, 11)
	b.refused(9, of13.RoleRequestFailedBadRole)
	role(b, of13.RoleMaster, 11)
	b.want(of13.TypeRoleReply, 9)
	role(a, of13.RoleNoChange, 0)
	if m := a.want(of13.TypeRoleReply, 9).(*of13.Role); m.Role != of13.RoleSlave {
		t.Errorf("the former master is %+v", m)
	}
	a.send(12, &of13.FlowMod{})
	a.refused(12, of13.BadRequestIsSlave)
	driven(h, func() {
		h.PacketIn(&of13.PacketIn{Reason: of13.PacketNoMatch, Data: make([]byte, 60)})
		h.PortStatus(&of13.PortStatus{Reason: of13.PortModified})
	})
	a.want(of13.TypePortStatus, 0)
	types := map[uint8]bool{}
	for range 2 {
		head, _ := b.read()
		types[head.Type] = true
	}
	if !types[of13.TypePacketIn] || !types[of13.TypePortStatus] {
		t.Errorf("the master got %v", types)
	}
}

func TestAsynchronousConfiguration(t *testing.T) {
	h, address := start(t)
	c := greeted(t, address)
	c.send(3, &of13.Async{Kind: of13.TypeSetAsync, PacketIn: [2]uint32{1 << of13.PacketInvalidTTL, 0}})
	c.send(4, &of13.Plain{Kind: of13.TypeGetAsyncRequest})
	if m := c.want(of13.TypeGetAsyncReply, 4).(*of13.Async); m.PacketIn[0] != 4 || m.FlowRemove[0] != 0 {
		t.Errorf("%+v", m)
	}
	driven(h, func() {
		h.PacketIn(&of13.PacketIn{Reason: of13.PacketNoMatch})
		h.FlowRemoved(&of13.FlowRemoved{})
		h.PacketIn(&of13.PacketIn{Reason: of13.PacketInvalidTTL})
	})
	if m := c.want(of13.TypePacketIn, 0).(*of13.PacketIn); m.Reason != of13.PacketInvalidTTL {
		t.Errorf("%+v", m)
	}
}

// A switch tries again until its controller is there, and again when it is gone.
func TestConnectionsComeBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := NewHub(func() {})
	ctx, cancel := context.WithCancel(context.Background())
	ran, why := make(chan error), make(chan error, 10)
	go func() { ran <- h.Run(ctx, Target{Address: l.Addr().String()}, nil, func(err error) { why <- err }) }()
	for range 3 {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if err := <-why; err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("the end of a connection is told as %v", err)
		}
	}
	cancel()
	h.Close()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]Target{
		"tcp:192.0.2.1:6653": {false, false, "192.0.2.1:6653"}, "tls:[2001:db8::1]:6653": {true, false, "[2001:db8::1]:6653"},
		"ptcp::6654": {false, true, ":6654"}, "ptls:127.0.0.1:6654": {true, true, "127.0.0.1:6654"},
		"ssl:192.0.2.1:6653": {true, false, "192.0.2.1:6653"}, "ptcp:6654": {false, true, ":6654"}, "pssl:6654:[::1]": {true, true, "[::1]:6654"},
		"ptcp:6654:127.0.0.1": {false, true, "127.0.0.1:6654"}, "ptcp:6654:": {false, true, ":6654"},
	} {
		if got, err := ParseTarget(text); err != nil || got != want {
			t.Errorf("%s is %+v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"tcp:192.0.2.1:6653", "ssl:[2001:db8::1]:6653", "ptcp:6654", "pssl:6654"} {
		if target, err := ParseTarget(text); err != nil || target.String() != text {
			t.Errorf("%s is written as %s, error %v", text, target, err)
		}
	}
	for _, text := range []string{"", "192.0.2.1:6653", "tcp:192.0.2.1", "tcp::6653", "udp:192.0.2.1:6653", "tcp:h:", "tcp:192.0.2.1:0"} {
		if _, err := ParseTarget(text); err == nil {
			t.Errorf("%q is taken as a controller", text)
		}
	}
}

// queued gives a hub connections whose messages wait, by type.
func queued(kinds ...[]uint8) *Hub {
	h := NewHub(func() {})
	for _, list := range kinds {
		c := newConn(nil, h)
		for _, kind := range list {
			c.inbox <- []byte{of13.Version, kind, 0, of13.HeaderLen, 0, 0, 0, 0}
		}
		h.sources = append(h.sources, c)
	}
	return h
}

// taken is the types of the messages in the order in which they are to be done.
func taken(h *Hub) (kinds []uint8) {
	for in, ok := h.Next(); ok; in, ok = h.Next() {
		kinds = append(kinds, in.Raw[1])
	}
	return kinds
}

func TestUrgentMessagesOfOtherConnectionsComeFirst(t *testing.T) {
	h := queued([]uint8{of13.TypeMultipartRequest, of13.TypeFlowMod, of13.TypeBarrierRequest}, []uint8{of13.TypePacketOut}, []uint8{of13.TypeFlowMod}, []uint8{of13.TypeRoleRequest})
	want := []uint8{of13.TypeRoleRequest, of13.TypeFlowMod, of13.TypePacketOut, of13.TypeMultipartRequest, of13.TypeFlowMod, of13.TypeBarrierRequest}
	if got := taken(h); !bytes.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
}

// A flood of changes leaves room for a question of another controller.
func TestNoConnectionStarves(t *testing.T) {
	flood := bytes.Repeat([]byte{of13.TypeFlowMod}, inbox)
	got := taken(queued(flood, []uint8{of13.TypeMultipartRequest}))
	if at := bytes.IndexByte(got, of13.TypeMultipartRequest); at < 0 || at > 2*fair {
		t.Errorf("the question was message %d of %d", at, len(got))
	}
}

// Messages that were sent before a connection ended are done.
func TestMessagesOutliveTheirConnection(t *testing.T) {
	h := queued([]uint8{of13.TypeFlowMod, of13.TypeFlowMod})
	close(h.sources[0].inbox)
	if got := taken(h); len(got) != 2 || len(h.sources) != 0 {
		t.Errorf("%v, and %d connections are kept", got, len(h.sources))
	}
}

// What waits is written by urgency, in whole messages, and a barrier's reply
// stays behind the statistics before it.
func TestOrderOfWriting(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	c := newConn(here, NewHub(func() {}))
	c.reply(1, &of13.MultipartReply{Kind: of13.MultipartTable, Tables: make([]of13.TableStats, 254)})
	c.reply(2, &of13.Plain{Kind: of13.TypeBarrierReply})
	c.event(&of13.PacketIn{Data: make([]byte, 60)})
	c.reply(3, &of13.Echo{Reply: true})
	wrote := make(chan struct{})
	go func() { c.write(); close(wrote) }()
	there.SetDeadline(time.Now().Add(10 * time.Second))
	peer := &controller{t: t, Conn: there}
	for _, want := range []uint8{of13.TypeEchoReply, of13.TypePacketIn, of13.TypeMultipartReply, of13.TypeBarrierReply} {
		if h, _ := peer.read(); h.Type != want {
			t.Errorf("type %d instead of %d", h.Type, want)
		}
	}
	c.end()
	<-wrote
}
