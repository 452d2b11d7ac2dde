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
	defer func() {
		cancel()
		h.Close()
		<-ran
		<-drove
	}()
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
