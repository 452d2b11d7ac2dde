package channel

import (
	"bytes"
	"io"
	"testing"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// old is a controller of OpenFlow 1.0.
type old struct {
	*controller
	decoder of10.Decoder
}

func (c *old) send(xid uint32, m of13.Message) {
	c.t.Helper()
	b, err := of10.Append(nil, xid, m)
	if err == nil {
		_, err = c.Write(b)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *old) read() (xid uint32, m of13.Message) {
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
	return h.XID, m
}

// greetedOld has sent a hello of 1.0, of which some hold bytes that say nothing.
func greetedOld(t *testing.T, address string, hello ...byte) *old {
	c := &old{controller: connect(t, address)}
	c.want(of13.TypeHello, 0)
	c.Write(append([]byte{1, 0, 0, byte(8 + len(hello)), 0, 0, 0, 9}, hello...))
	c.send(2, &of13.Plain{Kind: of13.TypeBarrierRequest})
	if xid, m := c.read(); xid != 2 || m.Type() != of13.TypeBarrierReply {
		t.Fatalf("%d: %+v", xid, m)
	}
	return c
}

// A controller of 1.0 is answered in 1.0 beside one of 1.3: its features have ports,
// its errors the codes of 1.0, and it alone gets packets that met no entry.
func TestVersionsSideBySide(t *testing.T) {
	h, address := start(t)
	late := greeted(t, address)
	if h.Unmatched() {
		t.Error("nobody wants packets that met no entry")
	}
	c := greetedOld(t, address, 0xff, 0xff, 0xff)
	if !h.Unmatched() {
		t.Error("a controller of 1.0 wants them")
	}
	c.send(3, &of13.Plain{Kind: of13.TypeFeaturesRequest})
	if _, m := c.read(); m.(*of10.FeaturesReply).DatapathID != 7 || len(m.(*of10.FeaturesReply).Ports) != 1 {
		t.Errorf("%+v", m)
	}
	c.send(4, &of13.Echo{Data: []byte("data")})
	if xid, m := c.read(); xid != 4 || !bytes.Equal(m.(*of13.Echo).Data, []byte("data")) {
		t.Errorf("%d: %+v", xid, m)
	}
	c.send(5, &of13.PortMod{})
	if xid, m := c.read(); xid != 5 || m.(*of13.ErrorMessage).Kind != of13.PortModFailedBadPort.Type() {
		t.Errorf("%d: %+v", xid, m)
	}
	driven(h, func() {
		h.PacketIn(&of13.PacketIn{Unmatched: true, Buffer: 1})
		h.PacketIn(&of13.PacketIn{Buffer: 2})
	})
	for want := range uint32(2) {
		if _, m := c.read(); m.(*of13.PacketIn).Buffer != want+1 {
			t.Errorf("%+v", m)
		}
	}
	if m := late.want(of13.TypePacketIn, 0).(*of13.PacketIn); m.Buffer != 2 {
		t.Errorf("%+v", m)
	}
}
