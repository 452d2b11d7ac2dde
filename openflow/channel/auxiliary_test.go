package channel

import (
	"context"
	"net"
	"testing"
	"time"

	"sublet/openflow/of13"
)

// accepted is a connection that a switch has made, past the hellos.
func accepted(t *testing.T, l net.Listener) *controller {
	t.Helper()
	l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &controller{t: t, Conn: conn}
	c.want(of13.TypeHello, 0)
	c.send(1, &of13.Hello{Bitmap: 1 << of13.Version})
	return c
}

// drive has a hub speak to who listens, and a datapath do what it is told, until end.
func drive(h *Hub, l net.Listener) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ran, drove := make(chan error), make(chan struct{})
	go func() { ran <- h.Run(ctx, Target{Address: l.Addr().String()}, nil, func(error) {}) }()
	go func() {
		defer close(drove)
		for d := (&datapath{}); ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if in, ok := h.Next(); ok {
				h.Handle(in, d)
			}
		}
	}()
	return func() {
		cancel()
		h.Close()
		<-ran
		<-drove
	}
}

// Auxiliary connections tell their numbers, are answered, share the role of the
// main one, count for no controller, and end with it.
func TestAuxiliaryConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := NewHub(func() {})
	h.Auxiliary = 2
	defer drive(h, l)()
	all := []*controller{accepted(t, l), accepted(t, l), accepted(t, l)}
	numbers := map[uint8]bool{}
	for _, c := range all {
		c.send(2, &of13.Plain{Kind: of13.TypeFeaturesRequest})
		numbers[c.want(of13.TypeFeaturesReply, 2).(*of13.FeaturesReply).Auxiliary] = true
	}
	if len(numbers) != 3 || !numbers[0] || !numbers[1] || !numbers[2] || h.Connected() != 1 {
		t.Errorf("connections %v, %d controllers", numbers, h.Connected())
	}
	all[1].send(3, &of13.Role{Role: of13.RoleSlave, Generation: 1})
	all[1].want(of13.TypeRoleReply, 3)
	for _, c := range all {
		c.send(4, &of13.PacketOut{})
		c.refused(4, of13.BadRequestIsSlave)
	}
	all[0].Close()
	for _, c := range all[1:] {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%d bytes after the end of the main connection", n)
		}
	}
}

// An auxiliary connection that ends again and again comes again at once when the driver
// knows that it is worth trying, as main ones do.
func TestAuxiliaryConnectionsHurry(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := NewHub(func() {})
	h.Auxiliary, h.Near = 1, true
	defer drive(h, l)()
	accepted(t, l)
	began := time.Now()
	for range 12 { // without hurry their waits are 10 s together, of a Hub that is not Near 70 s
		accepted(t, l).Close()
		h.Hurry()
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("12 connections took %v", took)
	}
}

// talker is a controller's end of an auxiliary connection over UDP.
type talker struct {
	t    *testing.T
	conn *net.UDPConn
	to   *net.UDPAddr
}

// hear gives the messages of the next datagram.
func (u *talker) hear() (list []of13.Message, xids []uint32) {
	u.t.Helper()
	b := make([]byte, 1<<16)
	n, from, err := u.conn.ReadFromUDP(b)
	if err != nil {
		u.t.Fatal(err)
	}
	u.to = from
	for b = b[:n]; len(b) > 0; {
		length := of13.ReadHeader(b).Length
		h, m, err := new(of13.Decoder).Decode(b[:length])
		if err != nil {
			u.t.Fatal(err)
		}
		list, xids, b = append(list, m), append(xids, h.XID), b[length:]
	}
	return list, xids
}

// say sends messages, and bytes behind them, in one datagram.
func (u *talker) say(xid uint32, tail []byte, list ...of13.Message) {
	u.t.Helper()
	var b []byte
	for _, m := range list {
		var err error
		if b, err = of13.Append(b, xid, m); err != nil {
			u.t.Fatal(err)
		}
		xid++
	}
	if _, err := u.conn.WriteToUDP(append(b, tail...), u.to); err != nil {
		u.t.Fatal(err)
	}
}

// until hears until there is a message of a type with a number.
func (u *talker) until(kind uint8, xid uint32) of13.Message {
	u.t.Helper()
	for {
		list, xids := u.hear()
		for i, m := range list {
			if m.Type() == kind && xids[i] == xid {
				return m
			}
		}
	}
}

// Auxiliary connections over UDP have whole messages in a datagram, several of them
// too; a greeting that is lost holds nothing up; what is cut is dropped, and what does
// not belong there is refused.
func TestAuxiliaryConnectionsOverUDP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Skip(err) // somebody else has the port
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(60 * time.Second))
	h := NewHub(func() {})
	h.Auxiliary, h.AuxiliaryUDP = 1, true
	defer drive(h, l)()
	main := accepted(t, l)
	u := &talker{t: t, conn: conn}
	u.until(of13.TypeHello, 0)
	u.say(2, nil, &of13.Plain{Kind: of13.TypeFeaturesRequest}) // without a greeting
	if f := u.until(of13.TypeFeaturesReply, 2).(*of13.FeaturesReply); f.Auxiliary != 1 {
		t.Errorf("%+v", f)
	}
	u.say(3, nil, &of13.Plain{Kind: of13.TypeBarrierRequest}, &of13.Echo{Data: []byte("four")}, &of13.Plain{Kind: of13.TypeBarrierRequest})
	u.until(of13.TypeBarrierReply, 5)
	u.say(6, []byte{4, 20, 0}, &of13.Plain{Kind: of13.TypeBarrierRequest}) // as a whole it is dropped
	u.say(7, nil, &of13.FlowMod{})
	if e := u.until(of13.TypeError, 7).(*of13.ErrorMessage); of13.Error(uint32(e.Kind)<<16|uint32(e.Code)) != of13.BadRequestBadType {
		t.Errorf("a flow-mod: %+v", e)
	}
	u.say(8, nil, &of13.Plain{Kind: of13.TypeBarrierRequest})
	for got := uint32(0); got != 8; {
		_, xids := u.hear()
		if got = xids[len(xids)-1]; got == 6 {
			t.Error("a datagram that was cut was taken")
		}
	}
	main.send(9, &of13.Role{Role: of13.RoleSlave, Generation: 1})
	main.want(of13.TypeRoleReply, 9)
	u.say(10, nil, &of13.PacketOut{})
	if e := u.until(of13.TypeError, 10).(*of13.ErrorMessage); of13.Error(uint32(e.Kind)<<16|uint32(e.Code)) != of13.BadRequestIsSlave {
		t.Errorf("a slave's packet-out: %+v", e)
	}
	if h.Connected() != 1 {
		t.Errorf("%d controllers", h.Connected())
	}
}

// Messages are put together up to a datagram, and a long one has one of its own.
func TestDatagramsHaveWholeMessages(t *testing.T) {
	far, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	conn, err := Target{Address: far.LocalAddr().String()}.connectUDP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var b []byte
	for _, size := range []int{100, 1000, 500, 9000, 10} {
		if b, err = of13.Append(b, 1, &of13.Echo{Data: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := conn.Write(b); n != len(b) || err != nil {
		t.Fatal(n, err)
	}
	far.SetDeadline(time.Now().Add(20 * time.Second))
	for _, want := range []int{1100 + 16, 508, 9008, 18} {
		got := make([]byte, 1<<16)
		n, err := far.Read(got)
		if err != nil || n != want || !whole(got[:n]) {
			t.Errorf("a datagram of %d bytes instead of %d: %v", n, want, err)
		}
	}
}
