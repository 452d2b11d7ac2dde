package channel

import (
	"testing"

	"sublet/openflow/of13"
)

// The largest generation outlives the connection that stated it, is compared round
// the end of its numbers, and binds slaves as it does masters.
func TestGenerations(t *testing.T) {
	_, address := start(t)
	role := func(c *controller, role uint32, generation uint64) {
		c.send(9, &of13.Role{Role: role, Generation: generation})
	}
	a := greeted(t, address)
	role(a, of13.RoleEqual, 0) // asks for no generation, and states none
	a.want(of13.TypeRoleReply, 9)
	role(a, of13.RoleSlave, ^uint64(0)-1)
	a.want(of13.TypeRoleReply, 9)
	a.Close()
	b := greeted(t, address)
	role(b, of13.RoleSlave, ^uint64(0)-2)
	b.refused(9, of13.RoleRequestFailedStale)
	role(b, of13.RoleNoChange, 0)
	if m := b.want(of13.TypeRoleReply, 9).(*of13.Role); m.Role != of13.RoleEqual || m.Generation != ^uint64(0)-1 {
		t.Errorf("after a stale one: %+v", m)
	}
	role(b, of13.RoleMaster, 1) // later than the last numbers
	if m := b.want(of13.TypeRoleReply, 9).(*of13.Role); m.Role != of13.RoleMaster || m.Generation != 1 {
		t.Errorf("%+v", m)
	}
	role(b, of13.RoleMaster, ^uint64(0))
	b.refused(9, of13.RoleRequestFailedStale)
	role(b, of13.RoleMaster, 1) // the same again
	b.want(of13.TypeRoleReply, 9)
}

// A slave changes nothing and sends nothing, and may ask.
func TestSlaves(t *testing.T) {
	h, address := start(t)
	c := greeted(t, address)
	c.send(1, &of13.Role{Role: of13.RoleSlave, Generation: 1})
	c.want(of13.TypeRoleReply, 1)
	for _, m := range []of13.Message{
		&of13.FlowMod{}, &of13.GroupMod{}, &of13.MeterMod{}, &of13.PortMod{}, &of13.TableMod{}, &of13.PacketOut{},
		&of13.MultipartRequest{Kind: of13.MultipartTableFeatures, TableFeatures: []of13.TableFeatures{{Table: 0}}},
	} {
		c.send(2, m)
		c.refused(2, of13.BadRequestIsSlave)
	}
	c.send(3, &of13.Echo{})
	c.want(of13.TypeEchoReply, 3)
	c.send(4, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply, 4)
	// By its own masks it gets what others do.
	c.send(5, &of13.Async{Kind: of13.TypeSetAsync, PacketIn: [2]uint32{0, 1 << of13.PacketAction}, FlowRemove: [2]uint32{0, 1 << of13.RemovedIdle}})
	c.send(6, &of13.Plain{Kind: of13.TypeBarrierRequest})
	c.want(of13.TypeBarrierReply, 6)
	driven(h, func() {
		h.PacketIn(&of13.PacketIn{Reason: of13.PacketNoMatch})
		h.PortStatus(&of13.PortStatus{Reason: of13.PortModified})
		h.FlowRemoved(&of13.FlowRemoved{Reason: of13.RemovedHard})
		h.PacketIn(&of13.PacketIn{Reason: of13.PacketAction, Data: make([]byte, 60)})
	})
	if m := c.want(of13.TypePacketIn, 0).(*of13.PacketIn); m.Reason != of13.PacketAction {
		t.Errorf("%+v", m)
	}
	driven(h, func() {
		h.FlowRemoved(&of13.FlowRemoved{Reason: of13.RemovedIdle})
	})
	if m := c.want(of13.TypeFlowRemoved, 0).(*of13.FlowRemoved); m.Reason != of13.RemovedIdle {
		t.Errorf("%+v", m)
	}
}
