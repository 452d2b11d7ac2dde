package channel

import (
	"context"
	"net"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

const (
	// mostDatagram is what messages are put together up to: Ethernet's MTU without the
	// headers of IPv6 and UDP. A longer message has a datagram of its own.
	mostDatagram = 1452
	longest      = 65507 // that there can be; longer messages are not sent
)

// datagrams is an auxiliary connection over UDP (OpenFlow 1.3.5, 6.3.6): each datagram
// has whole messages. What has no whole ones is dropped, as if it had been lost.
type datagrams struct {
	net.Conn
	buffer [1 << 16]byte
	rest   []byte // of the datagram that is being read
}

// connectUDP makes one.
func (t Target) connectUDP(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", t.Address)
	if err != nil {
		return nil, err
	}
	return &datagrams{Conn: conn}, nil
}

// Read reads messages as if they came in a stream.
func (d *datagrams) Read(b []byte) (int, error) {
	for len(d.rest) == 0 {
		n, err := d.Conn.Read(d.buffer[:])
		if err != nil {
			return 0, err
		}
		if whole(d.buffer[:n]) {
			d.rest = d.buffer[:n]
		}
	}
	n := copy(b, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// whole says whether bytes are whole messages.
func whole(b []byte) bool {
	for len(b) > 0 {
		if len(b) < of13.HeaderLen {
			return false
		}
		n := int(of13.ReadHeader(b).Length)
		if n < of13.HeaderLen || n > len(b) {
			return false
		}
		b = b[n:]
	}
	return true
}

// Write sends whole messages.
func (d *datagrams) Write(b []byte) (written int, err error) {
	for rest := b; len(rest) > 0; {
		n := 0
		for n < len(rest) {
			next := int(of13.ReadHeader(rest[n:]).Length)
			if n > 0 && n+next > mostDatagram {
				break
			}
			n += next
		}
		if n <= longest {
			if _, err := d.Conn.Write(rest[:n]); err != nil {
				return written, err
			}
		}
		written, rest = written+n, rest[n:]
	}
	return written, nil
}

// unreliable says whether messages may be lost.
func (c *Conn) unreliable() bool {
	_, is := c.net.(*datagrams)
	return is
}

// overUDP are the messages that such connections have.
func overUDP(kind uint8) bool {
	switch kind {
	case of13.TypeHello, of13.TypeError, of13.TypeEchoRequest, of13.TypeEchoReply, of13.TypeExperimenter, of13.TypeFeaturesRequest,
		of13.TypePacketOut, of13.TypeBarrierRequest:
		return true
	}
	return false
}

// greetAgain is greet where the other hello may be lost: then any message of the main
// connection's version will do, and is the first to be done.
func (c *Conn) greetAgain(raw []byte) (first []byte, err error) {
	h, version := of13.ReadHeader(raw), c.main.wire.version
	agreed, ok := h.Version, true
	if h.Type == of13.TypeHello {
		agreed, ok, err = of10.ReadHello(raw, &c.wire.decoder)
	} else {
		first = raw
	}
	if c.wire.version = version; err != nil || !ok || agreed != version {
		c.refuse(raw, of13.BadRequestBadVersion)
		return nil, of13.BadRequestBadVersion
	}
	return first, nil
}
