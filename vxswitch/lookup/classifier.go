package lookup

import (
	"net/netip"

	"sublet/vxswitch"
)

// Rule is what a frame must have, and where it goes then. What is zero matches
// everything; addresses and ports are of IP packets.
type Rule struct {
	MAC              *vxswitch.MAC // destination
	Src, Dst         netip.Prefix
	VLAN             uint16
	DSCP             *uint8
	Proto            uint8
	SrcPort, DstPort uint16
	To               vxswitch.PortSet // none: it is dropped
}

// matches says whether h has all that r states.
func (r *Rule) matches(h *vxswitch.Header) bool {
	return (r.MAC == nil || *r.MAC == h.Dst) && (r.VLAN == 0 || r.VLAN == h.VLAN) &&
		(r.DSCP == nil || h.DstIP.IsValid() && *r.DSCP == h.DSCP) && (r.Proto == 0 || h.DstIP.IsValid() && r.Proto == h.Proto) &&
		(r.SrcPort == 0 || r.SrcPort == h.SrcPort) && (r.DstPort == 0 || r.DstPort == h.DstPort) &&
		(!r.Src.IsValid() || r.Src.Contains(h.SrcIP)) && (!r.Dst.IsValid() || r.Dst.Contains(h.DstIP))
}

// Classifier forwards by the first rule that a frame matches, and all other frames as
// Learning does. It learns from all of them. A lookup takes a step for each rule, of
// which there are few (vnet.MaxSwitchRows).
type Classifier struct {
	*Learning
	rules []Rule
}

// NewClassifier returns a lookup with rules before those of another.
func NewClassifier(rules []Rule, rest *Learning) *Classifier { return &Classifier{rest, rules} }

// Forward finds where h goes.
func (c *Classifier) Forward(now vxswitch.Time, in int, h *vxswitch.Header, out *vxswitch.PortSet) {
	for i := range c.rules {
		if c.rules[i].matches(h) {
			c.learn(now, in, h.Src)
			*out = c.rules[i].To
			out.Remove(in)
			return
		}
	}
	c.Learning.Forward(now, in, h, out)
}
