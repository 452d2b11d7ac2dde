package controller

import (
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// Role is what one of several controllers of the same switches shall be (OpenFlow 1.3.5,
// section 6.3.4). Who decides gives each next master a larger generation: then switches
// refuse what a former one says, whether it knows that it is none or not.
type Role struct {
	Master     bool // else slave: it changes nothing, and gets no packets
	Generation uint64
}

// claim is a role that was asked for.
type claim struct {
	role Role
	xid  uint32 // 0: the switch has answered
}

// rerole asks all switches anew when the role is another one.
func (c *Controller) rerole() {
	if c.config.Role == nil {
		return
	}
	now := c.config.Role()
	if now == c.role {
		return
	}
	c.role = now
	for _, s := range c.conns {
		if s.ready {
			c.ask(s)
		}
	}
}

// ask claims the role at a switch. OpenFlow 1.0 has none: such a switch is led by who
// is master, and left by who is not.
func (c *Controller) ask(s *Switch) {
	s.claim = claim{role: c.role}
	switch {
	case s.Version() != of10.Version:
		role := of13.RoleSlave
		if c.role.Master {
			role = of13.RoleMaster
		}
		s.claim.xid = s.Send(&of13.Role{Role: role, Generation: c.role.Generation})
	case c.role.Master:
		c.lead(s)
	default:
		c.leave(s)
	}
}

// granted is a switch's answer.
func (c *Controller) granted(s *Switch, h of13.Header, m *of13.Role) {
	if s.claim.xid == 0 || h.XID != s.claim.xid {
		return
	}
	s.claim.xid = 0
	if m.Role == of13.RoleMaster && s.claim.role.Master {
		c.lead(s)
		return
	}
	c.leave(s)
}

// denied says whether an error means that another controller is the master: a claim is
// out of date, or a slave changed something.
func (c *Controller) denied(s *Switch, h of13.Header, m *of13.ErrorMessage) bool {
	e := of13.Error(uint32(m.Kind)<<16 | uint32(m.Code))
	switch {
	case c.config.Role == nil:
		return false
	case s.claim.xid != 0 && h.XID == s.claim.xid:
		s.claim.xid = 0
		c.config.Log.Warn("the switch does not give the role, which is asked for again with another generation", "dpid", name(s.DatapathID), "generation", s.claim.role.Generation, "error", e)
	case e == of13.BadRequestIsSlave && s.claim.xid != 0:
		return true // an answer to what was sent before the claim
	case e == of13.BadRequestIsSlave:
		if s.led {
			c.config.Log.Warn("another controller is master of the switch", "dpid", name(s.DatapathID))
		}
	default:
		return false
	}
	c.leave(s)
	return true
}

// lead hands a switch to an application of its own.
func (c *Controller) lead(s *Switch) {
	if s.led {
		return
	}
	s.led, s.app = true, c.config.App()
	if c.config.Role != nil {
		before, was := c.ledAs[s.DatapathID]
		s.Anew = !was || before != c.role.Generation
		c.ledAs[s.DatapathID] = c.role.Generation
		c.config.Log.Info("master of the switch", "dpid", name(s.DatapathID), "generation", c.role.Generation)
	}
	s.app.Connected(s)
}

// leave takes a switch from its application; what it has stays.
func (c *Controller) leave(s *Switch) {
	if !s.led {
		return
	}
	app := s.app
	s.led, s.app = false, nil
	if f, ok := app.(Follower); ok {
		f.Gone(s, time.Now())
	}
}
