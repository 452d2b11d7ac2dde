package join

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/net/ipv4"
	"golang.zx2c4.com/wireguard/conn"
)

// bind is WireGuard's way out by a socket that was opened elsewhere, which it
// never opens anew: the process has no right to.
type bind struct {
	udp   *net.UDPConn
	batch *ipv4.PacketConn
	pool  sync.Pool // []ipv4.Message
}

// most packets are read or written by one call.
const most = 32

func newBind(udp *net.UDPConn) *bind {
	b := &bind{udp: udp, batch: ipv4.NewPacketConn(udp)}
	b.pool.New = func() any {
		list := make([]ipv4.Message, most)
		for i := range list {
			list[i].Buffers = make([][]byte, 1)
		}
		return &list
	}
	return b
}

// Open begins to receive.
func (b *bind) Open(uint16) ([]conn.ReceiveFunc, uint16, error) {
	if err := b.udp.SetReadDeadline(time.Time{}); err != nil {
		return nil, 0, err
	}
	port := b.udp.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	return []conn.ReceiveFunc{b.receive}, port, nil
}

func (b *bind) receive(packets [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
	list := b.pool.Get().(*[]ipv4.Message)
	defer b.pool.Put(list)
	messages := (*list)[:min(len(packets), most)]
	for i := range messages {
		messages[i].Buffers[0] = packets[i]
	}
	n, err := b.batch.ReadBatch(messages, 0)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, net.ErrClosed
	}
	if err != nil {
		return 0, err
	}
	for i := range n {
		sizes[i] = messages[i].N
		at := messages[i].Addr.(*net.UDPAddr).AddrPort()
		from[i] = endpoint{netip.AddrPortFrom(at.Addr().Unmap(), at.Port())}
	}
	return n, nil
}

// Send writes packets to one who was heard.
func (b *bind) Send(packets [][]byte, to conn.Endpoint) error {
	e, ok := to.(endpoint)
	if !ok {
		return conn.ErrWrongEndpointType
	}
	list := b.pool.Get().(*[]ipv4.Message)
	defer b.pool.Put(list)
	address := net.UDPAddrFromAddrPort(e.AddrPort)
	for len(packets) > 0 {
		messages := (*list)[:min(len(packets), most)]
		for i := range messages {
			messages[i].Buffers[0], messages[i].Addr = packets[i], address
		}
		n, err := b.batch.WriteBatch(messages, 0)
		if err != nil {
			return err
		}
		packets = packets[n:]
	}
	return nil
}

// Close ends receiving.
func (b *bind) Close() error { return b.udp.SetReadDeadline(time.Unix(1, 0)) }

// SetMark does nothing: the socket has none.
func (b *bind) SetMark(uint32) error { return nil }

// BatchSize is most.
func (b *bind) BatchSize() int { return most }

// ParseEndpoint reads an address and a port.
func (b *bind) ParseEndpoint(s string) (conn.Endpoint, error) {
	at, err := netip.ParseAddrPort(s)
	return endpoint{at}, err
}

// endpoint is where a machine was heard.
type endpoint struct{ netip.AddrPort }

// What WireGuard wants to know of it. The socket has one address, so none is kept
// of its own.
func (e endpoint) ClearSrc()           {}
func (e endpoint) SrcToString() string { return "" }
func (e endpoint) DstToString() string { return e.String() }
func (e endpoint) DstIP() netip.Addr   { return e.Addr() }
func (e endpoint) SrcIP() netip.Addr   { return netip.Addr{} }
func (e endpoint) DstToBytes() []byte {
	text, _ := e.MarshalBinary() // of a valid one there is no error
	return text
}
