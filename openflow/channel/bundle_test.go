package channel

import (
	"testing"

	"sublet/openflow/of13"
)

func inBundle(t *testing.T, xid uint32, m of13.Message) []byte {
	b, err := of13.Append(nil, xid, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A bundle takes its messages, keeps their order, and is done at its commit; the
// error of one of them is told, and that of the commit.
func TestBundles(t *testing.T) {
	_, address := start(t)
	c := greeted(t, address)
	control := func(xid uint32, id uint32, kind uint16) {
		c.send(xid, of13.Bundle{ID: id, Kind: kind, Flags: of13.BundleAtomic}.Experimenter())
	}
	replied := func(xid uint32, id uint32, kind uint16) {
		t.Helper()
		m, err := c.want(of13.TypeExperimenter, xid).(*of13.Experimenter).Bundle()
		if err != nil || m.ID != id || m.Kind != kind+1 || m.Flags != of13.BundleAtomic {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	add := func(xid uint32, id uint32, m of13.Message) {
		c.send(xid, of13.Bundle{ID: id, Flags: of13.BundleAtomic, Add: true, Message: inBundle(t, xid, m)}.Experimenter())
	}
	control(3, 1, of13.BundleOpen)
	replied(3, 1, of13.BundleOpen)
	add(4, 1, &of13.FlowMod{})
	control(5, 1, of13.BundleClose)
	replied(5, 1, of13.BundleClose)
	control(6, 1, of13.BundleCommit)
	replied(6, 1, of13.BundleCommit)

	add(7, 2, &of13.FlowMod{}) // opens it
	add(8, 2, &of13.PortMod{}) // which the switch of these tests refuses
	control(9, 2, of13.BundleCommit)
	c.refused(8, of13.PortModFailedBadPort)
	c.refused(9, of13.BundleFailedMsgFailed)
	control(10, 3, of13.BundleOpen)
	replied(10, 3, of13.BundleOpen)
	control(11, 3, of13.BundleDiscard)
	replied(11, 3, of13.BundleDiscard)
}

func TestBundlesThatAreRefused(t *testing.T) {
	_, address := start(t)
	c := greeted(t, address)
	xid := uint32(10)
	for _, step := range []struct {
		b    of13.Bundle
		want of13.Error // 0: a reply, or none
	}{
		{of13.Bundle{ID: 1, Kind: of13.BundleCommit}, of13.BundleFailedBadID},
		{of13.Bundle{ID: 1, Kind: of13.BundleClose}, of13.BundleFailedBadID},
		{of13.Bundle{ID: 1, Kind: of13.BundleDiscard}, of13.BundleFailedBadID},
		{of13.Bundle{ID: 1, Kind: 9}, of13.BundleFailedBadType},
		{of13.Bundle{ID: 1, Flags: 8}, of13.BundleFailedBadFlags},
		{of13.Bundle{ID: 1}, 0},
		{of13.Bundle{ID: 1}, of13.BundleFailedExists}, // and it is gone
		{of13.Bundle{ID: 1, Kind: of13.BundleClose}, of13.BundleFailedBadID},
		{of13.Bundle{ID: 1}, 0},
		{of13.Bundle{ID: 1, Kind: of13.BundleCommit, Flags: 1}, of13.BundleFailedBadFlags},
		{of13.Bundle{ID: 1, Add: true, Message: inBundle(t, 1, &of13.FlowMod{})}, of13.BundleFailedMsgBadXID},
		{of13.Bundle{ID: 1, Add: true, Message: []byte{4, 14, 0, 99, 0, 0, 0, 0}}, of13.BundleFailedMsgBadLen},
		{of13.Bundle{ID: 1, Kind: of13.BundleClose}, 0},
		{of13.Bundle{ID: 1, Kind: of13.BundleClose}, of13.BundleFailedClosed},
	} {
		xid++
		c.send(xid, step.b.Experimenter())
		if step.want != 0 {
			c.refused(xid, step.want)
		} else {
			c.want(of13.TypeExperimenter, xid)
		}
	}
	for _, add := range []struct {
		id   uint32
		m    of13.Message
		want of13.Error
	}{
		{1, &of13.FlowMod{}, of13.BundleFailedClosed},
		{2, &of13.Plain{Kind: of13.TypeBarrierRequest}, of13.BundleFailedMsgUnsup},
		{2, &of13.FlowMod{Match: of13.Match{Fields: []of13.Field{of13.Exact(of13.TCPDst, 1)}}}, of13.BadMatchBadPrereq},
	} {
		xid++
		c.send(xid, of13.Bundle{ID: add.id, Add: true, Message: inBundle(t, xid, add.m)}.Experimenter())
		c.refused(xid, add.want)
	}
	c.send(98, &of13.Experimenter{Experimenter: of13.ONF, Kind: 7})
	c.refused(98, of13.BadRequestBadExpType)
	c.send(99, &of13.Experimenter{Experimenter: 0x2320, Kind: 10})
	c.refused(99, of13.BadRequestBadExperimenter)
	for id := range uint32(maxBundles - 2) { // two are there
		c.send(100+id, of13.Bundle{ID: 100 + id}.Experimenter())
		c.want(of13.TypeExperimenter, 100+id)
	}
	c.send(97, of13.Bundle{ID: 97}.Experimenter())
	c.refused(97, of13.BundleFailedOutOf)
	c.send(96, &of13.Role{Role: of13.RoleSlave, Generation: 1})
	c.want(of13.TypeRoleReply, 96)
	c.send(95, of13.Bundle{ID: 95}.Experimenter())
	c.refused(95, of13.BadRequestIsSlave)
}

func TestBundlesAreBounded(t *testing.T) {
	c := newConn(nil, NewHub(func() {}))
	c.bundledBytes = maxBundled
	b := &of13.Bundle{ID: 1, Add: true, Message: inBundle(t, 5, &of13.FlowMod{})}
	if err := c.addToBundle(5, b); err != error(of13.BundleFailedTooMany) {
		t.Error(err)
	}
	c.bundledBytes = 0
	c.hub.Bundled.Store(allBundled)
	if err := c.addToBundle(5, b); err != error(of13.BundleFailedTooMany) {
		t.Errorf("others have all: %v", err)
	}
	c.hub.Bundled.Store(0)
	if err := c.addToBundle(5, b); err != nil || int(c.hub.Bundled.Load()) != c.bundledBytes || c.bundledBytes == 0 {
		t.Errorf("%v, %d bytes of %d", err, c.bundledBytes, c.hub.Bundled.Load())
	}
	c.discard(1)
	if n := c.hub.Bundled.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
